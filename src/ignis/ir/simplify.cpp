#include "ignis/ir/simplify.h"

#include "ignis/ir/fold.h"
#include "ignis/ir/rules.h"

#include <algorithm>
#include <array>

namespace ignis::ir {
namespace {

bool is_true(const Node& n) {
  return n.dtype() == DType::Bool && n.is_const() && n.const_int() != 0;
}
bool is_not(const Node& n) { return n.is(Op::Cmpne) && is_true(n.src(1)); }
// where(gate, value, Invalid)
bool is_gated(const Node& n) { return n.is(Op::Where) && n.src(2).is_invalid(); }

// In the order they are tried. Rows leave fewer or cheaper nodes.
const std::array<const RuleTable*, 7>& simplifier_tables() {
  static const std::array<const RuleTable*, 7> tables{
      &integer_rules(), &wrapping_rules(), &index_rules(), &compare_rules(),
      &bool_rules(),    &where_rules(),    &float_rules()};
  return tables;
}

// No chain of rewrites of one call is longer: a safety net against rules that undo each other.
constexpr int64_t kMaxSteps = 4'000'000;

}  // namespace

Simplifier::Simplifier(Graph& graph, FloatLevel level)
    : graph_(graph),
      level_(level),
      context_{graph, ranges_, level, &rule_stats_, nullptr, nullptr} {}

SimplifyStats Simplifier::stats() const {
  SimplifyStats stats = stats_;
  stats.attempts = rule_stats_.attempts;
  stats.hits = rule_stats_.hits;
  return stats;
}

Node Simplifier::operator()(const Node& root) {
  IGNIS_CHECK(&root.graph() == &graph_);
  std::vector<Node> stack{root};
  std::vector<Node> sources;
  int64_t steps = 0;
  while (!stack.empty()) {
    const Node top = stack.back();
    if (final_[top.id()] != 0) {
      stack.pop_back();
      continue;
    }
    if (const uint32_t next = forward_[top.id()]; next != 0) {
      const uint32_t result = final_[next - 1];
      if (result != 0) {
        final_[top.id()] = result;
        forward_[top.id()] = 0;
        stack.pop_back();
        continue;
      }
      if (next - 1 == top.id() ||
          forward_[next - 1] != 0) {  // under way below on the stack: a cycle
        ++stats_.cycles;
        final_[top.id()] = top.id() + 1;
        forward_[top.id()] = 0;
        stack.pop_back();
        continue;
      }
      stack.push_back(Node(&graph_, next - 1));
      continue;
    }
    bool ready = true;
    sources.clear();
    for (int i = top.source_count() - 1; i >= 0; --i) {
      const Node source = top.src(i);
      const uint32_t known = final_[source.id()];
      if (known == 0 && forward_[source.id()] != 0) {  // under way: its rewriting led back to it
        ++stats_.cycles;
        sources.push_back(source);
      } else if (known == 0) {
        stack.push_back(source);
        ready = false;
      } else {
        sources.push_back(Node(&graph_, known - 1));
      }
    }
    if (!ready) continue;
    std::reverse(sources.begin(), sources.end());
    Node next = graph_.rebuild(top, sources);
    if (next == top && ++steps <= kMaxSteps) {
      const Node rewritten = rewrite(top);
      if (rewritten) next = rewritten;
    }
    if (next == top) {
      ++stats_.nodes;
      final_[top.id()] = top.id() + 1;
      stack.pop_back();
    } else {
      forward_[top.id()] = next.id() + 1;
    }
  }
  return Node(&graph_, final_[root.id()] - 1);
}

void Simplifier::assume(const Node& node, const Interval& interval) {
  ranges_.assume(node, interval);
  final_.clear();
  forward_.clear();
}

Node simplify(Graph& graph, const Node& node, SimplifyStats* stats, FloatLevel level) {
  Simplifier simplifier(graph, level);
  const Node result = simplifier(node);
  if (stats != nullptr) *stats = simplifier.stats();
  return result;
}

Node Simplifier::rewrite(const Node& node) {
  const auto attempt = [&](Node result) {
    ++rule_stats_.attempts;
    if (!result || result == node) return false;
    ++rule_stats_.hits;
    return true;
  };
  const Op op = node.op();
  if (!is_elementwise(op)) {
    if (op == Op::Special && interval(node).is_point())
      return graph_.constant_like(node, interval(node).lo);
    if (op == Op::Load || op == Op::Store || op == Op::Index) {
      const Node n = rewrite_invalid(node);
      if (attempt(n)) return n;
    }
    return Node();
  }
  if (node.lanes() != 1) return Node();
  Node result = fold_constants(graph_, node);
  if (attempt(result)) return result;
  // Before x * 0 -> 0: an Invalid index stays invalid.
  result = rewrite_invalid(node);
  if (attempt(result)) return result;

  const DType dtype = node.dtype();
  if (is_int(dtype) || dtype == DType::Bool) {
    const Interval range = interval(node);
    if (range.is_point() && !is_gated(node)) return graph_.constant(dtype, range.lo);
  }
  for (const RuleTable* table : simplifier_tables()) {
    result = table->apply(context_, node);
    if (result) return result;
  }

  switch (op) {
    case Op::Add:
    case Op::Sub:
    case Op::Neg:
    case Op::Shl: result = dtype == DType::WeakInt ? rewrite_sum(node) : Node(); break;
    case Op::Mul: result = dtype == DType::WeakInt ? rewrite_product(node) : Node(); break;
    case Op::Floordiv:
    case Op::Floormod: result = dtype == DType::WeakInt ? rewrite_division(node) : Node(); break;
    case Op::Cmplt:
    case Op::Cmpne:
    case Op::Cmpeq: result = rewrite_compare(node); break;
    case Op::And:
    case Op::Or: result = dtype == DType::Bool ? rewrite_clauses(node) : Node(); break;
    case Op::Where:
      result = is_gated(node) && dtype == DType::WeakInt ? rewrite_gated(node) : Node();
      break;
    case Op::Cast: result = rewrite_cast(node); break;
    default: result = Node(); break;
  }
  if (attempt(result)) return result;

  // Canonical order of commutative operands: constants right, else structural. Exact for every dtype. Sums of weak
  // integers and chains of clauses are ordered as a whole.
  const bool is_ordered = (dtype == DType::WeakInt && (op == Op::Add || op == Op::Mul)) ||
                          (dtype == DType::Bool && (op == Op::And || op == Op::Or));
  if (is_commutative(op) && !is_ordered) {
    const Node a = node.src(0), b = node.src(1);
    if (!b.is_const() && (a.is_const() || order_.less(b, a))) return graph_.make(op, dtype, {b, a});
  }
  return Node();
}

Node Simplifier::logical_not(const Node& c) {
  if (c.is_const()) return truth(c.const_int() == 0);
  if (is_not(c)) return c.src(0);
  return graph_.make(Op::Cmpne, DType::Bool, {c, truth(true)});
}

// An op on a gated value moves inside the gate; an op on Invalid is Invalid; gates lift outwards.
Node Simplifier::rewrite_invalid(const Node& node) {
  const Op op = node.op();
  const DType dtype = node.dtype();
  if (op == Op::Load) {
    const Node index = node.src(0);
    for (int i = 1; i < index.source_count(); ++i) {
      if (!index.src(i).is_invalid()) continue;
      return node.source_count() > 1 ? node.src(1) : graph_.constant(dtype, 0);
    }
    return Node();
  }
  if (op == Op::Store || op == Op::Index) return Node();
  if (op == Op::Where) {
    const Node condition = node.src(0), a = node.src(1), b = node.src(2);
    if (condition.is_invalid() || (a.is_invalid() && b.is_invalid())) return graph_.invalid(dtype);
    if (a.is_invalid()) return graph_.make(Op::Where, dtype, {logical_not(condition), b, a});
    if (is_gated(condition)) {
      const Node inner = graph_.make(Op::Where, dtype, {condition.src(1), a, b});
      return graph_.make(Op::Where, dtype, {condition.src(0), inner, graph_.invalid(dtype)});
    }
    return Node();
  }
  if (is_comparison(op)) return Node();
  for (int i = 0; i < node.source_count(); ++i) {
    const Node s = node.src(i);
    if (s.is_invalid()) return graph_.invalid(dtype);
    if (!is_gated(s)) continue;
    std::vector<Node> sources;
    for (int j = 0; j < node.source_count(); ++j)
      sources.push_back(j == i ? s.src(1) : node.src(j));
    const Node inner = graph_.make(op, dtype, sources, node.arg());
    return graph_.make(Op::Where, dtype, {s.src(0), inner, graph_.invalid(dtype)});
  }
  return Node();
}

// Flattens a chain of And (Or), drops repeated clauses and orders them; bounds of one expression merge.
Node Simplifier::rewrite_clauses(const Node& node) {
  const Op op = node.op();
  std::vector<Node> clauses, stack{node};
  while (!stack.empty()) {
    const Node top = stack.back();
    stack.pop_back();
    if (top.is(op) && clauses.size() + stack.size() < 64) {
      stack.push_back(top.src(1));
      stack.push_back(top.src(0));
    } else {
      clauses.push_back(top);
    }
  }
  // X < c and c < X with constants, X an integer.
  const auto is_int_const = [](const Node& n) {
    return n.is_const() && is_int(n.dtype()) && n.dtype() != DType::UInt64;
  };
  const auto upper = [&](const Node& n) { return n.is(Op::Cmplt) && is_int_const(n.src(1)); };
  const auto lower = [&](const Node& n) { return n.is(Op::Cmplt) && is_int_const(n.src(0)); };
  const bool is_and = op == Op::And;
  for (size_t i = 0; i < clauses.size(); ++i) {
    for (size_t j = i + 1; j < clauses.size();) {
      const Node p = clauses[i], q = clauses[j];
      bool drop = p == q;
      if (!drop && upper(p) && upper(q) && p.src(0) == q.src(0)) {
        const bool p_tighter = interval(p.src(1)).hi <= interval(q.src(1)).hi;
        if (p_tighter != is_and) clauses[i] = q;
        drop = true;
      } else if (!drop && lower(p) && lower(q) && p.src(1) == q.src(1)) {
        const bool p_tighter = interval(p.src(0)).lo >= interval(q.src(0)).lo;
        if (p_tighter != is_and) clauses[i] = q;
        drop = true;
      } else if ((upper(p) && lower(q) && p.src(0) == q.src(1)) ||
                 (lower(p) && upper(q) && p.src(1) == q.src(0))) {
        // lo < X and X < hi: empty when hi - lo < 2. lo < X or X < hi: always when lo < hi.
        const Interval lo = interval(lower(p) ? p.src(0) : q.src(0)),
                       hi = interval(upper(p) ? p.src(1) : q.src(1));
        if (lo.is_point() && hi.is_point()) {
          if (is_and && (hi.lo <= lo.lo || hi.lo - 1 <= lo.lo)) return truth(false);
          if (!is_and && lo.lo < hi.lo) return truth(true);
        }
      } else if ((is_not(p) && p.src(0) == q) || (is_not(q) && q.src(0) == p)) {
        return truth(!is_and);
      }
      if (drop) clauses.erase(clauses.begin() + static_cast<std::ptrdiff_t>(j));
      else ++j;
    }
  }
  // By what a clause speaks about, so that both bounds of one expression stand together, the lower one first.
  const auto subject = [&](const Node& n) { return upper(n) ? n.src(0) : lower(n) ? n.src(1) : n; };
  std::sort(clauses.begin(), clauses.end(), [&](const Node& a, const Node& b) {
    const int by_subject = order_.compare(subject(a), subject(b));
    if (by_subject != 0) return by_subject < 0;
    return lower(a) != lower(b) ? lower(a) : order_.less(a, b);
  });
  Node result = clauses[0];
  for (size_t i = 1; i < clauses.size(); ++i) {
    result = graph_.make(op, DType::Bool, {result, clauses[i]});
  }
  return result;
}

Node Simplifier::rewrite_cast(const Node& node) {
  const Node x = node.src(0);
  const DType to = node.dtype(), from = x.dtype();
  if (to == from) return x;
  if (to == DType::Bool && from != DType::Bool) {
    return graph_.make(Op::Cmpne, DType::Bool, {x, graph_.constant(from, 0)});
  }
  if (x.is(Op::Cast)) {
    const DType first = x.src(0).dtype();
    if (is_lossless_cast(first, from) && !is_weak(first)) return graph_.cast(x.src(0), to);
    // Narrowing twice between integers wraps once.
    if (is_int(first) && is_int(from) && is_int(to) && !is_weak(to) && !is_weak(from) &&
        bits(to) <= bits(from)) {
      return graph_.cast(x.src(0), to);
    }
    if (is_int(first) && from == DType::WeakInt) return graph_.cast(x.src(0), to);
  }
  return Node();
}

}  // namespace ignis::ir
