#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/linked_schedule.h"
#include "ignis/exec/machine.h"
#include "ignis/runtime/completion.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ignis::exec {

/// What has to be reached before the results of a replay may be read. Kept for the newest replays; older ones wait for all that
/// touches their memory. Functions may be called from any thread.
class ReplayTokens {
 public:
  explicit ReplayTokens(std::shared_ptr<Machine> machine) : machine_(std::move(machine)) {}

  /// Room for `count` tokens of a replay, so that noting them allocates nothing.
  void expect(size_t count);
  /// Replay `sequence` was submitted by `linked`.
  void note(uint64_t sequence, const LinkedSchedule& linked);
  /// Whether somebody has seen that replay `sequence` is complete.
  bool is_complete(uint64_t sequence) const { return complete_.load() >= sequence; }
  void note_complete(uint64_t sequence);
  /// Waits until the bytes that replay `sequence` wrote may be read by the host.
  /// Errors: as exec::wait(); DeviceUnavailable when a device was reopened since.
  Result<runtime::DataReadable> prove(uint64_t sequence, const Placement& at,
                                      const runtime::WaitLimits& limits);

 private:
  struct Entry {
    uint64_t sequence = 0;
    std::vector<runtime::Submitted> tokens;
  };
  std::shared_ptr<Machine> machine_;
  std::mutex mutex_;
  std::atomic<uint64_t> complete_{0};  ///< the newest; those before it are, too
  std::array<Entry, 64> entries_;      ///< number `sequence` mod their count
};

}  // namespace ignis::exec
