// The arithmetic of every elementwise operation on every kind of dtype; expected values from docs/dtypes.md's rules,
// worked out by hand.
#include "ignis/interp/interp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace ignis::interp {
namespace {

using ir::Node;
using ir::Op;
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();

class DtypeTest : public testing::Test {
 protected:
  Node param(HostTensor tensor) {
    ir::ParamArg arg;
    arg.slot = static_cast<int64_t>(inputs_.size());
    arg.shape = tensor.shape;
    const Node node = graph_.param(tensor.dtype, arg);
    inputs_.push_back(std::move(tensor));
    return node;
  }
  Node ints(DType dtype, const Ints& v) {
    return param(HostTensor::from(dtype, {static_cast<int64_t>(v.size())}, v));
  }
  Node floats(DType dtype, const Floats& v) {
    return param(HostTensor::from(dtype, {static_cast<int64_t>(v.size())}, v));
  }
  HostTensor run(const Node& root) {
    return std::move(evaluate(std::vector<Node>{root}, inputs_).value()[0]);
  }
  Ints as_ints(const Node& root) {
    const HostTensor t = run(root);
    Ints out;
    for (int64_t i = 0; i < t.count(); ++i) out.push_back(element_as_int(t, i));
    return out;
  }
  Floats as_floats(const Node& root) {
    const HostTensor t = run(root);
    Floats out;
    for (int64_t i = 0; i < t.count(); ++i) out.push_back(element_as_double(t, i));
    return out;
  }
  Ints binary(Op op, DType dtype, const Ints& a, const Ints& b) {
    return as_ints(graph_.alu(op, {ints(dtype, a), ints(dtype, b)}));
  }
  Floats binary_f32(Op op, const Floats& a, const Floats& b) {
    return as_floats(graph_.alu(op, {floats(DType::Float32, a), floats(DType::Float32, b)}));
  }
  Floats unary_f32(Op op, const Floats& a) {
    return as_floats(graph_.alu(op, {floats(DType::Float32, a)}));
  }

  ir::Graph graph_;
  std::vector<HostTensor> inputs_;
};

void expect_same(const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) EXPECT_TRUE(std::isnan(got[i])) << i;
    else EXPECT_EQ(got[i], want[i]) << i;
    EXPECT_TRUE(std::isnan(want[i]) || std::signbit(got[i]) == std::signbit(want[i])) << i;
  }
}

TEST_F(DtypeTest, IntegersWrap) {
  EXPECT_EQ(binary(Op::Add, DType::UInt8, {255, 200}, {1, 100}), (Ints{0, 44}));
  EXPECT_EQ(binary(Op::Add, DType::Int8, {127, -128}, {1, -1}), (Ints{-128, 127}));
  EXPECT_EQ(binary(Op::Sub, DType::UInt16, {0}, {1}), (Ints{65535}));
  EXPECT_EQ(binary(Op::Mul, DType::Int32, {65536}, {65536}), (Ints{0}));
  EXPECT_EQ(binary(Op::Mul, DType::Int16, {300}, {300}), (Ints{24464}));
  EXPECT_EQ(binary(Op::Add, DType::Int64, {kMax64}, {1}), (Ints{kMin64}));
  EXPECT_EQ(binary(Op::Sub, DType::UInt64, {0}, {1}), (Ints{-1}));
  EXPECT_EQ(as_ints(graph_.alu(Op::Neg, {ints(DType::Int8, {-128, 5})})), (Ints{-128, -5}));
  EXPECT_EQ(as_ints(graph_.alu(Op::Mulacc, {ints(DType::UInt8, {16}), ints(DType::UInt8, {16}),
                                            ints(DType::UInt8, {7})})),
            (Ints{7}));
}

