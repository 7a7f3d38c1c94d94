#include "ignis/ir/range.h"

#include "ignis/ir/simplify.h"
#include "ignis/ir/test_eval.h"
#include "ignis/ir/text.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

namespace ignis::ir {
namespace {

using testing::IntEvaluator;
using testing::test_seed;

Node variable(Graph& g, DType dtype, int64_t lo, int64_t hi, const std::string& name) {
  return g.make(Op::Special, dtype, std::span<const Node>{}, Arg{{lo, hi}, name});
}

TEST(Interval, UnboundedEndsStay) {
  const Interval all;
  EXPECT_EQ(all + Interval::point(-5), all);
  EXPECT_EQ((Interval{3, Interval::kNoHigh} * Interval::point(0)), Interval::point(0));
  EXPECT_EQ((Interval{3, Interval::kNoHigh} * Interval::point(-2)),
            (Interval{Interval::kNoLow, -6}));
  EXPECT_EQ((-Interval{Interval::kNoLow, 4}), (Interval{-4, Interval::kNoHigh}));
  EXPECT_EQ((Interval{1, int64_t{1} << 62} * Interval::point(4)), (Interval{4, Interval::kNoHigh}));
}

TEST(Division, RoundsDownAndTakesTheDivisorsSign) {
  EXPECT_EQ(floor_div(7, -2), -4);
  EXPECT_EQ(floor_mod(7, -2), -1);
  EXPECT_EQ(floor_div(-7, 2), -4);
  EXPECT_EQ(floor_mod(-7, 2), 1);
  EXPECT_EQ(floor_div(5, 0), 0);
  EXPECT_EQ(floor_mod(5, 0), 0);
  EXPECT_EQ(ceil_div(7, 2), 4);
  EXPECT_EQ(ceil_div(-7, 2), -3);
}

// Checks a node and its simplified form at every point of the leaves' domains.
void check_everywhere(Graph& g, const Node& node, const std::vector<Node>& leaves) {
  RangeAnalysis ranges;
  const ValueRange range = ranges.of(node);
  const Node simple = simplify(g, node);
  const ValueRange simple_range = ranges.of(simple);
  IntEvaluator evaluate(node), evaluate_simple(simple);
  std::unordered_map<Node, int64_t> at;
  const std::function<void(size_t)> walk = [&](size_t i) {
    if (i < leaves.size()) {
      const Interval domain = ranges.interval(leaves[i]);
      for (int64_t v = domain.lo; v <= domain.hi; ++v) {
        at[leaves[i]] = v;
        walk(i + 1);
      }
      return;
    }
    const auto value = evaluate(at);
    ASSERT_TRUE(value.has_value());
    ASSERT_TRUE(range.interval.contains(*value))
        << node << ": " << *value << " not in " << range.interval;
    ASSERT_TRUE(simple_range.interval.contains(*value)) << simple << ": " << *value;
    if (range.multiple_of == 0) ASSERT_EQ(*value, 0) << node;
    else
      ASSERT_EQ(*value % range.multiple_of, 0)
          << node << " is no multiple of " << range.multiple_of;
    ASSERT_EQ(*value, *evaluate_simple(at)) << node << " became " << simple;
  };
  walk(0);
}

const Op kOps[] = {Op::Add,  Op::Sub, Op::Mul,   Op::Floordiv, Op::Floormod, Op::Cdiv,
                   Op::Cmod, Op::Max, Op::Min,   Op::And,      Op::Or,       Op::Xor,
                   Op::Shl,  Op::Shr, Op::Cmplt, Op::Cmpne,    Op::Cmpeq};

class RangeOfDType : public ::testing::TestWithParam<DType> {};

// Every expression op(op(x, a), b) and op(x, op(y, c)) over small domains, wrapping included.
TEST_P(RangeOfDType, ContainsEveryValueOfAllSmallExpressions) {
  const DType d = GetParam();
  const bool is_signed = !is_unsigned(d);
  Graph g;
  const Node x = is_signed ? variable(g, d, -3, 4, "x") : variable(g, d, 0, 7, "x");
  const Node y = is_signed ? variable(g, d, -2, 2, "y") : variable(g, d, 250, 253, "y");
  std::vector<int64_t> constants = is_signed ? std::vector<int64_t>{-100, -3, -1, 0, 1, 2, 5, 100}
                                             : std::vector<int64_t>{0, 1, 2, 5, 100, 255};
  const auto legal = [&](Op op, const Node& b) {  // a weak shift by a negative count has no meaning
    if (d != DType::WeakInt || (op != Op::Shl && op != Op::Shr)) return true;
    return b.is_const() && b.const_int() >= 0 && b.const_int() < 8;
  };
  const auto is_value = [&](const Node& n) { return n.dtype() == d; };
  for (const Op outer : kOps) {
    for (const Op inner : kOps) {
      for (const int64_t c : constants) {
        const Node k = g.constant(d, c);
        std::vector<Node> firsts;
        if (legal(inner, k)) firsts.push_back(g.alu(inner, {x, k}));
        firsts.push_back(g.alu(inner == Op::Shl || inner == Op::Shr ? Op::Add : inner, {x, y}));
        for (const Node& first : firsts) {
          if (!is_value(first)) continue;
          for (const Node& second : {y, g.constant(d, 3), g.constant(d, -1)}) {
            if (legal(outer, second)) {
              ASSERT_NO_FATAL_FAILURE(check_everywhere(g, g.alu(outer, {first, second}), {x, y}));
            }
            if (legal(outer, first) && !is_comparison(outer)) {
              ASSERT_NO_FATAL_FAILURE(check_everywhere(g, g.alu(outer, {second, first}), {x, y}));
            }
          }
          const Node condition = g.alu(Op::Cmplt, {first, y});
          ASSERT_NO_FATAL_FAILURE(
              check_everywhere(g, g.alu(Op::Where, {condition, first, k}), {x, y}));
        }
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Types, RangeOfDType,
                         ::testing::Values(DType::WeakInt, DType::Int8, DType::UInt8, DType::Int32,
                                           DType::Int64),
                         [](const auto& type) { return std::string(to_string(type.param)); });

TEST(RangeAnalysis, RandomDeepExpressionsWrapToo) {
  std::mt19937_64 rng(test_seed());
  const auto pick = [&](int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(rng);
  };
  for (int round = 0; round < 3000; ++round) {
    Graph g;
    static const DType kTypes[] = {DType::Int8, DType::UInt8, DType::Int16, DType::Int32};
    const DType d = kTypes[pick(0, 3)];
    const int64_t lo = is_unsigned(d) ? pick(0, 200) : pick(-60, 30);
    const Node x = variable(g, d, lo, lo + pick(0, 9), "x"),
               y = variable(g, d, is_unsigned(d) ? 0 : -3, 3, "y");
    std::vector<Node> pool{x, y, g.constant(d, pick(-9, 9)), g.constant(d, pick(-128, 255))};
    const auto any = [&] {
      return pool[static_cast<size_t>(pick(0, static_cast<int64_t>(pool.size()) - 1))];
    };
    for (int i = 0; i < 6; ++i) {
      const Op op = kOps[pick(0, 13)];
      Node n = g.alu(op, {any(), any()});
      if (pick(0, 5) == 0) n = g.cast(g.cast(n, kTypes[pick(0, 3)]), d);
      if (pick(0, 5) == 0)
        n = g.alu(Op::Where, {g.alu(kOps[pick(14, 16)], {any(), any()}), n, any()});
      pool.push_back(n);
    }
    SCOPED_TRACE(round);
    ASSERT_NO_FATAL_FAILURE(check_everywhere(g, pool.back(), {x, y}));
  }
}

TEST(RangeAnalysis, LoopsLoadsAndDivisibility) {
  Graph g;
  RangeAnalysis ranges;
  const Node i = g.range(16, 0, AxisKind::Loop);
  EXPECT_EQ(ranges.interval(i), (Interval{0, 15}));
  EXPECT_EQ(ranges.of(g.alu(Op::Mul, {i, g.constant(DType::WeakInt, 12)})).multiple_of, 12);
  const Node n = variable(g, DType::WeakInt, 1, 100, "n");
  EXPECT_EQ(ranges.interval(g.range(n, 1, AxisKind::Loop)), (Interval{0, 99}));
  const Node p = g.param(DType::UInt8, {0, "p", {16}, {}});
  const Node load = g.make(Op::Load, DType::UInt8, {g.make(Op::Index, DType::UInt8, {p, i})});
  EXPECT_EQ(ranges.interval(load), (Interval{0, 255}));
  EXPECT_EQ(ranges.interval(g.cast(load, DType::WeakInt)), (Interval{0, 255}));
  EXPECT_TRUE(ranges.of(g.alu(Op::Add, {load, load})).may_wrap);
  EXPECT_FALSE(
      ranges.of(g.alu(Op::Add, {g.cast(load, DType::Int32), g.cast(load, DType::Int32)})).may_wrap);
}

}  // namespace
}  // namespace ignis::ir
