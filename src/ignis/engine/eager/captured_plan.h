#pragma once

#include "ignis/exec/captured.h"
#include "ignis/exec/machine.h"
#include "ignis/exec/plan.h"

namespace ignis::engine {

/// A compiled model as a capture of the host's: its ports are memory that the
/// caller brings to each replay (exec::Replay::run_raw), its constants are
/// weights. `machine` has the host as a device of the chain, whose encoder
/// writes the words. `threads`: as PlanScheduleOptions. Errors: as
/// plan_schedule(), compile_queues(), encode_template() and Captured::make().
Result<exec::CapturedRef> capture_plan(const exec::Plan& plan, const exec::Machine& machine,
                                       int threads);

}  // namespace ignis::engine
