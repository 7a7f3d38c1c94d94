#include "ignis/schedule/indexing.h"

#include "ignis/ir/range.h"
#include "ignis/ir/simplify.h"

namespace ignis::schedule {
namespace {

using ir::Graph;
using ir::Node;
using ir::Op;

Node weak(Graph& g, int64_t v) { return g.constant(DType::WeakInt, v); }
Node add(Graph& g, const Node& a, int64_t v) {
  return v == 0 ? a : ir::simplify(g, g.alu(Op::Add, {a, weak(g, v)}));
}

/// Row-major flattening of some axes, then splitting into others; equal axes at the border pass unchanged.
std::vector<Node> reshape_indices(Graph& g, const std::vector<Node>& at, const Shape& from,
                                  const Shape& to) {
  std::vector<Node> result(to.size());
  // Walk both shapes in groups whose products are equal: the smallest groups need the least arithmetic.
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    const size_t i0 = i, j0 = j;
    int64_t p = 1, q = 1;
    if (i < from.size()) p *= from[i++];
    if (j < to.size()) q *= to[j++];
    while (p != q) {
      if (p < q) {
        if (i == from.size()) break;
        p *= from[i++];
      } else {
        if (j == to.size()) break;
        q *= to[j++];
      }
    }
    // A run of ones belongs to the group before it.
    if (i == from.size() || j == to.size()) {
      while (i < from.size() && (from[i] == 1 || q != p)) p *= from[i++];
      while (j < to.size() && (to[j] == 1 || q != p)) q *= to[j++];
    }
    if (i - i0 == 1 && j - j0 == 1) {
      result[j0] = at[i0];
      continue;
    }
    Node flat = weak(g, 0);
    for (size_t k = i0; k < i; ++k) {
      if (from[k] == 1) continue;
      flat = g.alu(Op::Add, {g.alu(Op::Mul, {flat, weak(g, from[k])}), at[k]});
    }
    flat = ir::simplify(g, flat);
    int64_t stride = 1;
    for (size_t k = j; k-- > j0;) {
      if (to[k] == 1) {
        result[k] = weak(g, 0);
        continue;
      }
      Node digit = flat;
      if (stride != 1) digit = g.alu(Op::Floordiv, {digit, weak(g, stride)});
      stride *= to[k];
      if (stride < q) digit = g.alu(Op::Floormod, {digit, weak(g, to[k])});
      result[k] = ir::simplify(g, digit);
    }
  }
  return result;
}

}  // namespace

Node in_bounds(Graph& g, const Node& index, int64_t extent) {
  ir::RangeAnalysis ranges;
  const ir::Interval span = ranges.interval(index);
  Node low, high;
  if (span.lo < 0) low = g.alu(Op::Cmplt, {weak(g, -1), index});
  if (span.hi >= extent) high = g.alu(Op::Cmplt, {index, weak(g, extent)});
  return both(g, low, high);
}

Node both(Graph& g, const Node& a, const Node& b) {
  if (!a) return b;
  if (!b || a == b) return a;
  Node result = a;
  for (const Node& clause : clauses(b)) {
    bool known = false;
    for (const Node& have : clauses(result)) known |= have == clause;
    if (!known) result = g.alu(Op::And, {result, clause});
  }
  return result;
}

std::vector<Node> clauses(const Node& condition) {
  if (!condition) return {};
  std::vector<Node> result, stack{condition};
  while (!stack.empty()) {
    const Node n = stack.back();
    stack.pop_back();
    if (n.is(Op::And) && n.dtype() == DType::Bool) {
      stack.push_back(n.src(1));
      stack.push_back(n.src(0));
    } else {
      result.push_back(n);
    }
  }
  return result;
}

Indices source_indices(Graph& g, const Node& node, const Indices& indices) {
  const Shape& from = node.src(0).shape();
  const std::vector<int64_t>& arg = node.arg().ints;
  Indices out;
  out.valid = indices.valid;
  switch (node.op()) {
    case Op::Contiguous: return indices;
    case Op::Reshape: out.at = reshape_indices(g, indices.at, node.shape(), from); return out;
    case Op::Expand:
      for (size_t i = 0; i < from.size(); ++i) {
        out.at.push_back(from[i] == 1 ? weak(g, 0) : indices.at[i]);
      }
      return out;
    case Op::Permute:
      out.at.resize(from.size());
      for (size_t i = 0; i < from.size(); ++i) out.at[static_cast<size_t>(arg[i])] = indices.at[i];
      return out;
    case Op::Pad:
      for (size_t i = 0; i < from.size(); ++i) {
        out.at.push_back(add(g, indices.at[i], -arg[2 * i]));
        if (arg[2 * i] != 0 || arg[2 * i + 1] != 0) {
          out.valid = both(g, out.valid, in_bounds(g, out.at[i], from[i]));
        }
      }
      return out;
    case Op::Shrink:
      for (size_t i = 0; i < from.size(); ++i) out.at.push_back(add(g, indices.at[i], arg[2 * i]));
      return out;
    case Op::Flip:
      for (size_t i = 0; i < from.size(); ++i) {
        out.at.push_back(
            arg[i] == 0
                ? indices.at[i]
                : ir::simplify(g, g.alu(Op::Add, {g.alu(Op::Mul, {indices.at[i], weak(g, -1)}),
                                                  weak(g, from[i] - 1)})));
      }
      return out;
    case Op::Window: {
      const auto axis = static_cast<size_t>(arg[0]);
      out.at.assign(indices.at.begin(), indices.at.end() - 1);
      out.at[axis] =
          ir::simplify(g, g.alu(Op::Add, {g.alu(Op::Mul, {indices.at[axis], weak(g, arg[2])}),
                                          g.alu(Op::Mul, {indices.at.back(), weak(g, arg[3])})}));
      return out;
    }
    default: break;
  }
  IGNIS_CHECK(false) << "not a movement with one source: " << to_string(node.op());
  return out;
}

}  // namespace ignis::schedule
