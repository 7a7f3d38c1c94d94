#pragma once

#include "ignis/base/target.h"
#include "ignis/ir/affine.h"
#include "ignis/ir/graph.h"
#include "ignis/ir/order.h"
#include "ignis/ir/range.h"
#include "ignis/ir/rule.h"
#include "ignis/ir/side_array.h"

#include <cstdint>

namespace ignis::ir {

struct SimplifyStats {
  int64_t nodes = 0;     ///< nodes brought to their final form
  int64_t attempts = 0;  ///< rules tried
  int64_t hits = 0;      ///< rules that changed a node
  int64_t cycles = 0;    ///< chains of rewrites that came back to their start; always 0, tests look
};

/// Rewrites expressions of a graph to a canonical, cheaper form, to a fixed point. Keeps what it learnt (final forms,
/// value ranges, structural hashes) from call to call, so simplifying many indices of one graph costs little.
///
/// Weak integers are exact: sums are gathered to `a*8 + b*2 + 3` (terms by descending |coefficient|, constant last),
/// `//` and `%` go through the division engine, comparisons have their constant on one side. Strong integers wrap and
/// floats round, so only what holds for them is rewritten; `level` says how far float rules may go. The structure of
/// kernels (Store, Load, Index, Reduce, Range, End, Sink) stays; only the expressions below change.
/// The result does not depend on the order in which nodes were made.
class Simplifier {
 public:
  explicit Simplifier(Graph& graph, FloatLevel level = FloatLevel::Strict);
  Simplifier(const Simplifier&) = delete;
  Simplifier& operator=(const Simplifier&) = delete;

  Node operator()(const Node& root);

  /// States a fact for all later calls, e.g. what a gate guarantees. Forgets final forms.
  void assume(const Node& node, const Interval& interval);

  Graph& graph() { return graph_; }
  RangeAnalysis& ranges() { return ranges_; }
  StructuralOrder& order() { return order_; }
  SimplifyStats stats() const;

 private:
  // sum // by or sum % by, by > 0; `numerator` is the node of the sum.
  struct Division {
    Node numerator;
    Affine sum;
    int64_t by;
    bool is_quotient;
  };

  // Null: no rule applies. The result may hold nodes that are not in final form.
  Node rewrite(const Node& node);
  Node rewrite_sum(const Node& node);
  Node rewrite_product(const Node& node);
  Node rewrite_division(const Node& node);
  Node divide_one_period(const Division& d);
  Node divide_inner_remainders(const Division& d);
  Node divide_multiples(const Division& d);
  Node divide_common_factor(const Division& d);
  Node divide_by_congruence(const Division& d);
  Node divide_by_factor(const Division& d);
  Node divide_nested(const Division& d);
  Node divide_known_multiples(const Division& d);
  Node rewrite_compare(const Node& node);
  Node rewrite_gated(const Node& node);
  Node rewrite_cast(const Node& node);
  Node rewrite_invalid(const Node& node);
  Node rewrite_clauses(const Node& node);

  bool recombine(Affine& sum);
  Affine affine(const Node& node) { return to_affine(node, order_, &ranges_); }
  Interval interval(const Node& node) { return ranges_.interval(node); }
  Interval interval(const Affine& sum);
  Node node_of(const Affine& sum) { return from_affine(graph_, sum); }
  Node logical_not(const Node& condition);
  Node truth(bool value) { return graph_.constant(DType::Bool, value ? 1 : 0); }
  Node weak(int64_t value) { return graph_.constant(DType::WeakInt, value); }
  Node divide(const Node& x, int64_t by);
  Node modulo(const Node& x, int64_t by);
  Node scaled_sum(const Node& x, int64_t scale, const Node& y) {  // x * scale + y
    return graph_.alu(Op::Add, {graph_.alu(Op::Mul, {x, weak(scale)}), y});
  }

  Graph& graph_;
  FloatLevel level_;
  RangeAnalysis ranges_;
  RuleStats rule_stats_;
  RuleContext context_;
  StructuralOrder order_;
  SideArray<uint32_t> final_;    // id + 1 of the final form; 0: not known
  SideArray<uint32_t> forward_;  // id + 1 of the next form while under way
  int depth_ = 0;                // of simplifiers inside simplifiers, for names of variables
  SimplifyStats stats_;
};

/// One call of a fresh Simplifier.
Node simplify(Graph& graph, const Node& node, SimplifyStats* stats = nullptr,
              FloatLevel level = FloatLevel::Strict);

}  // namespace ignis::ir
