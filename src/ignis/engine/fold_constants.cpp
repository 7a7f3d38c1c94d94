#include "ignis/engine/fold_constants.h"

#include "ignis/interp/interp.h"
#include "ignis/schedule/cheap_tables.h"
#include "ignis/tensor/core.h"

#include <algorithm>
#include <cstring>

namespace ignis::engine {
namespace {

using ir::Node;
using ir::Op;

// Elements of the largest value in a part that is folded. The reference takes some 10 ns an element and operation,
// a compiled program some 10 ms before its first.
constexpr int64_t kMaxElements = int64_t{1} << 16;

struct Facts {
  bool is_constant = true;  // reaches no Param
  bool reaches_data =
      false;  // a Buffer or a reduction: not just a few scalars, which the simplifier folds
  int64_t most_elements = 0;  // of the node and everything below, stored data excluded
};

bool computes(const Node& node) {
  return ir::is_elementwise(node.op()) || node.is(Op::ReduceAxes) || node.is(Op::Gather);
}

bool is_foldable(const Node& node, const Facts& facts) {
  return facts.is_constant && facts.reaches_data && facts.most_elements <= kMaxElements &&
         computes(node) && !is_weak(node.dtype());
}

Facts facts_of(const Node& node, const std::unordered_map<Node, Facts>& known) {
  Facts facts;
  facts.is_constant = !node.is(Op::Param);
  facts.reaches_data = node.is(Op::Buffer) || node.is(Op::ReduceAxes);
  if (!node.is(Op::Buffer)) facts.most_elements = element_count(node.shape());
  for (int i = 0; i < node.source_count(); ++i) {
    const Facts& source = known.at(node.src(i));
    facts.is_constant &= source.is_constant;
    facts.reaches_data |= source.reaches_data;
    facts.most_elements = std::max(facts.most_elements, source.most_elements);
  }
  return facts;
}

// The candidates whose values somebody needs who is none: only those become data.
std::vector<Node> find_borders(const std::vector<Node>& order, const std::vector<Node>& roots) {
  std::unordered_map<Node, Facts> facts;
  std::unordered_map<Node, bool> is_border;
  const std::unordered_set<Node> cheap_tables = schedule::find_cheap_tables(order);
  const auto is_candidate = [&](const Node& node, const Facts& of) {
    return is_foldable(node, of) && cheap_tables.count(node) == 0;
  };
  for (const Node& node : order) {
    facts.emplace(node, facts_of(node, facts));
    if (is_candidate(node, facts.at(node))) continue;
    for (int i = 0; i < node.source_count(); ++i) {
      if (is_candidate(node.src(i), facts.at(node.src(i)))) is_border[node.src(i)] = true;
    }
  }
  for (const Node& root : roots) {
    if (is_candidate(root, facts.at(root))) is_border[root] = true;
  }
  std::vector<Node> borders;
  for (const Node& node : order) {
    if (is_border.contains(node)) borders.push_back(node);
  }
  return borders;
}

bool is_uniform(const HostTensor& value) {
  const size_t size = static_cast<size_t>(size_bytes(value.dtype));
  if (value.bytes.size() < size || value.bytes.empty()) return false;
  return std::memcmp(value.bytes.data(), value.bytes.data() + size, value.bytes.size() - size) == 0;
}

// One number everywhere stays visible to the simplifier; the sign of a zero would be lost on the way.
Node constant_node(const std::shared_ptr<ir::Graph>& graph, HostTensor value) {
  if (is_uniform(value)) {
    if (!is_float(value.dtype)) {
      return tensor::Tensor::full_int(graph, value.shape, element_as_int(value, 0), value.dtype)
          .node();
    }
    const double number = element_as_double(value, 0);
    if (number != 0) return tensor::Tensor::full(graph, value.shape, number, value.dtype).node();
  }
  return tensor::Tensor::constant(graph, std::move(value)).node();
}

}  // namespace

Result<FoldedGraph> fold_constants(const std::shared_ptr<ir::Graph>& graph,
                                   const std::vector<Node>& roots) {
  FoldedGraph folded;
  folded.roots = roots;
  const std::vector<Node> order = ir::toposort(roots);
  const std::vector<Node> borders = find_borders(order, roots);
  if (borders.empty()) return folded;

  std::unordered_map<Node, Node> now;
  IGNIS_TRY(interp::evaluate_each(borders, {}, [&](size_t i, HostTensor value) -> Status {
    now[borders[i]] = constant_node(graph, std::move(value));
    return {};
  }));
  std::vector<Node> sources;
  for (const Node& node : order) {
    const auto [at, is_new] = now.emplace(node, node);
    if (is_new && node.source_count() != 0) {
      sources.clear();
      for (int i = 0; i < node.source_count(); ++i) sources.push_back(now.at(node.src(i)));
      at->second = graph->rebuild(node, sources);
    }
    if (at->second != node) folded.original.emplace(at->second, node);
  }
  for (Node& root : folded.roots) root = now.at(root);
  return folded;
}

}  // namespace ignis::engine
