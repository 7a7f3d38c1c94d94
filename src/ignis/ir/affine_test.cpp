#include "ignis/ir/affine.h"

#include "ignis/ir/text.h"

#include <gtest/gtest.h>

namespace ignis::ir {
namespace {

class AffineTest : public ::testing::Test {
 protected:
  Node k(int64_t v) { return graph.constant(DType::WeakInt, v); }
  Node add(Node a, Node b) { return graph.alu(Op::Add, {a, b}); }
  Node mul(Node a, int64_t c) { return graph.alu(Op::Mul, {a, k(c)}); }
  Graph graph;
  Node i = graph.range(8, 0, AxisKind::Loop), j = graph.range(5, 1, AxisKind::Loop);
};

TEST_F(AffineTest, TermsMergeAndStandInOrder) {
  // 3*(i + 2*j - 4) + (j << 2) - i = 2*i + 10*j - 12
  const Node inner = graph.alu(Op::Sub, {add(i, mul(j, 2)), k(4)});
  const Node sum = graph.alu(Op::Sub, {add(mul(inner, 3), graph.alu(Op::Shl, {j, k(2)})), i});
  const Affine affine = to_affine(graph, sum);
  EXPECT_EQ(affine.constant, -12);
  ASSERT_EQ(affine.terms.size(), 2u);
  EXPECT_EQ(affine.terms[0], std::make_pair(j, int64_t{10}));
  EXPECT_EQ(affine.terms[1], std::make_pair(i, int64_t{2}));
  EXPECT_EQ(affine.coefficient(i), 2);
  EXPECT_EQ(affine.coefficient(k(3)), 0);
  EXPECT_EQ(print_expr(from_affine(graph, affine)), "L1*10 + L0*2 + -12");
}

TEST_F(AffineTest, WhatIsNoSumIsAnAtom) {
  const Node product = graph.alu(Op::Mul, {i, j}), quotient = graph.alu(Op::Floordiv, {i, k(3)});
  const Affine affine = to_affine(graph, add(mul(product, 2), quotient));
  EXPECT_EQ(affine.coefficient(product), 2);
  EXPECT_EQ(affine.coefficient(quotient), 1);
  EXPECT_TRUE(to_affine(graph, graph.alu(Op::Sub, {i, i})).is_constant());
}

TEST_F(AffineTest, CoefficientsBeyondInt64StayOpaque) {
  const Node huge = mul(mul(i, int64_t{1} << 40), int64_t{1} << 40);
  const Affine affine = to_affine(graph, huge);
  ASSERT_EQ(affine.terms.size(), 1u);
  EXPECT_EQ(affine.terms[0].first, huge);
}

TEST_F(AffineTest, SubstituteRebuildsWhatChanged) {
  const Node keep = graph.alu(Op::Mul, {j, j}), root = add(add(mul(i, 3), i), keep);
  EXPECT_EQ(substitute(graph, root, {{i, add(i, k(1))}}),
            add(add(mul(add(i, k(1)), 3), add(i, k(1))), keep));
  EXPECT_EQ(substitute(graph, root, {}), root);
  EXPECT_EQ(substitute(graph, i, {{i, j}}), j);
}

TEST_F(AffineTest, DependsOn) {
  const Node root = add(mul(i, 3), k(1));
  EXPECT_TRUE(depends_on(root, i));
  EXPECT_TRUE(depends_on(root, root));
  EXPECT_FALSE(depends_on(root, j));
}

TEST_F(AffineTest, OpenRangesAreUsedMinusEnded) {
  const Node r = graph.range(9, 2, AxisKind::Reduce);
  const Node value = graph.cast(add(add(j, r), i), DType::Float32);
  EXPECT_EQ(open_ranges(value), (std::vector<Node>{i, j, r}));
  const Node sum =
      graph.make(Op::Reduce, DType::Float32, {value, r}, Arg{{static_cast<int64_t>(Op::Add)}, {}});
  EXPECT_EQ(open_ranges(sum), (std::vector<Node>{i, j}));
  // The bounds of an inner loop use the outer one, which stays open.
  const Node triangle = graph.range(i, 3, AxisKind::Reduce);
  const Node inner =
      graph.make(Op::Reduce, DType::Float32, {graph.cast(triangle, DType::Float32), triangle},
                 Arg{{static_cast<int64_t>(Op::Add)}, {}});
  EXPECT_EQ(open_ranges(inner), (std::vector<Node>{i}));
  EXPECT_TRUE(open_ranges(k(4)).empty());
}

TEST_F(AffineTest, BordersAreNoChoice) {
  const auto below = [&](const Node& a, const Node& b) { return graph.alu(Op::Cmplt, {a, b}); };
  const auto select = [&](const Node& c, const Node& rest) {
    return graph.make(Op::Where, DType::WeakInt, {c, rest, mul(j, 2)});
  };
  const Node border = select(below(i, k(3)), select(below(k(6), i), i));
  EXPECT_FALSE(chooses_by(border, i));
  EXPECT_FALSE(chooses_by(select(below(j, k(1)), border), i)) << "another range's";
  EXPECT_FALSE(chooses_by(select(below(i, j), border), i)) << "two ranges";
  const Node wide = graph.make(Op::Cast, DType::Int64, {i});
  EXPECT_TRUE(chooses_by(select(below(wide, graph.constant(DType::Int64, 5)), border), i));
}

}  // namespace
}  // namespace ignis::ir
