#pragma once

#include "ignis/codegen/optimize/loop_plan.h"

namespace ignis::codegen {

/// Chooses THREAD for a plan whose tiles and loops stand: the axes whose cut leaves the slowest thread the least to
/// compute and to read. None where there is but one tile. `why` gets the candidates with their times.
void choose_thread_axes(const Kernel& kernel, const Target& target, LoopPlan& plan, Notes& why);

}  // namespace ignis::codegen
