#pragma once

#include "ignis/ir/node.h"

#include <span>

namespace ignis::ir {

/// Checks a tensor graph: form of every node, operand dtypes, and that nothing of a kernel (loops, addresses, effects)
/// is in it. A weak type and Invalid agree with every dtype.
/// Errors: Internal, naming the node.
Status verify_tensor(std::span<const Node> roots);
Status verify_tensor(const Node& root);

/// Checks a kernel, a Sink of stores, before loops are chosen:
///  - form and operand dtypes as above; no movement, no reduction of axes, no vectors, no registers;
///  - Load and Store go through Index, Index through a Param with one integer for each of its dims;
///  - every range has its own id; what a stored value leaves open the store's index (or an End) closes, and a range is
///    not both reduced over and stored over;
///  - every index stays inside its Param, its halo included, as far as value ranges (of the simplified index, under
///    its gate) prove it. An index that carries a gate, or whose access does, may stay unproven.
/// Errors: Internal, naming the node.
Status verify_kernel(const Node& sink);

}  // namespace ignis::ir
