#pragma once

#include "ignis/ir/node.h"

#include <span>

namespace ignis::ir {

/// The most elements, and the largest extent, an IR shape may have.
inline constexpr int64_t kMaxElements = int64_t{1} << 47;
inline constexpr int kMaxRank = 64;

/// Checks that a node can be made and read: number of sources, form of the arg, shapes of the sources. What it accepts
/// passes Graph::make and every accessor of Node. Says nothing about meaning; that is verify.h.
/// Errors: InvalidArgument.
Status check_structure(Op op, DType dtype, int lanes, std::span<const Node> sources,
                       const Arg& arg);

}  // namespace ignis::ir
