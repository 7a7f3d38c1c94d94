#pragma once

#include "ignis/base/target.h"
#include "ignis/ir/graph.h"

namespace ignis::codegen {

/// a / b where `a` moves with a loop that `b` does not: a product with 1 / b, which is made once outside that loop. Only
/// where b is known to be no larger than what has a normal reciprocal; nothing under Strict. Addresses must still stand in
/// the kernel.
ir::Node share_reciprocals(ir::Graph& graph, const ir::Node& sink, FloatLevel level);

}  // namespace ignis::codegen
