#pragma once

#include "ignis/ir/graph.h"

#include <span>
#include <unordered_map>
#include <vector>

namespace ignis::codegen {

/// Rebuilds what `root` reaches, sources first: `rewrite(node, new_sources)` gives the node to put in place of `node`
/// (often `graph.rebuild(node, new_sources)`). Results are not entered again.
template <typename Rewrite>
ir::Node rebuild_all(const ir::Node& root, const Rewrite& rewrite) {
  std::unordered_map<ir::Node, ir::Node> done;
  std::vector<ir::Node> sources;
  for (const ir::Node& node : ir::toposort(root)) {
    sources.clear();
    for (int i = 0; i < node.source_count(); ++i) sources.push_back(done.at(node.src(i)));
    done.emplace(node, rewrite(node, std::span<const ir::Node>(sources)));
  }
  return done.at(root);
}

}  // namespace ignis::codegen
