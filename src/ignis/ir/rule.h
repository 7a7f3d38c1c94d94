#pragma once

#include "ignis/base/target.h"
#include "ignis/ir/pattern.h"

#include <array>
#include <bitset>
#include <string>
#include <unordered_map>
#include <vector>

namespace ignis::ir {

/// Operand types a table's rows are true for. Looked up on the operands for comparisons, else on the result.
enum class Domain : uint8_t {
  Any,        ///< every dtype
  WeakInt,    ///< exact integers
  StrongInt,  ///< integers that wrap
  AnyInt,     ///< weak and strong integers: true under wrap too
  Bool,
  Float,  ///< rounded floats; see the row's level
};
bool in_domain(Domain domain, DType dtype);

/// One row: what to look for, what to put in place, when, and the lowest level a float rule may run at.
struct Rule {
  std::string name;
  Pat from;
  Pat to;
  Condition when = {};
  FloatLevel level = FloatLevel::Strict;
};

/// Values of captured names, for tests and for reading a match.
using Binding = std::unordered_map<std::string, Node>;

/// Counts of one run. `attempts` are matches begun, after the dispatch by operation.
struct RuleStats {
  int64_t attempts = 0;
  int64_t hits = 0;
};

/// What rules see while they are applied.
struct RuleContext {
  Graph& graph;
  RangeAnalysis& ranges;
  FloatLevel level = FloatLevel::Strict;
  RuleStats* stats = nullptr;
  const char* last_rule = nullptr;  ///< name of the row that was applied last
  void* user = nullptr;             ///< a caller's own mutable context; see RuleSet::add
};

/// Rules in order: the first row that matches and whose condition holds wins. Compiled once to a dispatch by the
/// operation of the node, then of its first source, then a set of operations of its second; commutative operations
/// become one variant for each order, so that matching never backtracks.
class RuleTable {
 public:
  RuleTable(Domain domain, std::vector<Rule> rules);

  /// What the first applicable row makes of `node`, or null.
  Node apply(RuleContext& context, const Node& node) const;

  Domain domain() const { return domain_; }
  const std::vector<Rule>& rules() const { return rules_; }
  auto begin() const { return rules_.begin(); }
  auto end() const { return rules_.end(); }
  /// True when some row starts with this operation.
  bool handles(Op op) const { return !dispatch_[static_cast<size_t>(op)].empty(); }

 private:
  using OpSet = std::bitset<kOpCount>;
  static constexpr int kMaxCaptures = 8;
  using Captures = std::array<Node, kMaxCaptures>;

  // A pattern with names resolved to slots; children are indices into nodes_.
  struct Compiled {
    Pat::Kind kind;
    Op op;
    int slot;
    int64_t literal;
    double value;
    std::array<int, 3> sources;
    int source_count;
  };
  struct CompiledCondition {
    Condition::Kind kind;
    int a = -1, b = -1;  // patterns, or conditions for And and Or
    bool (*predicate)(const Node&) = nullptr;
  };
  struct Variant {
    int rule;
    int from, to;
    int when;  // -1: always
    OpSet second;
  };

  struct Names;
  int compile(const Pat& pat, Names& names);
  int compile(const Condition& condition, Names& names);
  OpSet ops_of(const Pat& pat) const;
  bool match(int pattern, const Node& node, Captures& captures) const;
  bool holds(int condition, RuleContext& context, const Captures& captures) const;
  Interval evaluate(int pattern, RuleContext& context, const Captures& captures) const;
  Node build(int pattern, RuleContext& context, const Captures& captures, DType hint) const;

  Domain domain_;
  std::vector<Rule> rules_;
  std::vector<Compiled> nodes_;
  std::vector<CompiledCondition> conditions_;
  std::vector<Variant> variants_;
  // dispatch_[op of node]: empty, or for each op of the first source the variants to try, in order.
  std::array<std::vector<std::vector<int>>, kOpCount> dispatch_;
};

/// The node a pattern without folds describes, with its names bound; numbers take `dtype` where no neighbour says
/// otherwise. For tests.
Node instantiate(Graph& graph, const Pat& pat, const Binding& binding, DType dtype);

}  // namespace ignis::ir
