// Validity: what a gate guarantees simplifies the index it guards.

#include "ignis/ir/simplify.h"

#include <algorithm>

namespace ignis::ir {
namespace {

struct Bound {
  Node subject;  // X of X < c and c < X
  Interval interval;
};

// The clauses of an And chain as intervals of their subjects; other clauses say nothing here.
std::vector<Bound> bounds_of(const Node& gate, RangeAnalysis& ranges) {
  std::vector<Bound> bounds;
  const auto narrow = [&](const Node& subject, const Interval& by) {
    for (Bound& b : bounds) {
      if (b.subject != subject) continue;
      b.interval = {std::max(b.interval.lo, by.lo), std::min(b.interval.hi, by.hi)};
      return;
    }
    const Interval known = ranges.interval(subject);
    bounds.push_back({subject, {std::max(known.lo, by.lo), std::min(known.hi, by.hi)}});
  };
  std::vector<Node> stack{gate};
  while (!stack.empty()) {
    const Node clause = stack.back();
    stack.pop_back();
    if (clause.is(Op::And)) {
      stack.push_back(clause.src(1));
      stack.push_back(clause.src(0));
      continue;
    }
    if (clause.source_count() != 2 || clause.src(0).dtype() != DType::WeakInt) continue;
    const Node a = clause.src(0), b = clause.src(1);
    if (clause.is(Op::Cmplt) && b.is_const())
      narrow(a, Interval{Interval::kNoLow, b.const_int()} - Interval::point(1));
    if (clause.is(Op::Cmplt) && a.is_const())
      narrow(b, Interval{a.const_int(), Interval::kNoHigh} + Interval::point(1));
    if (clause.is(Op::Cmpeq) && b.is_const()) narrow(a, Interval::point(b.const_int()));
  }
  return bounds;
}

struct Cost {
  int divisions = 0, nodes = 0;
  bool has_load = false;
  bool operator<(const Cost& o) const {
    return divisions != o.divisions ? divisions < o.divisions : nodes < o.nodes;
  }
};
Cost cost_of(const Node& index) {
  Cost cost;
  for (const Node& n : toposort(index)) {
    ++cost.nodes;
    cost.divisions +=
        n.is(Op::Floordiv) || n.is(Op::Floormod) || n.is(Op::Cdiv) || n.is(Op::Cmod) ? 1 : 0;
    cost.has_load |= n.is(Op::Load);
  }
  return cost;
}

}  // namespace

// where(gate, index, Invalid) with a division in the index: each bounded subject X becomes a fresh variable with that
// bound. A subject that is a sum replaces the one of its atoms that has coefficient 1 or -1, by X minus the others,
// so that whole occurrences of X turn into the variable. Taken when fewer divisions, or else fewer nodes, are left.
Node Simplifier::rewrite_gated(const Node& node) {
  const Node gate = node.src(0), index = node.src(1);
  const Cost before = cost_of(index);
  if (before.divisions == 0 || before.has_load) return Node();
  std::unordered_map<Node, Node> forth, back;
  for (const Bound& bound : bounds_of(gate, ranges_)) {
    if (bound.interval.lo > bound.interval.hi)
      return graph_.invalid(node.dtype());  // the gate is never open
    if (bound.interval == interval(bound.subject)) continue;
    Affine subject = affine(bound.subject);
    const auto replaced =
        std::find_if(subject.terms.begin(), subject.terms.end(), [&](const auto& term) {
          return (term.second == 1 || term.second == -1) && !forth.contains(term.first);
        });
    if (replaced == subject.terms.end()) continue;
    const Node atom = replaced->first;
    const int64_t sign = replaced->second;
    const std::string name = "gate" + std::to_string(depth_) + "." + std::to_string(forth.size());
    const Node variable = graph_.make(Op::Special, DType::WeakInt, std::span<const Node>{},
                                      Arg{{bound.interval.lo, bound.interval.hi}, name});
    // X = sign*atom + rest, so atom = sign*(X - rest).
    std::erase_if(subject.terms, [&](const auto& term) { return term.first == atom; });
    const Node rest = node_of(subject);
    const Node difference = graph_.alu(Op::Sub, {variable, rest});
    forth[atom] = sign == 1 ? difference : graph_.alu(Op::Neg, {difference});
    back[variable] = bound.subject;
  }
  if (forth.empty()) return Node();
  Simplifier inner(graph_, level_);
  inner.depth_ = depth_ + 1;  // its own variables get other names
  const Node bounded = inner(substitute(graph_, index, forth));
  const Node result = inner(substitute(graph_, bounded, back));
  if (!(cost_of(result) < before)) return Node();
  return graph_.make(Op::Where, node.dtype(), {gate, result, node.src(2)});
}

}  // namespace ignis::ir
