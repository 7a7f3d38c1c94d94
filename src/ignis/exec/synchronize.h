#pragma once

#include "ignis/base/result.h"
#include "ignis/runtime/clock.h"
#include "ignis/runtime/completion.h"
#include "ignis/runtime/queued_device.h"

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::exec {

/// 30 s as a stall limit and as a deadline; 3 s for a device that reaches memory through a window.
runtime::WaitLimits default_limits(const runtime::Capabilities& capabilities);

/// Which batches must be complete before memory of an owner may be touched by others: pending[owner][accessor] (queue spec
/// 10). Also who shares batches with whom, so that a wait on one device ends when another of its batch is lost. May be used
/// from any thread; devices that are noted outlive it. Notes about a pair that was noted before allocate nothing.
class PendingOwners {
 public:
  /// `batch` on its device touches memory of `owner`, a canonical name.
  void note(std::string_view owner, const runtime::Submitted& batch);
  /// The tokens of one batch, one for each of its devices.
  void note_batch(std::span<const runtime::Submitted> batch);

  /// The newest token that accessor number `index` of `owner` left; nothing behind the last.
  std::optional<runtime::Submitted> at(std::string_view owner, size_t index) const;
  /// Number `index` of the tokens of devices that share a batch with `device` which `device` has not reached yet.
  std::optional<runtime::Submitted> sharer(std::string_view device, size_t index) const;

 private:
  /// What one batch announced on a device and on another of its devices.
  struct Shared {
    runtime::Submitted own, other;
  };
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<runtime::Submitted>, std::less<>> touching_;  ///< by owner
  std::map<std::string, std::vector<Shared>, std::less<>> sharing_;               ///< by device
};

/// Waits until `device` has reached everything that was announced on it, then for every batch that touches its memory from
/// elsewhere (queue spec 11.1). One deadline for all; the stall limit starts anew with each change of the watched word.
///
/// Errors name the device that is at fault, which need not be `device`:
/// DeviceHang (DeviceLost) when a word stood still for the stall limit; the device is Unavailable from then on.
/// DeadlineExceeded (Timeout) when the deadline passed before; the device stays as it is.
/// DeviceUnavailable (DeviceLost) when a device is gone that has not reached its value, or one that shares a batch with it.
/// What was reached before a device was lost counts as done; whether its data can be read is DataReadable's to say.
Status synchronize(runtime::QueuedDevice& device, const PendingOwners& pending,
                   const runtime::WaitLimits& limits);

/// Waits for every batch that touches memory of `owner`: what a host read, host kernel or host copy does first. Tokens of an
/// earlier generation were resolved by its loss and hold nobody up. Errors: as synchronize().
Status synchronize_owner(std::string_view owner, const PendingOwners& pending,
                         const runtime::WaitLimits& limits);

/// Waits until all of `tokens` are reached: those of one batch, or of batches that complete jointly, such as the halves of a
/// network copy. When one device is lost the others that are still held up are Unavailable too, for their queues wait for
/// what never comes. Errors: as synchronize(); an older generation is DeviceUnavailable.
Status wait_for(std::span<const runtime::Submitted> tokens, const runtime::WaitLimits& limits);

}  // namespace ignis::exec
