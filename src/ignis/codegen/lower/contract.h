#pragma once

#include "ignis/base/target.h"
#include "ignis/ir/graph.h"

namespace ignis::codegen {

/// a * b + c, a * b - c and c - a * b on floats become one Mulacc where the product has no other user: the one place
/// where a product loses its rounding. Nothing under Strict, nor on a target without the instruction.
ir::Node contract_multiply_add(ir::Graph& graph, const ir::Node& sink, FloatLevel level,
                               const Target& target);

}  // namespace ignis::codegen
