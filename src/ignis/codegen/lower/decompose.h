#pragma once

#include "ignis/base/target.h"
#include "ignis/ir/graph.h"

namespace ignis::codegen {

/// Replaces operations that programs do not have, or have only for some operands, by ones they do:
///  - Floordiv and Floormod by shifts and masks for powers of two, else by Cdiv and Cmod with a correction that value
///    ranges may make unnecessary;
///  - Cdiv and Cmod get guards, so that x / 0 and x % 0 are 0 and the lowest value by -1 wraps;
///  - Shl and Shr get guards, so that counts of the width or more (negative ones are huge) shift everything out;
///  - Reciprocal becomes Fdiv, division by a power of two a product, |x| written as where(x < 0, -x, x + 0) a mask;
///  - integer Pow becomes squarings, arithmetic on bool becomes logic.
/// Expects strong dtypes (commit_weak).
ir::Node decompose_ops(ir::Graph& graph, const ir::Node& sink, const Target& target);

}  // namespace ignis::codegen
