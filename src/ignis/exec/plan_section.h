#pragma once

#include "ignis/base/byte_io.h"
#include "ignis/exec/artifact.h"

#include <functional>

namespace ignis::exec {

/// Writes one target's plan and its capture. `place` says where in the weights' region a constant lies.
/// Errors: as write_captured().
Status write_plan(ByteWriter& to, const TargetNeeds& needs, const Plan& plan,
                  const std::function<uint64_t(const BufferPlan&)>& place);
/// Only the first fields. Errors: InvalidArgument.
Result<TargetNeeds> read_needs(std::span<const std::byte> section);
/// Reads and checks a plan that may hold anything. Its constants point into `weights`, which `owner` keeps.
/// Errors: InvalidArgument saying what does not fit.
Result<Plan> read_plan(std::span<const std::byte> section, std::span<const std::byte> weights,
                       const std::shared_ptr<const void>& owner);

}  // namespace ignis::exec
