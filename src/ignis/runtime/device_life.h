#pragma once

#include "ignis/runtime/queued_device.h"

#include <atomic>
#include <mutex>
#include <string>

namespace ignis::runtime {

/// The state of a device (queue spec 11.3): Online -> Stalled -> Unavailable(reason) -> reopened (generation + 1) -> Online.
/// Every driver holds one. All functions may be called from any thread.
class DeviceLife {
 public:
  DeviceState state() const;
  /// Without a lock: asked before each submit and while waiting.
  bool is_online() const {
    return condition_.load(std::memory_order_acquire) == DeviceCondition::Online;
  }
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  /// Online becomes Stalled: somebody looks why a word does not change.
  void stall(std::string what);
  /// Stalled becomes Online again: the word moved after all.
  void resume();
  /// Sticks until reopen(); the first reason is kept. Returns the reason that counts.
  std::string lose(std::string reason);
  /// Online with the next generation.
  void reopen();

 private:
  mutable std::mutex mutex_;
  std::atomic<DeviceCondition> condition_{DeviceCondition::Online};
  std::atomic<uint64_t> generation_{1};
  std::string reason_;
};

}  // namespace ignis::runtime
