#pragma once

#include "ignis/engine/program_cache.h"
#include "ignis/engine/queues/plan_schedule.h"
#include "ignis/engine/queues/submit_program.h"
#include "ignis/exec/captured.h"
#include "ignis/exec/machine.h"
#include "ignis/exec/plan.h"
#include "ignis/runtime/device.h"

#include <memory>

namespace ignis::engine {

struct PlanCaptureOptions {
  bool is_profiled = false;                         ///< stamps around each call
  const SubmitCompiler* submit_compiler = nullptr;  ///< null: no submit programs
};

/// The capture of a compiled plan on the host: its ports are inputs and outputs of the caller's, its constants are held, its
/// arena is the link's. Errors: as plan_schedule(), compile_queues() and exec::Captured::make().
Result<exec::CapturedRef> capture_plan(exec::Plan plan,
                                       const std::shared_ptr<exec::Machine>& machine,
                                       const PlanCaptureOptions& options = {});

/// The same for code for `target`, made with an open device that has a queue; with submit programs for that target.
Result<exec::CapturedRef> capture_plan(const exec::Plan& plan,
                                       const std::shared_ptr<runtime::Device>& device,
                                       const Target& target,
                                       const std::shared_ptr<ProgramCache>& program_cache);

/// A plan as calls of the host, with the numbers of its ports as inputs and its constants where they lie.
/// Errors: as plan_schedule().
Result<PlanSchedule> schedule_for_host(exec::Plan plan, const exec::Machine& machine);
/// The template of a schedule that only the host runs. Errors: as TemplateCache::compile().
Result<exec::TemplateRef> compile_for_host(const exec::Schedule& schedule, exec::Machine& machine,
                                           const PlanCaptureOptions& options = {});

}  // namespace ignis::engine
