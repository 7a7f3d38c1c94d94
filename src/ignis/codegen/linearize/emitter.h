#pragma once

#include "ignis/codegen/optimize/loop_plan.h"
#include "ignis/codegen/program.h"

#include <cstdint>

namespace ignis::codegen {

/// Writes the program of a kernel whose values are scalar and legal for the target, following a loop plan: vectors,
/// register tiles, accumulators, edge tiles and thread bounds appear here and nowhere else.
///
/// The kernel's addresses are detached. `parallel_units` receives the number of independent units of the thread loops.
Result<Program> emit_program(const Kernel& kernel, const LoopPlan& plan, FloatLevel level,
                             int64_t* parallel_units);

}  // namespace ignis::codegen
