#pragma once

#include "ignis/ir/node.h"

namespace ignis::codegen {

/// Checks a kernel between two passes: one Store under one Sink, operands of one dtype (a weak one agrees with all),
/// bool conditions, distinct ranges, and Index as [param, one integer]. With `has_addresses`, the offset of every
/// access without a gate provably lies inside its buffer's storage.
///
/// Test builds run it after each pass (IGNIS_VERIFY_PASSES). Errors: Internal, naming the node.
Status verify_between_passes(const ir::Node& sink, bool has_addresses);

}  // namespace ignis::codegen
