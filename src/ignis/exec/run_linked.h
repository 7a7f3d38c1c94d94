#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/linked_schedule.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ignis::exec {

struct RunOptions {
  /// Comes back when everything is complete; else when everything has been submitted.
  bool waits = true;
  /// Values of the run-time variables, by number.
  std::span<const int64_t> variables{};
  /// Of all waits together; the stall limit of each.
  runtime::WaitLimits limits{30'000'000'000, 30'000'000'000};
};

/// Runs a linked schedule once (queue spec 10): writes the inputs' addresses into the table, then step by step waits for what
/// must be complete, fences, patches and submits a batch, or runs a host run to its end. Inputs are looked at unless they were
/// baked at link; they need a lane each and the size of their buffers.
///
/// Runs of one linked schedule follow each other; a second caller waits within the limits. Runs of others may be under way on
/// the same devices and memory: whoever began to touch an owner's memory before this run is waited for. Once a device was
/// lost, its work counts as ended for others, and the run that it belonged to learns it from wait().
/// Allocates nothing once its buffers have grown, profiling aside.
///
/// Errors: InvalidArgument (AliasedArguments, InputTooSmall, MissingInput, MissingVariable,
/// OneShot); DeviceLost (StaleLink,
/// DeviceUnavailable, DeviceHang); Timeout (FenceTimeout, DeadlineExceeded, Busy); OutOfMemory (QueueFull). Steps before the
/// one that failed may be under way; nothing of a later one is.
Status run(LinkedSchedule& linked, std::span<const BoundInput> inputs = {},
           const RunOptions& options = {});

/// Waits until every run so far is complete, reads its times and lets go of its inputs. Errors: as runs.
Status wait(LinkedSchedule& linked, const runtime::WaitLimits& limits = RunOptions().limits);

/// Waits until memory may be read by the host: for its owner, for all that touch the owner's memory, then makes it visible.
/// Errors: as synchronize().
Status make_readable(Machine& machine, const Placement& placement,
                     const runtime::WaitLimits& limits = RunOptions().limits);

/// The last step of make_readable(), for a caller that knows that all writers are complete: makes bytes visible on devices that
/// are not coherent with the host. Errors: as QueuedDevice::make_visible().
Status make_visible(Machine& machine, const Placement& placement);

/// Calls of all profiled runs since the last question, in order of runs; those of runs that are under way come later.
std::vector<CallRecord> take_records(LinkedSchedule& linked);
/// As take_records(), what the runs took on the host.
std::vector<RunTimes> take_times(LinkedSchedule& linked);

}  // namespace ignis::exec
