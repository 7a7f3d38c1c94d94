#include "ignis/codegen/lower/weak.h"

#include "ignis/ir/range.h"

#include <limits>
#include <map>

namespace ignis::codegen {

using ir::Node;
using ir::Op;

namespace {

class Committer {
 public:
  explicit Committer(ir::Graph& graph) : graph_(graph) {}

  Node run(const Node& sink) {
    for (const Node& node : ir::toposort(sink)) {  // sources first: commit() then never goes deep
      if (!is_bare(node)) commit(node, false);
    }
    return commit(sink, false);
  }

 private:
  /// Constants and ranges take their width from whoever reads them.
  static bool is_bare(const Node& node) {
    return is_weak(node.dtype()) && (node.is(Op::Const) || node.is(Op::Range));
  }

  /// int32 or int64 by what the value can be.
  DType natural_int(const Node& node) {
    const ir::Interval& values = ranges_.of(node).interval;
    const bool fits = values.lo >= std::numeric_limits<int32_t>::min() &&
                      values.hi <= std::numeric_limits<int32_t>::max();
    return fits ? DType::Int32 : DType::Int64;
  }

  /// Width at which a weak node is computed: no operand is narrowed on the way.
  DType width_of(const Node& node, bool wide_float) {
    if (node.dtype() == DType::WeakFloat) return wide_float ? DType::Float64 : DType::Float32;
    const auto known = widths_.find(node);
    if (known != widths_.end()) return known->second;
    DType width = natural_int(node);
    if (ir::is_elementwise(node.op()) && !node.is(Op::Cast)) {
      for (int i = node.is(Op::Where) ? 1 : 0; i < node.source_count(); ++i) {
        if (node.src(i).dtype() == DType::WeakInt && width_of(node.src(i), false) == DType::Int64)
          width = DType::Int64;
      }
    }
    if (node.is(Op::Cast) && is_float(node.src(0).dtype()))
      width = DType::Int64;  // saturates there
    widths_.emplace(node, width);
    return width;
  }

  /// `node` as a value of the strong dtype `to`.
  Node as(const Node& node, DType to) {
    if (node.is_invalid()) return node;
    if (is_bare(node)) {
      if (node.is(Op::Range)) return graph_.cast(commit(node, false), to);
      return is_float(node.dtype()) ? graph_.constant_float(to, node.const_float())
             : is_float(to)         ? graph_.constant_float(to, node.const_float())
                                    : graph_.constant(to, node.const_int());
    }
    return graph_.cast(commit(node, to == DType::Float64), to);
  }

  Node commit(const Node& node, bool wide_float) {
    const auto key = std::make_pair(node.id(), wide_float && node.dtype() == DType::WeakFloat);
    const auto known = done_.find(key);
    if (known != done_.end()) return known->second;
    const Node result = compute(node, key.second);
    done_.emplace(key, result);
    return result;
  }

  Node compute(const Node& node, bool wide_float) {
    if (node.is(Op::Range)) {
      if (node.src(0).is_const()) return node;
      return graph_.rebuild(node, std::vector<Node>{commit(node.src(0), false)});
    }
    if (node.is_invalid()) return node;
    if (node.is(Op::Const))
      return is_weak(node.dtype()) ? as(node, width_of(node, wide_float)) : node;
    if (ir::is_elementwise(node.op())) return elementwise(node, wide_float);
    std::vector<Node> sources;
    for (int i = 0; i < node.source_count(); ++i) sources.push_back(source_of(node, i));
    DType dtype = node.dtype();
    if (is_weak(dtype))
      dtype =
          node.is(Op::Reduce) || !sources.empty() ? sources[0].dtype() : width_of(node, wide_float);
    return rebuilt(node, dtype, sources);
  }

  /// A source of a node that is no elementwise operation.
  Node source_of(const Node& node, int i) {
    const Node source = node.src(i);
    if (source.is(Op::Range)) return commit(source, false);
    if (!is_weak(source.dtype()) || source.is_invalid()) return commit(source, false);
    if (node.is(Op::Index)) return as(source, DType::Int64);
    if (node.is(Op::Store) && i == 1) return as(source, node.src(0).dtype());
    if (node.is(Op::Load) && i == 1) return as(source, node.dtype());
    if (node.is(Op::Reduce) && i == 0) {
      // A sum may leave the range of its terms.
      return as(source, source.dtype() == DType::WeakInt ? DType::Int64 : DType::Float32);
    }
    return as(source, width_of(source, false));
  }

  Node elementwise(const Node& node, bool wide_float) {
    const Op op = node.op();
    std::vector<Node> sources;
    if (op == Op::Cast) {
      const DType to = is_weak(node.dtype()) ? width_of(node, wide_float) : node.dtype();
      const Node from = node.src(0);
      if (is_bare(from)) return as(from, to);
      return graph_.cast(commit(from, to == DType::Float64), to);
    }
    // Operands meet at the join of their dtypes; when all are weak, at the widest of their own widths.
    const int first = op == Op::Where ? 1 : 0;
    DType meet = DType::Bool;
    for (int i = first; i < node.source_count(); ++i) meet = promote(meet, node.src(i).dtype());
    if (!is_weak(node.dtype()) && !ir::is_comparison(op)) meet = promote(meet, node.dtype());
    if (is_weak(meet)) meet = weak_meet(node, meet, first, wide_float);
    if (op == Op::Where) sources.push_back(commit(node.src(0), false));
    for (int i = first; i < node.source_count(); ++i) {
      const Node source = node.src(i);
      const bool is_count = (op == Op::Shl || op == Op::Shr) && i == 1;
      if (is_weak(source.dtype())) {
        const DType to =
            is_count ? (is_weak(node.src(0).dtype()) ? meet : node.src(0).dtype()) : meet;
        sources.push_back(as(source, to));
      } else {
        const Node value = commit(source, false);
        sources.push_back(is_weak(node.dtype()) && !is_count ? graph_.cast(value, meet) : value);
      }
    }
    DType dtype = node.dtype();
    if (is_weak(dtype)) dtype = meet;
    return rebuilt(node, dtype, sources);
  }

  /// Where only weak operands meet.
  DType weak_meet(const Node& node, DType meet, int first, bool wide_float) {
    if (!ir::is_comparison(node.op()) && node.dtype() == meet) return width_of(node, wide_float);
    if (meet == DType::WeakFloat) return DType::Float32;
    for (int i = first; i < node.source_count(); ++i) {
      if (node.src(i).dtype() == DType::WeakInt && width_of(node.src(i), false) == DType::Int64)
        return DType::Int64;
    }
    return DType::Int32;
  }

  Node rebuilt(const Node& node, DType dtype, const std::vector<Node>& sources) {
    if (dtype == node.dtype()) return graph_.rebuild(node, sources);
    return graph_.make(node.op(), dtype, sources, node.arg(), node.lanes());
  }

  ir::Graph& graph_;
  ir::RangeAnalysis ranges_;
  std::map<std::pair<uint32_t, bool>, Node> done_;
  std::unordered_map<Node, DType> widths_;
};

}  // namespace

Node commit_weak(ir::Graph& graph, const Node& sink) { return Committer(graph).run(sink); }

}  // namespace ignis::codegen
