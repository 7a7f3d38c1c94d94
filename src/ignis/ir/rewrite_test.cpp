#include "ignis/ir/rewrite.h"

#include <gtest/gtest.h>

namespace ignis::ir {
namespace {

class RewriteTest : public ::testing::Test {
 protected:
  Node k(int64_t v) { return graph.constant(DType::Int32, v); }
  Node add(Node a, Node b) { return graph.alu(Op::Add, {a, b}); }
  Node mul(Node a, Node b) { return graph.alu(Op::Mul, {a, b}); }
  Node leaf(const std::string& name) {
    return graph.make(Op::Special, DType::Int32, std::span<const Node>{}, Arg{{}, name});
  }
  // Notes the nodes it sees and changes nothing.
  RuleSet tracer(std::vector<Node>& seen) {
    RuleSet set;
    set.add("trace", {}, [&seen](RuleContext&, const Node& n) {
      seen.push_back(n);
      return Node();
    });
    return set;
  }
  Graph graph;
};

TEST_F(RewriteTest, BottomUpSeesSourcesFirstAndTopDownUsersFirst) {
  const Node a = leaf("a"), b = leaf("b"), sum = add(a, b), root = mul(sum, b);
  std::vector<Node> seen;
  const RuleSet set = tracer(seen);
  ASSERT_EQ(*rewrite(graph, root, set), root);
  EXPECT_EQ(seen, (std::vector<Node>{a, b, sum, root}));
  seen.clear();
  RewriteOptions options;
  options.order = RewriteOrder::TopDown;
  ASSERT_EQ(*rewrite(graph, root, set, options), root);
  EXPECT_EQ(seen, (std::vector<Node>{root, sum, a, b}));
}

// n -> n - 1 down to 0: bottom-up reaches the fixed point, walk makes one step.
TEST_F(RewriteTest, FixedPointAndWalk) {
  RuleSet countdown;
  countdown.add("count-down", {Op::Const}, [](RuleContext& c, const Node& n) {
    return n.const_int() > 0 ? c.graph.constant(n.dtype(), n.const_int() - 1) : Node();
  });
  const Node a = leaf("a"), root = add(a, k(5));
  EXPECT_EQ(*rewrite(graph, root, countdown), add(a, k(0)));
  RewriteOptions options;
  options.order = RewriteOrder::TopDown;
  EXPECT_EQ(*rewrite(graph, root, countdown, options), add(a, k(0)));
  options.order = RewriteOrder::Walk;
  EXPECT_EQ(*rewrite(graph, root, countdown, options), add(a, k(4)));
}

// A new source made by a rule is rewritten too (bottom-up), also when the rule made it top-down.
TEST_F(RewriteTest, ResultsAreRewritten) {
  RuleSet set;
  set.add("double", {Op::Neg}, [](RuleContext& c, const Node& n) {
    return c.graph.alu(Op::Mul, {n.src(0), c.graph.constant(n.dtype(), -1)});
  });
  set.add("minus-one", {Op::Const}, [](RuleContext& c, const Node& n) {
    return n.is_const_value(-1) ? c.graph.constant(n.dtype(), 9) : Node();
  });
  const Node a = leaf("a"), root = graph.alu(Op::Neg, {a});
  EXPECT_EQ(*rewrite(graph, root, set), mul(a, k(9)));
  RewriteOptions options;
  options.order = RewriteOrder::TopDown;
  EXPECT_EQ(*rewrite(graph, root, set, options), mul(a, k(9)));
}

TEST_F(RewriteTest, KeptNodesAreNotEntered) {
  RuleSet set;
  set.add("one-to-two", {Op::Const}, [](RuleContext& c, const Node& n) {
    return n.is_const_value(1) ? c.graph.constant(n.dtype(), 2) : Node();
  });
  const Node a = leaf("a"), kept = mul(a, k(1)), root = add(kept, add(a, k(1)));
  RewriteOptions options;
  options.keep = [&](const Node& n) { return n == kept; };
  for (const RewriteOrder order :
       {RewriteOrder::BottomUp, RewriteOrder::TopDown, RewriteOrder::Walk}) {
    options.order = order;
    EXPECT_EQ(*rewrite(graph, root, set, options), add(kept, add(a, k(2))));
  }
}

TEST_F(RewriteTest, AnEndlessRewriteIsAnErrorThatNamesTheRules) {
  RuleSet grow;
  grow.add("grow-forever", {Op::Const}, [](RuleContext& c, const Node& n) {
    return c.graph.constant(n.dtype(), n.const_int() + 1);
  });
  RewriteOptions options;
  options.step_limit = 1000;
  for (const RewriteOrder order : {RewriteOrder::BottomUp, RewriteOrder::TopDown}) {
    options.order = order;
    const auto result = rewrite(graph, add(leaf("a"), k(0)), grow, options);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::Internal);
    EXPECT_NE(result.error().message().find("grow-forever"), std::string::npos);
  }
  RuleSet swap;
  swap.add("swap-sides", {Op::Sub}, [](RuleContext& c, const Node& n) {
    return c.graph.alu(Op::Sub, {n.src(1), n.src(0)});
  });
  for (const RewriteOrder order : {RewriteOrder::BottomUp, RewriteOrder::TopDown}) {
    options.order = order;
    const auto result = rewrite(graph, graph.alu(Op::Sub, {leaf("a"), leaf("b")}), swap, options);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message().find("swap-sides"), std::string::npos);
  }
  RuleSet wrap;
  wrap.add("wrap", {Op::Special},
           [](RuleContext& c, const Node& n) { return c.graph.alu(Op::Neg, {n}); });
  EXPECT_FALSE(rewrite(graph, add(leaf("a"), k(0)), wrap));
}

