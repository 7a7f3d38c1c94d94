#include "ignis/codegen/lower/contract.h"

#include "ignis/codegen/lower/walk.h"

namespace ignis::codegen {

using ir::Node;
using ir::Op;

Node contract_multiply_add(ir::Graph& graph, const Node& sink, FloatLevel level,
                           const Target& target) {
  if (level == FloatLevel::Strict || !target.has_fma) return sink;
  std::unordered_map<Node, int> uses;
  for (const Node& node : ir::toposort(sink)) {
    for (int i = 0; i < node.source_count(); ++i) ++uses[node.src(i)];
  }
  return rebuild_all(sink, [&](const Node& node, std::span<const Node> sources) {
    const bool is_sum = node.is(Op::Add) || node.is(Op::Sub);
    if (!is_sum || !is_float(node.dtype())) return graph.rebuild(node, sources);
    // Uses are those before the pass; a product that was itself rewritten is still a Mul here.
    const auto is_product = [&](int i) {
      return node.src(i).is(Op::Mul) && sources[static_cast<size_t>(i)].is(Op::Mul) &&
             uses.at(node.src(i)) == 1;
    };
    const auto negated = [&](const Node& x) {
      return graph.make(Op::Neg, x.dtype(), {x}, {}, x.lanes());
    };
    const auto fused = [&](const Node& a, const Node& b, const Node& c) {
      return graph.make(Op::Mulacc, node.dtype(), {a, b, c}, {}, node.lanes());
    };
    if (is_product(0)) {
      const Node product = sources[0];
      return fused(product.src(0), product.src(1),
                   node.is(Op::Add) ? sources[1] : negated(sources[1]));
    }
    if (is_product(1)) {
      const Node product = sources[1];
      const Node a = node.is(Op::Add) ? product.src(0) : negated(product.src(0));
      return fused(a, product.src(1), sources[0]);
    }
    return graph.rebuild(node, sources);
  });
}

}  // namespace ignis::codegen
