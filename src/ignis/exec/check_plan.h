#pragma once

#include "ignis/exec/plan.h"

namespace ignis::exec {

/// Checks that everything in `plan` fits together: indices, sizes, arena ranges, ports.
/// Errors: InvalidArgument with both values.
Status check_plan(const Plan& plan);

}  // namespace ignis::exec