TEST_F(DtypeTest, DivisionRule) {
  const Ints a{7, -7, 7, -7, 8, 0, 5}, b{-2, 2, 2, -2, 3, 3, 0};
  EXPECT_EQ(binary(Op::Floordiv, DType::Int32, a, b), (Ints{-4, -4, 3, 3, 2, 0, 0}));
  EXPECT_EQ(binary(Op::Floormod, DType::Int32, a, b), (Ints{-1, 1, 1, -1, 2, 0, 0}));
  EXPECT_EQ(binary(Op::Cdiv, DType::Int32, a, b), (Ints{-3, -3, 3, 3, 2, 0, 0}));
  EXPECT_EQ(binary(Op::Cmod, DType::Int32, a, b), (Ints{1, -1, 1, -1, 2, 0, 0}));
  for (const DType dtype : {DType::Int8, DType::Int16, DType::Int32, DType::Int64}) {
    const int64_t lowest = int_min(dtype);
    EXPECT_EQ(binary(Op::Cdiv, dtype, {lowest}, {-1}), (Ints{lowest}));
    EXPECT_EQ(binary(Op::Cmod, dtype, {lowest}, {-1}), (Ints{0}));
    EXPECT_EQ(binary(Op::Floordiv, dtype, {lowest}, {-1}), (Ints{lowest}));
    EXPECT_EQ(binary(Op::Floormod, dtype, {lowest}, {-1}), (Ints{0}));
  }
  // uint64: 2^64 - 1 is not -1.
  EXPECT_EQ(binary(Op::Cdiv, DType::UInt64, {-1, -1}, {2, -1}), (Ints{kMax64, 1}));
  EXPECT_EQ(binary(Op::Floormod, DType::UInt64, {-1}, {10}), (Ints{5}));  // 18446744073709551615
}

TEST_F(DtypeTest, Shifts) {
  EXPECT_EQ(binary(Op::Shl, DType::UInt8, {1, 1, 255, 3}, {7, 8, 1, 0}), (Ints{128, 0, 254, 3}));
  EXPECT_EQ(binary(Op::Shl, DType::Int32, {1, 1}, {31, 32}),
            (Ints{std::numeric_limits<int32_t>::min(), 0}));
  EXPECT_EQ(binary(Op::Shr, DType::Int8, {-128, -1, 127, -128}, {1, 100, 8, 8}),
            (Ints{-64, -1, 0, -1}));
  EXPECT_EQ(binary(Op::Shr, DType::UInt8, {128, 255}, {7, 8}), (Ints{1, 0}));
  EXPECT_EQ(binary(Op::Shr, DType::UInt64, {-1, -1}, {63, 64}), (Ints{1, 0}));
  EXPECT_EQ(binary(Op::Shr, DType::Int64, {-1, kMin64}, {63, 62}), (Ints{-1, -2}));
}

TEST_F(DtypeTest, Bitwise) {
  EXPECT_EQ(binary(Op::And, DType::Int8, {-1, 12}, {15, 10}), (Ints{15, 8}));
  EXPECT_EQ(binary(Op::Or, DType::UInt8, {12}, {10}), (Ints{14}));
  EXPECT_EQ(binary(Op::Xor, DType::Int16, {-1}, {1}), (Ints{-2}));
  EXPECT_EQ(binary(Op::Xor, DType::Bool, {1, 1, 0}, {1, 0, 0}), (Ints{0, 1, 0}));
}

TEST_F(DtypeTest, MaxMinAndPowerOfIntegers) {
  EXPECT_EQ(binary(Op::Max, DType::UInt64, {-1}, {1}), (Ints{-1}));
  EXPECT_EQ(binary(Op::Min, DType::UInt64, {-1}, {1}), (Ints{1}));
  EXPECT_EQ(binary(Op::Max, DType::Int64, {-1}, {1}), (Ints{1}));
  EXPECT_EQ(binary(Op::Pow, DType::Int32, {3, -2, 2, 1, -1, 0, 7}, {4, 3, 31, -5, -3, 0, -1}),
            (Ints{81, -8, std::numeric_limits<int32_t>::min(), 1, -1, 1, 0}));
}

