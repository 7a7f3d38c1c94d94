#include "ignis/codegen/lower/reciprocal.h"

#include "ignis/codegen/lower/walk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace ignis::codegen {

using ir::Node;
using ir::Op;

namespace {

/// The ranges that each value changes with, by id.
class Ranges {
 public:
  explicit Ranges(const Node& sink) {
    for (const Node& n : ir::toposort(sink)) {
      std::set<int64_t>& own = of_[n];
      if (n.is(Op::Range)) own.insert(n.id_arg());
      for (int i = 0; i < n.source_count(); ++i) {
        if (n.is(Op::Reduce) && i > 0) continue;
        own.insert(of_.at(n.src(i)).begin(), of_.at(n.src(i)).end());
      }
      for (int i = 1; n.is(Op::Reduce) && i < n.source_count(); ++i) own.erase(n.src(i).id_arg());
    }
  }
  /// Whether `a` changes with all that `b` changes with, and with more.
  bool moves_more(const Node& a, const Node& b) const {
    const std::set<int64_t>&of_a = of_.at(a), &of_b = of_.at(b);
    return of_a.size() > of_b.size() &&
           std::includes(of_a.begin(), of_a.end(), of_b.begin(), of_b.end());
  }

 private:
  std::unordered_map<Node, std::set<int64_t>> of_;
};

/// What |n| does not exceed unless it is NaN; infinity where nothing is known.
double magnitude_bound(const Node& n) {
  if (n.is_const()) return std::abs(n.const_float());
  if (n.is(Op::Exp) && n.src(0).is(Op::Min)) {
    for (int i = 0; i < 2; ++i) {
      if (n.src(0).src(i).is_const()) return std::exp(n.src(0).src(i).const_float());
    }
  }
  if (n.is(Op::Reduce) && n.reduce_op() == Op::Add) {
    double terms = 1;
    for (int i = 1; i < n.source_count(); ++i)
      terms *= static_cast<double>(n.src(i).range_extent());
    return terms * magnitude_bound(n.src(0));
  }
  if (n.is(Op::Add)) return magnitude_bound(n.src(0)) + magnitude_bound(n.src(1));
  return std::numeric_limits<double>::infinity();
}

}  // namespace

Node share_reciprocals(ir::Graph& graph, const Node& sink, FloatLevel level) {
  constexpr double kMost = 0x1p126;  // has a normal reciprocal in float32
  const std::vector<Node> nodes = ir::toposort(sink);
  const auto may_be = [](const Node& n) {
    const bool is_wide = n.dtype() == DType::Float32 || n.dtype() == DType::Float64;
    return n.is(Op::Fdiv) && is_wide && magnitude_bound(n.src(1)) <= kMost;
  };
  if (level == FloatLevel::Strict || std::none_of(nodes.begin(), nodes.end(), may_be)) return sink;
  const Ranges ranges(sink);
  return rebuild_all(sink, [&](const Node& node, std::span<const Node> sources) {
    if (!may_be(node) || node.src(1).is_const() || !ranges.moves_more(node.src(0), node.src(1)))
      return graph.rebuild(node, sources);
    const DType dtype = node.dtype();
    const Node one = graph.constant_float(dtype, 1);
    return graph.make(Op::Mul, dtype, {sources[0], graph.make(Op::Fdiv, dtype, {one, sources[1]})});
  });
}

}  // namespace ignis::codegen
