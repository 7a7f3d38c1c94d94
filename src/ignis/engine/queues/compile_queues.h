#pragma once

#include "ignis/base/result.h"
#include "ignis/engine/queues/batches.h"
#include "ignis/engine/queues/copies.h"
#include "ignis/engine/queues/device_table.h"
#include "ignis/exec/queue_template.h"

#include <optional>
#include <vector>

namespace ignis::engine {

/// What a template depends on besides its schedule and the devices.
struct QueueOptions {
  QueueChoice queues;
  StageOptions stage;
  bool is_profiled = false;
  /// Schedules of at least so many calls, as handed in, bake their inputs' addresses at link. A captured schedule, whose
  /// inputs move from run to run, asks for a threshold beyond its length.
  int link_time_threshold = 64;
  /// Sets of inputs that may lie over each other at run: each set counts as one base.
  std::vector<std::vector<int>> aliased_inputs;
  /// Holds every batch against the invariants of queue spec 6.3 and fails with Internal. Unset: in builds with tests.
  std::optional<bool> is_checked;
};

/// Checks a schedule, splits its calls into lanes and its copies into transfers (queue spec 3.1, steps 2 to 4). What comes out
/// is, with the options and the devices, all that a template depends on: the key of a cache.
/// Errors: InvalidArgument saying what in the schedule does not fit together; as decompose_copy; Unsupported with the reason
/// NotMappable when a program's device cannot reach one of its arguments.
Result<exec::Schedule> prepare_schedule(const exec::Schedule& schedule, const DeviceTable& table,
                                        const StageOptions& stage, const QueueHooks& hooks);

/// Batches and host runs of a prepared schedule, with their streams. `call_count` is that of the schedule as handed in.
/// Errors: InvalidArgument as above; Internal with the invariant as reason when a check fails.
Result<exec::QueueTemplate> make_template(const exec::Schedule& prepared, size_t call_count,
                                          const DeviceTable& table, const QueueOptions& options);

/// Both: a schedule to its template. Nothing is encoded and no address is known yet.
Result<exec::QueueTemplate> compile_queues(const exec::Schedule& schedule, const DeviceTable& table,
                                           const QueueOptions& options, const QueueHooks& hooks);

}  // namespace ignis::engine