TEST_F(DtypeTest, Comparisons) {
  EXPECT_EQ(binary(Op::Cmplt, DType::UInt64, {1, -1}, {-1, 1}), (Ints{1, 0}));
  EXPECT_EQ(binary(Op::Cmplt, DType::Int64, {kMin64, 1}, {0, 1}), (Ints{1, 0}));
  EXPECT_EQ(binary(Op::Cmpeq, DType::Int8, {1, 2}, {1, 1}), (Ints{1, 0}));
  EXPECT_EQ(binary(Op::Cmpne, DType::Int8, {1, 2}, {1, 1}), (Ints{0, 1}));
  const auto floats_of = [&](Op op) {
    return as_ints(graph_.alu(op, {floats(DType::Float32, {1, kNan, 0.0, 2}),
                                   floats(DType::Float32, {2, kNan, -0.0, 1})}));
  };
  EXPECT_EQ(floats_of(Op::Cmplt), (Ints{1, 0, 0, 0}));
  EXPECT_EQ(floats_of(Op::Cmpeq), (Ints{0, 0, 1, 0}));
  EXPECT_EQ(floats_of(Op::Cmpne), (Ints{1, 1, 0, 1}));
  // A weak constant keeps its value: int8 < 200 is always true, uint64 < -1 never is.
  EXPECT_EQ(as_ints(graph_.alu(
                Op::Cmplt, {ints(DType::Int8, {127, -5}), graph_.constant(DType::WeakInt, 200)})),
            (Ints{1, 1}));
  EXPECT_EQ(as_ints(graph_.alu(
                Op::Cmplt, {ints(DType::UInt64, {-1, 0}), graph_.constant(DType::WeakInt, -1)})),
            (Ints{0, 0}));
}

TEST_F(DtypeTest, WeakConstantsTakeTheWidthOfTheOther) {
  const Node weak = graph_.constant(DType::WeakInt, 256);
  EXPECT_EQ(as_ints(graph_.alu(Op::Add, {ints(DType::UInt8, {255}), weak})), (Ints{255}));
  EXPECT_EQ(
      as_ints(graph_.alu(Op::Add, {ints(DType::Int8, {1}), graph_.constant(DType::WeakInt, 200)})),
      (Ints{-55}));
  EXPECT_EQ(as_floats(graph_.alu(Op::Mul, {floats(DType::Float16, {1}),
                                           graph_.constant_float(DType::WeakFloat, 0.1)})),
            (Floats{0.0999755859375}));
}

TEST_F(DtypeTest, FloatUnary) {
  expect_same(unary_f32(Op::Rint, {.5, 1.5, 2.5, -.5, -1.5, -2.5}), {0, 2, 2, -0.0, -2, -2});
  expect_same(unary_f32(Op::Trunc, {2.7, -2.7, -0.3}), {2, -2, -0.0});
  expect_same(unary_f32(Op::Neg, {0, -1, kInf}), {-0.0, 1, -kInf});
  expect_same(unary_f32(Op::Sqrt, {9, -1, 0}), {3, kNan, 0});
  expect_same(unary_f32(Op::Reciprocal, {4, 0, -0.0}), {.25, kInf, -kInf});
  expect_same(unary_f32(Op::Exp2, {3, -1, kInf, -kInf}), {8, .5, kInf, 0});
  expect_same(unary_f32(Op::Log2, {8, 0, -1}), {3, -kInf, kNan});
  // Correctly rounded float32 values of e, ln 2, sin 1, cos 1, erf 1, tanh 1, atan 1.
  expect_same(unary_f32(Op::Exp, {1, 0}), {2.71828174591064453125, 1});
  expect_same(unary_f32(Op::Log, {2, 1}), {0.693147182464599609375, 0});
  expect_same(unary_f32(Op::Sin, {1, 0}), {0.841470956802368164, 0});
  expect_same(unary_f32(Op::Cos, {1, 0}), {0.540302276611328125, 1});
  expect_same(unary_f32(Op::Erf, {1, 0}), {0.842700779438018799, 0});
  expect_same(unary_f32(Op::Tanh, {1, kInf}), {0.761594176292419434, 1});
  expect_same(unary_f32(Op::Atan, {1, 0}), {0.785398185253143310, 0});
}

