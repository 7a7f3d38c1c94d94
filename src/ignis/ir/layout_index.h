#pragma once

#include "ignis/ir/graph.h"

#include <span>

namespace ignis::ir {

/// The element offset of a logical index under a layout, as an index expression; simplified.
Node flat_offset(Graph& graph, std::span<const Node> index, const Layout& layout);

}  // namespace ignis::ir
