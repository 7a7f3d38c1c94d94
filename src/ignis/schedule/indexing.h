#pragma once

#include "ignis/ir/graph.h"

#include <vector>

namespace ignis::schedule {

/// Where a value is read inside a kernel: one index expression per axis, and the condition under which the index
/// lies inside it (null: always). Outside, the value counts as 0: padding.
struct Indices {
  std::vector<ir::Node> at;
  ir::Node valid;
  bool operator==(const Indices&) const = default;
};

/// The condition `0 <= index < extent`, or null when value ranges prove it. Built the same way for padding and for
/// halo detection, so that the two can be compared by identity.
ir::Node in_bounds(ir::Graph& graph, const ir::Node& index, int64_t extent);
/// a && b where null means true.
ir::Node both(ir::Graph& graph, const ir::Node& a, const ir::Node& b);
/// The clauses of a condition built by both().
std::vector<ir::Node> clauses(const ir::Node& condition);

/// Translates the index of a movement node's value (Reshape, Expand, Permute, Pad, Shrink, Flip, Window, Contiguous)
/// into the index of its source.
Indices source_indices(ir::Graph& graph, const ir::Node& movement, const Indices& indices);

}  // namespace ignis::schedule