TEST_F(DtypeTest, FloatBinary) {
  expect_same(binary_f32(Op::Add, {0.1, 3e38, kInf}, {0.2, 3e38, -kInf}),
              {0.300000011920928955078125, kInf, kNan});
  expect_same(binary_f32(Op::Sub, {1, 2}, {3, 2}), {-2, 0});
  expect_same(binary_f32(Op::Mul, {1e-30, 3}, {1e-30, -2}), {0, -6});
  expect_same(binary_f32(Op::Fdiv, {1, -1, 0}, {0, 0, 0}), {kInf, -kInf, kNan});
  expect_same(binary_f32(Op::Max, {1, kNan, 1}, {2, 1, kNan}), {2, kNan, kNan});
  expect_same(binary_f32(Op::Min, {1, kNan, 1}, {2, 1, kNan}), {1, kNan, kNan});
  expect_same(binary_f32(Op::Pow, {2, -2, 4, -2}, {3, 3, .5, .5}), {8, -8, 2, kNan});
  expect_same(binary_f32(Op::Floordiv, {7, -7}, {2, 2}), {3, -4});
  expect_same(binary_f32(Op::Floormod, {7, -7, 7}, {-2, 2, 2}), {-1, 1, 1});
  expect_same(binary_f32(Op::Cmod, {7, -7}, {-2, 2}), {1, -1});
}

TEST_F(DtypeTest, MulaccRoundsOnce) {
  // (1 + 2^-12)^2 - (1 + 2^-11) = 2^-24, which a rounded product loses.
  const double a = 1 + std::ldexp(1, -12);
  const Node x = floats(DType::Float32, {a});
  const Node c = floats(DType::Float32, {-(1 + std::ldexp(1, -11))});
  EXPECT_EQ(as_floats(graph_.alu(Op::Mulacc, {x, x, c})), (Floats{std::ldexp(1, -24)}));
  const Node product = graph_.alu(Op::Mul, {x, x});
  EXPECT_EQ(as_floats(graph_.alu(Op::Add, {product, c})), (Floats{0}));  // each node rounds
}

TEST_F(DtypeTest, Where) {
  const Node c = ints(DType::Bool, {1, 0, 1});
  const Node a = floats(DType::Float32, {1, 2, kNan}), b = floats(DType::Float32, {4, 5, 6});
  expect_same(as_floats(graph_.alu(Op::Where, {c, a, b})), {1, 5, kNan});
  EXPECT_EQ(as_ints(graph_.alu(
                Op::Where, {c, ints(DType::Int8, {1, 2, 3}), graph_.constant(DType::WeakInt, 9)})),
            (Ints{1, 9, 3}));
}