TEST_F(RewriteTest, ContextReachesTheRulesAndIsMutable) {
  int count = 0;
  RuleSet set;
  set.add("count", {Op::Special}, [](RuleContext& c, const Node&) {
    ++*static_cast<int*>(c.user);
    return Node();
  });
  RewriteOptions options;
  options.user = &count;
  ASSERT_TRUE(rewrite(graph, add(leaf("a"), leaf("b")), set, options));
  EXPECT_EQ(count, 2);
}

TEST_F(RewriteTest, SetsKeepTheirOrderWhenJoined) {
  RuleSet first, second;
  first.add("to-three", {Op::Const}, [](RuleContext& c, const Node& n) {
    return n.is_const_value(1) ? c.graph.constant(n.dtype(), 3) : Node();
  });
  second.add("to-four", {Op::Const}, [](RuleContext& c, const Node& n) {
    return n.is_const_value(1) ? c.graph.constant(n.dtype(), 4) : Node();
  });
  EXPECT_EQ(*rewrite(graph, k(1), RuleSet(first).add(second)), k(3));
  EXPECT_EQ(*rewrite(graph, k(1), RuleSet(second).add(first)), k(4));
}

// One walk: `before` opens a node, `after` closes what came of it.
TEST_F(RewriteTest, MixedWalk) {
  RuleSet before, after;
  before.add("open", {Op::Sub}, [](RuleContext& c, const Node& n) {
    return c.graph.alu(Op::Add, {n.src(0), c.graph.alu(Op::Neg, {n.src(1)})});
  });
  after.add("neg-const", {Op::Neg}, [](RuleContext& c, const Node& n) {
    return n.src(0).is_const() ? c.graph.constant(n.dtype(), -n.src(0).const_int()) : Node();
  });
  const Node a = leaf("a");
  EXPECT_EQ(*rewrite(graph, graph.alu(Op::Sub, {a, k(5)}), before, after), add(a, k(-5)));
}

TEST_F(RewriteTest, DeepGraphsNeedNoDeepStack) {
  Node n = leaf("a");
  for (int i = 0; i < 200'000; ++i) n = add(n, k(i % 7));
  std::vector<Node> seen;
  ASSERT_EQ(*rewrite(graph, n, tracer(seen)), n);
  EXPECT_GT(seen.size(), 200'000u);
}

}  // namespace
}  // namespace ignis::ir
