#pragma once

#include "ignis/codegen/optimize/loop_plan.h"

#include <vector>

namespace ignis::codegen {

/// Plans one action away from `plan`, each legal by verify_plan(), in an order that depends on the arguments alone: other
/// lanes, register tiles, vector and tile axes, loop orders, cache tiles, cuts for threads, partial sums, unrolled
/// copies, and SEGMENT, STAGE and SLIDE taken away or put there. What regroups sums is left out where the level forbids
/// it. `band`: as for choose_plan().
std::vector<LoopPlan> neighbour_plans(const Kernel& kernel, const LoopPlan& plan,
                                      const Target& target, FloatLevel level,
                                      const BandAxes* band = nullptr);

/// What a plan takes on one core at the most, in ns, by a model of multiply-adds, loads and bytes from each cache: for
/// ordering plans of one kernel, not for telling a time.
double estimate_ns(const Kernel& kernel, const LoopPlan& plan, const Target& target);

}  // namespace ignis::codegen