TEST_F(DtypeTest, CastFloatToIntegerSaturates) {
  const Node x = floats(DType::Float32, {300, kNan, kInf, -kInf, 50, -50, -3.9});
  EXPECT_EQ(as_ints(graph_.cast(x, DType::Int8)), (Ints{127, 0, 127, -128, 50, -50, -3}));
  EXPECT_EQ(as_ints(graph_.cast(x, DType::UInt8)), (Ints{255, 0, 255, 0, 50, 0, 0}));
  EXPECT_EQ(as_ints(graph_.cast(x, DType::Int64)), (Ints{300, 0, kMax64, kMin64, 50, -50, -3}));
  EXPECT_EQ(as_ints(graph_.cast(x, DType::UInt64)), (Ints{300, 0, -1, 0, 50, 0, 0}));
  EXPECT_EQ(as_ints(graph_.cast(x, DType::Bool)), (Ints{1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(as_ints(graph_.cast(floats(DType::Float32, {0, -0.0, 0.25}), DType::Bool)),
            (Ints{0, 0, 1}));
}

TEST_F(DtypeTest, CastIntegers) {
  EXPECT_EQ(as_ints(graph_.cast(ints(DType::Int32, {300, -1, 128}), DType::Int8)),
            (Ints{44, -1, -128}));
  EXPECT_EQ(as_ints(graph_.cast(ints(DType::Int8, {-1}), DType::UInt32)), (Ints{4294967295}));
  EXPECT_EQ(as_ints(graph_.cast(ints(DType::Int32, {0, 256, -1}), DType::Bool)), (Ints{0, 1, 1}));
  EXPECT_EQ(as_floats(graph_.cast(ints(DType::UInt64, {-1}), DType::Float64)),
            (Floats{18446744073709551616.0}));
  EXPECT_EQ(as_floats(graph_.cast(ints(DType::Bool, {1, 0}), DType::Float32)), (Floats{1, 0}));
}

TEST_F(DtypeTest, CastInt64ToFloat32RoundsOnce) {
  // The three values of docs/dtypes.md on which two roundings give the neighbour.
  const Node x =
      ints(DType::Int64,
           {0x12a0f450f475a522, static_cast<int64_t>(0xf0273c2811c983fbull), 0x30fe7da03e20d8bc});
  const HostTensor t = run(graph_.cast(x, DType::Float32));
  const uint32_t want[3] = {0x5d9507a3, 0xdd7d8c3d, 0x5e43f9f7};
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(t.data<uint32_t>()[i], want[i]) << i;
}

TEST_F(DtypeTest, NarrowFloats) {
  EXPECT_EQ(as_floats(graph_.cast(floats(DType::Float32, {70000}), DType::BFloat16)),
            (Floats{70144}));
  expect_same(
      as_floats(graph_.cast(floats(DType::Float32, {65504, 65519.9, 65520}), DType::Float16)),
      {65504, 65504, kInf});
  expect_same(as_floats(graph_.cast(floats(DType::Float32, {1000, kInf, kNan}), DType::Fp8E4M3)),
              {448, 448, kNan});
  expect_same(as_floats(graph_.cast(floats(DType::Float32, {1000, kInf}), DType::Fp8E4M3Fnuz)),
              {240, kNan});
  expect_same(as_floats(graph_.cast(floats(DType::Float32, {61440}), DType::Fp8E5M2)), {57344});
  // exp(12) = 162754.79 in bfloat16; 1 + 2^-11 + 2^-40 in float16 is 1 + 2^-10, not a tie.
  EXPECT_EQ(as_floats(graph_.alu(Op::Exp, {floats(DType::BFloat16, {12})})), (Floats{162816}));
  EXPECT_EQ(
      as_floats(graph_.cast(floats(DType::Float64, {1 + std::ldexp(1, -11) + std::ldexp(1, -40)}),
                            DType::Float16)),
      (Floats{1 + std::ldexp(1, -10)}));
  EXPECT_EQ(
      as_floats(graph_.alu(Op::Add, {floats(DType::Float16, {2048}), floats(DType::Float16, {1})})),
      (Floats{2048}));
}

TEST_F(DtypeTest, Bitcast) {
  const auto bitcast = [&](const Node& x, DType to) { return graph_.make(Op::Bitcast, to, {x}); };
  EXPECT_EQ(as_ints(bitcast(floats(DType::Float32, {1, -2}), DType::UInt32)),
            (Ints{0x3f800000, 0xc0000000}));
  EXPECT_EQ(as_floats(bitcast(ints(DType::Int32, {0x40490fdb}), DType::Float32)),
            (Floats{static_cast<double>(3.14159274f)}));
  EXPECT_EQ(as_ints(bitcast(floats(DType::Float16, {1, -1}), DType::Int16)),
            (Ints{0x3c00, -17408}));
  EXPECT_EQ(as_ints(bitcast(ints(DType::UInt8, {255}), DType::Int8)), (Ints{-1}));
  EXPECT_EQ(as_floats(bitcast(ints(DType::Int64, {0x3ff0000000000000}), DType::Float64)),
            (Floats{1}));
}

TEST_F(DtypeTest, OperationsWithoutAMeaningAreRefused) {
  const Node x = floats(DType::Float32, {1}), i = ints(DType::Int32, {1});
  for (const Node& bad :
       {graph_.alu(Op::And, {x, x}), graph_.alu(Op::Sin, {i}), graph_.alu(Op::Shl, {x, i})}) {
    const auto result = evaluate(std::vector<Node>{bad}, inputs_);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::Unsupported);
  }
}

}  // namespace
}  // namespace ignis::interp
