#pragma once

#include "ignis/codegen/optimize/loop_plan.h"

namespace ignis::codegen {

/// What STAGE works on: a sum over a row whose terms the stored value takes again, element by element (softmax).
struct Stage {
  const ReduceSite* site = nullptr;  ///< the reduction that writes its terms into the stored row
  ir::Node repeat;                   ///< the part of the stored value that reads them there
};

/// Finds the reduction over `axis` and its repetition along the vector axis of `plan`. Errors: InvalidArgument saying
/// why the terms cannot be kept in the stored row.
Result<Stage> find_stage(const Kernel& kernel, const LoopPlan& plan, int axis);

}  // namespace ignis::codegen
