#include "ignis/ir/fold.h"

#include "ignis/ir/graph.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ignis::ir {
namespace {

class FoldTest : public ::testing::Test {
 protected:
  Node c(DType d, int64_t v) { return graph.constant(d, v); }
  Node f(double v, DType d = DType::Float32) { return graph.constant_float(d, v); }
  Node fold(Op op, std::initializer_list<Node> sources) {
    return fold_constants(graph, graph.alu(op, sources));
  }
  Node cast(Node x, DType to) { return fold_constants(graph, graph.make(Op::Cast, to, {x})); }
  Graph graph;
};

TEST_F(FoldTest, IntegersWrapAndNothingTraps) {
  const DType d = DType::Int8;
  EXPECT_EQ(fold(Op::Add, {c(d, 100), c(d, 100)}), c(d, -56));
  EXPECT_EQ(fold(Op::Mul, {c(DType::UInt8, 16), c(DType::UInt8, 17)}), c(DType::UInt8, 16));
  EXPECT_EQ(fold(Op::Floordiv, {c(d, 7), c(d, -2)}), c(d, -4));
  EXPECT_EQ(fold(Op::Floormod, {c(d, 7), c(d, -2)}), c(d, -1));
  EXPECT_EQ(fold(Op::Cdiv, {c(d, 7), c(d, -2)}), c(d, -3));
  EXPECT_EQ(fold(Op::Cmod, {c(d, 7), c(d, -2)}), c(d, 1));
  EXPECT_EQ(fold(Op::Floordiv, {c(d, -128), c(d, -1)}), c(d, -128));
  EXPECT_EQ(fold(Op::Cmod, {c(d, -128), c(d, -1)}), c(d, 0));
  for (const Op op : {Op::Floordiv, Op::Floormod, Op::Cdiv, Op::Cmod}) {
    EXPECT_EQ(fold(op, {c(d, 5), c(d, 0)}), c(d, 0));
  }
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(fold(Op::Cdiv, {c(DType::Int64, lowest), c(DType::Int64, -1)}),
            c(DType::Int64, lowest));
  EXPECT_EQ(fold(Op::Neg, {c(DType::Int64, lowest)}), c(DType::Int64, lowest));
  EXPECT_EQ(fold(Op::Shl, {c(DType::Int32, 1), c(DType::Int32, 32)}), c(DType::Int32, 0));
  EXPECT_EQ(fold(Op::Shr, {c(DType::Int32, -5), c(DType::Int32, 40)}), c(DType::Int32, -1));
  EXPECT_EQ(fold(Op::Shr, {c(DType::UInt64, -1), c(DType::UInt64, 63)}), c(DType::UInt64, 1));
  EXPECT_EQ(fold(Op::Max, {c(DType::UInt64, -1), c(DType::UInt64, 1)}), c(DType::UInt64, -1));
  EXPECT_EQ(fold(Op::Cmplt, {c(DType::UInt64, -1), c(DType::UInt64, 1)}), c(DType::Bool, 0));
  EXPECT_EQ(fold(Op::Pow, {c(DType::UInt8, 3), c(DType::UInt8, 6)}),
            c(DType::UInt8, 217));  // 729 mod 256
}

TEST_F(FoldTest, WeakIntegersAreExactOrStay) {
  const DType w = DType::WeakInt;
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(fold(Op::Add, {c(w, most - 1), c(w, 1)}), c(w, most));
  EXPECT_FALSE(fold(Op::Add, {c(w, most), c(w, 1)}));
  EXPECT_FALSE(fold(Op::Mul, {c(w, most), c(w, 2)}));
  EXPECT_FALSE(fold(Op::Neg, {c(w, std::numeric_limits<int64_t>::min())}));
  EXPECT_FALSE(fold(Op::Shl, {c(w, 3), c(w, 62)}));
}

TEST_F(FoldTest, FloatsAreRoundedOnce) {
  EXPECT_EQ(fold(Op::Add, {f(16777216), f(1)}), f(16777216));
  EXPECT_EQ(fold(Op::Fdiv, {f(1), f(3)}), f(static_cast<double>(1.0f / 3.0f)));
  EXPECT_EQ(fold(Op::Sqrt, {f(2)}), f(static_cast<double>(std::sqrt(2.0f))));
  // (1 + 2^-23)^2 - (1 + 2^-22) is 2^-46 in one rounding, 0 in two.
  const double e = std::ldexp(1, -23);
  EXPECT_EQ(fold(Op::Mulacc, {f(1 + e), f(1 + e), f(-(1 + 2 * e))}), f(e * e));
  // f16: 2048 + 1.0009765625 is above the middle of 2048 and 2050 only by the last bit.
  EXPECT_EQ(fold(Op::Add, {f(2048, DType::Float16), f(1.0009765625, DType::Float16)}),
            f(2050, DType::Float16));
  EXPECT_EQ(fold(Op::Add, {f(2048, DType::Float16), f(1, DType::Float16)}),
            f(2048, DType::Float16));
}

TEST_F(FoldTest, MaxAndMinPassNanOnAndLeaveTheSignOfZero) {
  EXPECT_TRUE(std::isnan(fold(Op::Max, {f(NAN), f(1)}).const_float()));
  EXPECT_TRUE(std::isnan(fold(Op::Min, {f(1), f(NAN)}).const_float()));
  EXPECT_FALSE(fold(Op::Max, {f(0.0), f(-0.0)}));
  EXPECT_EQ(fold(Op::Max, {f(-1), f(2)}), f(2));
  EXPECT_EQ(fold(Op::Cmpne, {f(NAN), f(NAN)}), c(DType::Bool, 1));
  EXPECT_EQ(fold(Op::Cmplt, {f(NAN), f(1)}), c(DType::Bool, 0));
}

TEST_F(FoldTest, Casts) {
  EXPECT_EQ(cast(f(3e9), DType::Int32), c(DType::Int32, 2147483647));
  EXPECT_EQ(cast(f(NAN), DType::Int32), c(DType::Int32, 0));
  EXPECT_EQ(cast(f(-1.9), DType::Int8), c(DType::Int8, -1));
  EXPECT_EQ(cast(c(DType::Int32, 300), DType::Int8), c(DType::Int8, 44));
  EXPECT_EQ(cast(f(NAN), DType::Bool), c(DType::Bool, 1));
  EXPECT_EQ(cast(f(-0.0), DType::Bool), c(DType::Bool, 0));
  // 2^60 + 2^36 + 1: above the middle of two float32 by the last bit; through double it would tie and round down.
  EXPECT_EQ(cast(c(DType::Int64, (int64_t{1} << 60) + (int64_t{1} << 36) + 1), DType::Float32),
            f(std::ldexp(1, 60) + std::ldexp(1, 37)));
  EXPECT_EQ(cast(c(DType::UInt64, -1), DType::Float64), f(std::ldexp(1, 64), DType::Float64));
  const Node one_bits = fold_constants(graph, graph.make(Op::Bitcast, DType::UInt32, {f(1)}));
  EXPECT_EQ(one_bits, c(DType::UInt32, 0x3F800000));
  EXPECT_EQ(
      fold_constants(graph, graph.make(Op::Bitcast, DType::Float32, {c(DType::Int32, 0x40490FDB)})),
      f(static_cast<double>(3.14159274f)));
}

}  // namespace
}  // namespace ignis::ir
