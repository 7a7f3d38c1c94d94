#pragma once

#include "ignis/base/result.h"
#include "ignis/runtime/clock.h"
#include "ignis/runtime/completion.h"
#include "ignis/runtime/queued_device.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace ignis::exec {

/// What a linked batch announced on one device in its last run. Meant within a generation and a count of restarts.
struct Epoch {
  uint64_t value = 0;
  uint64_t restarts = 0;
};

/// One queue's words of a run.
struct StreamSubmit {
  int device = 0;  ///< index into the fence's devices
  runtime::QueueId queue;
  std::span<const std::byte> commands;
};

/// Fence and submit of one linked batch (queue spec 7): bounded, and all or nothing. One run at a time; runs of different
/// fences may share devices and threads.
///
/// 1. Wait until each device has passed the last run's value. A device that has not is Unavailable: FenceTimeout (Timeout).
///    With a limit of 0 it is only looked, and nobody is blamed.
/// 2. Under the submission locks of all devices, taken in name order with the same deadline: wait for room in each ring.
///    QueueFull (OutOfMemory) otherwise; SubmitTooLarge (InvalidArgument) for more than the ring holds.
/// 3. Announce on every device, remember it, zero the signals.
/// 4. Submit in order. When the first submit fails, everything announced is taken back; when a later one fails, every device
///    of the batch is Unavailable, for some of them wait for work that never comes.
///
/// At half of the signals' range a device is drained and its pair begins anew at 0 (W-13). A device that was reopened since
/// the link is StaleLink, one that is not online DeviceUnavailable (both DeviceLost). An error before step 4 changes nothing
/// but a restarted pair.
class BatchFence {
 public:
  /// `devices` in name order, none twice, all of them outliving this; `signals` are the batch's. Both are of the devices'
  /// present generation.
  BatchFence(std::vector<runtime::QueuedDevice*> devices,
             std::vector<std::atomic<uint64_t>*> signals);

  /// Writes N, what was announced on each device before this run, into the commands. Called under the locks.
  using PatchCommands = std::function<Status(std::span<const uint64_t> announced_before)>;

  /// One run. Allocates nothing when it succeeds. A batch that has no stream for a device still announces on it.
  Status run(std::span<const StreamSubmit> streams, const runtime::WaitLimits& limits,
             const PatchCommands& patch);

  /// Ok, StaleLink or DeviceUnavailable, without waiting.
  Status check() const;
  std::span<runtime::QueuedDevice* const> devices() const { return devices_; }
  std::span<const Epoch> epochs() const { return epochs_; }
  /// The tokens of the last run that succeeded, by device; empty before.
  std::span<const runtime::Submitted> submitted() const { return submitted_; }
  /// Is called between announcing and submitting: where tests pause or break a device.
  void set_pause_before_submit(std::function<void()> pause) { pause_ = std::move(pause); }

 private:
  class Locks;
  class Limits;
  bool has_passed(size_t device) const;
  Status wait_for_epochs(const Limits& limits);
  Status restart_narrow_pairs(const Limits& limits);
  Status wait_for_room(std::span<const StreamSubmit> streams, const Limits& limits);
  void announce();
  void take_back();
  Status submit(std::span<const StreamSubmit> streams);
  Error fence_timeout(runtime::QueuedDevice& device, uint64_t target, const Limits& limits) const;

  std::vector<runtime::QueuedDevice*> devices_;
  std::vector<uint64_t> generations_;
  std::vector<std::atomic<uint64_t>*> signals_;
  std::vector<Epoch> epochs_, last_epochs_;
  std::vector<uint64_t> before_;  ///< N
  std::vector<runtime::Submitted> submitted_;
  std::function<void()> pause_;
};

}  // namespace ignis::exec
