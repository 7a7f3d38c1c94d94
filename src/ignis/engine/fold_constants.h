#pragma once

#include "ignis/ir/graph.h"

#include <memory>
#include <unordered_map>
#include <vector>

namespace ignis::engine {

/// A graph's roots with its small constant parts computed.
struct FoldedGraph {
  std::vector<ir::Node> roots;
  /// What a node of the folded graph was before, where it changed; names and reports go by the old one.
  std::unordered_map<ir::Node, ir::Node> original;
};

/// Replaces every value that depends on constants only by its numbers, computed by the reference, when it and all it
/// comes from are small: batch norms become a scale and a shift, and no program is compiled for one use. Large
/// constants (weights that are re-laid or scaled) are left to kernels that run at load.
/// Errors: as interp::evaluate.
Result<FoldedGraph> fold_constants(const std::shared_ptr<ir::Graph>& graph,
                                   const std::vector<ir::Node>& roots);

}  // namespace ignis::engine
