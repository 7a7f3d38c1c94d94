#pragma once

#include "ignis/runtime/queued_device.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ignis::runtime {

// How far work is (queue spec 11.2). Each level is a type of its own that only a proof makes, and none turns into the next:
// a caller that needs data to be readable cannot be handed a receipt that only says "submitted". A level proves nothing
// about a device's later life, and "the model's output is valid" is decided above all of them.

/// The host submit program returned success. Proves not that anything ran. Plain data, so that it can be kept without
/// allocating; the device outlives it.
class Submitted {
 public:
  /// For the code that has just submitted a batch that stores `value` on `device`'s timeline, under its submission lock.
  static Submitted after_submit(QueuedDevice& device, uint64_t value) {
    return {&device, value, device.generation(), device.timeline().restarts.load()};
  }
  QueuedDevice& device() const { return *device_; }
  uint64_t value() const { return value_; }
  uint64_t generation() const { return generation_; }

  /// Whether the timeline has passed this. A pair that was restarted was drained before.
  bool is_reached() const {
    if (device_->generation() != generation_) return false;  // it never will
    const Timeline& timeline = device_->timeline();
    return timeline.restarts.load() != restarts_ || timeline.reached->load() >= value_;
  }
  /// Whether the device is online and still the one that took the work.
  bool is_alive() const {
    return device_->generation() == generation_ &&
           (device_->is_online() || device_->state().condition != DeviceCondition::Unavailable);
  }

 private:
  Submitted(QueuedDevice* device, uint64_t value, uint64_t generation, uint64_t restarts)
      : device_(device), value_(value), generation_(generation), restarts_(restarts) {}
  QueuedDevice* device_;
  uint64_t value_, generation_, restarts_;
};

/// Everything that one queue was given in a batch has completed. Says nothing of other queues.
class QueueComplete {
 public:
  /// `signal` is the queue's, `last_value` what its last call stores.
  static std::optional<QueueComplete> prove(const Submitted& batch, QueueId queue,
                                            const std::atomic<uint64_t>& signal,
                                            uint64_t last_value);
  QueueId queue() const { return queue_; }

 private:
  explicit QueueComplete(QueueId queue) : queue_(queue) {}
  QueueId queue_;
};

/// One call has completed. Does not prove that its data can be read.
class KernelComplete {
 public:
  /// By the signal of the call's own queue, which completes in order. Nothing for a device whose queues do not.
  static std::optional<KernelComplete> prove_by_signal(const Submitted& batch, int tag,
                                                       const std::atomic<uint64_t>& signal);
  /// By the timeline of the call's device.
  static std::optional<KernelComplete> prove_by_timeline(const Submitted& batch, int tag);
  int tag() const { return tag_; }
  const Submitted& batch() const { return batch_; }

 private:
  KernelComplete(const Submitted& batch, int tag) : batch_(batch), tag_(tag) {}
  Submitted batch_;
  int tag_;
};

/// Bytes of one memory.
struct MemoryBytes {
  const Memory* memory = nullptr;
  uint64_t begin_bytes = 0, end_bytes = 0;
};

/// A step that makes bytes visible to the host was taken, after a call completed.
class MadeVisible {
 public:
  /// Asks the device of `writer` to make [begin, end) of `memory` visible. Errors: as QueuedDevice::make_visible().
  static Result<MadeVisible> make(const KernelComplete& writer, const MemoryRef& memory,
                                  uint64_t begin_bytes, uint64_t end_bytes);
  const MemoryBytes& bytes() const { return bytes_; }
  const Submitted& batch() const { return batch_; }
  int tag() const { return tag_; }

 private:
  MadeVisible(const Submitted& batch, int tag, MemoryBytes bytes)
      : batch_(batch), tag_(tag), bytes_(bytes) {}
  Submitted batch_;
  int tag_;
  MemoryBytes bytes_;
};

/// The host may read these bytes: all calls that wrote them are complete, each was made visible, no device reports an error
/// and none was reopened since. Does not prove that the values are sane.
class DataReadable {
 public:
  /// `writers` are all calls that wrote to `bytes`; `visible` the steps that were taken. A writer on a device that is coherent
  /// with the host needs none.
  static std::optional<DataReadable> prove(const MemoryBytes& bytes,
                                           std::span<const KernelComplete> writers,
                                           std::span<const MadeVisible> visible);
  const MemoryBytes& bytes() const { return bytes_; }

 private:
  explicit DataReadable(const MemoryBytes& bytes) : bytes_(bytes) {}
  MemoryBytes bytes_;
};

}  // namespace ignis::runtime
