#pragma once

#include "ignis/ir/rule.h"

#include <functional>
#include <string>
#include <vector>

namespace ignis::ir {

/// Rule tables and named rewrite functions, tried in the order they were added.
class RuleSet {
 public:
  /// A rewrite that a row cannot say: returns another node, or null (or `node`) for "try the next".
  using Function = std::function<Node(RuleContext& context, const Node& node)>;

  RuleSet& add(const RuleTable& table);
  /// Tried on nodes of one of `ops`; on every node when empty.
  RuleSet& add(std::string name, std::vector<Op> ops, Function function);
  RuleSet& add(const RuleSet& other);

  Node apply(RuleContext& context, const Node& node) const;

 private:
  struct Step {
    const RuleTable* table = nullptr;  // outlives the set: tables are static
    std::string name;
    Function function;
  };
  void put(size_t step, Op op) { by_op_[static_cast<size_t>(op)].push_back(step); }

  std::vector<Step> steps_;
  std::array<std::vector<size_t>, kOpCount> by_op_;
};

enum class RewriteOrder : uint8_t {
  BottomUp,  ///< sources first, then the rebuilt node; a result is itself rewritten until no rule applies
  TopDown,  ///< the node before its sources, until no rule applies; then its sources; not looked at again
  Walk,  ///< sources first, each original node once; results are not entered
};

struct RewriteOptions {
  RewriteOrder order = RewriteOrder::BottomUp;
  FloatLevel level = FloatLevel::Strict;
  /// Nodes for which this is true stay as they are, and so does what only they reach.
  std::function<bool(const Node&)> keep;
  /// Rule applications after which the set is taken to loop.
  int64_t step_limit = 250'000;
  /// Reaches the functions as RuleContext::user.
  void* user = nullptr;
};

/// Rewrites all that `root` reaches. Errors: Internal when the step limit is reached or a chain of rewrites returns to
/// its start; the message names the last rules.
Result<Node> rewrite(Graph& graph, const Node& root, const RuleSet& rules,
                     const RewriteOptions& options = {}, RuleStats* stats = nullptr);

/// The mixed form in one walk: `before` on each node top-down, then `after` on the rebuilt node bottom-up.
Result<Node> rewrite(Graph& graph, const Node& root, const RuleSet& before, const RuleSet& after,
                     const RewriteOptions& options = {}, RuleStats* stats = nullptr);

}  // namespace ignis::ir
