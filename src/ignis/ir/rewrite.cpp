#include "ignis/ir/rewrite.h"

#include "ignis/ir/text.h"

#include <algorithm>

namespace ignis::ir {

RuleSet& RuleSet::add(const RuleTable& table) {
  const size_t step = steps_.size();
  steps_.push_back({&table, {}, {}});
  for (int op = 0; op < kOpCount; ++op) {
    if (table.handles(static_cast<Op>(op))) put(step, static_cast<Op>(op));
  }
  return *this;
}

RuleSet& RuleSet::add(std::string name, std::vector<Op> ops, Function function) {
  const size_t step = steps_.size();
  steps_.push_back({nullptr, std::move(name), std::move(function)});
  for (const Op op : ops) put(step, op);
  if (ops.empty()) {
    for (int op = 0; op < kOpCount; ++op) put(step, static_cast<Op>(op));
  }
  return *this;
}

RuleSet& RuleSet::add(const RuleSet& other) {
  const size_t offset = steps_.size();
  const RuleSet copy = other;  // a set may be added to itself
  steps_.insert(steps_.end(), copy.steps_.begin(), copy.steps_.end());
  for (size_t op = 0; op < kOpCount; ++op) {
    for (const size_t step : copy.by_op_[op]) by_op_[op].push_back(offset + step);
  }
  return *this;
}

Node RuleSet::apply(RuleContext& context, const Node& node) const {
  for (const size_t i : by_op_[static_cast<size_t>(node.op())]) {
    const Step& step = steps_[i];
    Node result;
    if (step.table != nullptr) {
      result = step.table->apply(context, node);
    } else {
      if (context.stats != nullptr) ++context.stats->attempts;
      result = step.function(context, node);
      if (result && result != node) {
        if (context.stats != nullptr) ++context.stats->hits;
        context.last_rule = step.name.c_str();
      }
    }
    if (result && result != node) return result;
  }
  return Node();
}

namespace {

class Driver {
 public:
  Driver(Graph& graph, const RuleSet* before, const RuleSet* after, const RewriteOptions& options,
         RuleStats* stats)
      : graph_(graph),
        before_(before),
        after_(after),
        options_(options),
        context_{graph, ranges_, options.level, stats, nullptr, options.user} {}

  Result<Node> run(const Node& root) {
    stack_.push_back(root);
    std::vector<Node> sources;
    while (!stack_.empty()) {
      const Node top = stack_.back();
      State& state = states_[top.id()];
      if (state.final != 0) {
        stack_.pop_back();
        continue;
      }
      if (state.next != 0) {  // waits for what it was rewritten to
        const Node next(&graph_, state.next - 1);
        const State& of_next = states_[next.id()];
        if (of_next.final != 0) finish(top, Node(&graph_, of_next.final - 1));
        else if (of_next.started) return loop("A chain of rewrites returns to its start", next);
        else stack_.push_back(next);
        continue;
      }
      state.started = true;
      if (options_.keep && options_.keep(top)) {
        finish(top, top);
        continue;
      }
      if (before_ != nullptr && !state.before_done) {
        IGNIS_TRY_ASSIGN(const Node opened, settle_before(top));
        states_[top.id()].before_done = true;
        if (opened != top) {
          forward(top, opened);
          continue;
        }
      }
      bool ready = true;
      sources.clear();
      for (int i = top.source_count() - 1; i >= 0; --i) {
        const State& source = states_[top.src(i).id()];
        if (source.final == 0) {
          if (source.started && source.next != 0)
            return loop("A rewrite contains what it replaces", top);
          stack_.push_back(top.src(i));
          ready = false;
        } else {
          sources.push_back(Node(&graph_, source.final - 1));
        }
      }
      if (!ready) continue;
      std::reverse(sources.begin(), sources.end());
      const Node rebuilt = graph_.rebuild(top, sources);
      if (after_ == nullptr) {
        finish(top, rebuilt);
      } else if (options_.order == RewriteOrder::Walk) {
        const Node result = after_->apply(context_, rebuilt);
        if (result) note();
        finish(top, result ? result : rebuilt);
      } else if (rebuilt != top) {
        forward(top, rebuilt);
      } else {
        const Node result = after_->apply(context_, top);
        if (!result) {
          finish(top, top);
          continue;
        }
        note();
        if (++steps_ > options_.step_limit) return loop("The step limit is reached", top);
        forward(top, result);
      }
    }
    return Node(&graph_, states_[root.id()].final - 1);
  }

 private:
  struct State {
    uint32_t final = 0;  // id + 1
    uint32_t next = 0;   // id + 1
    bool started = false;
    bool before_done = false;
  };

  void finish(const Node& node, const Node& result) {
    State& state = states_[node.id()];
    state.final = result.id() + 1;
    state.next = 0;
    stack_.pop_back();
  }
  void forward(const Node& node, const Node& next) { states_[node.id()].next = next.id() + 1; }

  // Top-down rules on one node until it is stable.
  Result<Node> settle_before(Node node) {
    std::vector<Node> chain{node};
    for (;;) {
      const Node next = before_->apply(context_, node);
      if (!next) return node;
      note();
      if (++steps_ > options_.step_limit) return loop("The step limit is reached", node);
      if (std::find(chain.begin(), chain.end(), next) != chain.end()) {
        return loop("A chain of rewrites returns to its start", next);
      }
      chain.push_back(next);
      node = next;
      if (options_.keep && options_.keep(node)) return node;
    }
  }

  void note() {
    last_rules_[last_count_++ % last_rules_.size()] =
        context_.last_rule == nullptr ? "" : context_.last_rule;
  }
  Error loop(const std::string& what, const Node& node) const {
    std::string names;
    const size_t count = std::min(last_count_, last_rules_.size());
    for (size_t i = last_count_ - count; i < last_count_; ++i) {
      if (!names.empty()) names += ", ";
      names += last_rules_[i % last_rules_.size()];
    }
    return Error(ErrorCode::Internal,
                 what + ": possible infinite loop at '" + print_expr(node) + "' after " +
                     std::to_string(steps_) + " steps; the last rules are: " + names + ".",
                 "RewriteLoop");
  }

  Graph& graph_;
  const RuleSet* before_;
  const RuleSet* after_;
  const RewriteOptions& options_;
  RangeAnalysis ranges_;
  RuleContext context_;
  SideArray<State> states_;
  std::vector<Node> stack_;
  int64_t steps_ = 0;
  std::array<const char*, 8> last_rules_{};
  size_t last_count_ = 0;
};

}  // namespace

Result<Node> rewrite(Graph& graph, const Node& root, const RuleSet& rules,
                     const RewriteOptions& options, RuleStats* stats) {
  const bool top_down = options.order == RewriteOrder::TopDown;
  return Driver(graph, top_down ? &rules : nullptr, top_down ? nullptr : &rules, options, stats)
      .run(root);
}

Result<Node> rewrite(Graph& graph, const Node& root, const RuleSet& before, const RuleSet& after,
                     const RewriteOptions& options, RuleStats* stats) {
  return Driver(graph, &before, &after, options, stats).run(root);
}

}  // namespace ignis::ir
