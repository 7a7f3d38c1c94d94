#pragma once

#include "ignis/ir/graph.h"

namespace ignis::codegen {

/// Gives every weak value of a kernel a width. Offsets of memory (the sources of Index) become int64; elsewhere a weak
/// integer becomes int32 when its value range and those of its operands fit, else int64; a weak float becomes float32,
/// or float64 where a float64 consumer asks for it. Constants take the width of what they meet. A value is never
/// narrowed: a consumer's narrower dtype is one Cast at the end.
///
/// After it the only weak nodes are Ranges and their ends, read as Cast(int32 or int64, Range), and Invalid.
ir::Node commit_weak(ir::Graph& graph, const ir::Node& sink);

}  // namespace ignis::codegen
