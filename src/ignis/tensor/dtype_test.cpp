#include "ignis/tensor/test_graph.h"

namespace ignis::tensor {
namespace {

using ir::Op;

bool has_op(const Tensor& x, Op op) {
  for (const ir::Node& node : ir::toposort(x.node())) {
    if (node.is(op)) return true;
  }
  return false;
}

// One row of the weak-scalar table: the dtype of each expression with a host scalar (dtypes.md, section 3).
struct WeakRow {
  DType dtype, plus_true, plus_int, plus_float, over_int, floordiv_int, power, where_int,
      where_float, negative, total, average, exponential;
};

TEST_F(TensorTest, WeakScalarTable) {
  using enum DType;
  const WeakRow rows[] = {
      {Bool, Bool, WeakInt, WeakFloat, Float32, WeakInt, WeakInt, WeakInt, WeakFloat, Bool, Int32,
       Float32, Float32},
      {Int8, Int8, Int8, WeakFloat, Float32, Int8, Int8, Int8, WeakFloat, Int8, Int32, Float32,
       Float32},
      {UInt8, UInt8, UInt8, WeakFloat, Float32, UInt8, UInt8, UInt8, WeakFloat, UInt8, UInt32,
       Float32, Float32},
      {Int16, Int16, Int16, WeakFloat, Float32, Int16, Int16, Int16, WeakFloat, Int16, Int32,
       Float32, Float32},
      {UInt16, UInt16, UInt16, WeakFloat, Float32, UInt16, UInt16, UInt16, WeakFloat, UInt16,
       UInt32, Float32, Float32},
      {Int32, Int32, Int32, WeakFloat, Float32, Int32, Int32, Int32, WeakFloat, Int32, Int32,
       Float32, Float32},
      {UInt32, UInt32, UInt32, WeakFloat, Float32, UInt32, UInt32, UInt32, WeakFloat, UInt32,
       UInt32, Float32, Float32},
      {Int64, Int64, Int64, WeakFloat, Float32, Int64, Int64, Int64, WeakFloat, Int64, Int64,
       Float32, Float32},
      {UInt64, UInt64, UInt64, WeakFloat, Float32, UInt64, UInt64, UInt64, WeakFloat, UInt64,
       UInt64, Float32, Float32},
  };
  const Tensor c = input(Bool, {2}, {1, 0});
  for (const WeakRow& row : rows) {
    SCOPED_TRACE(std::string(to_string(row.dtype)));
    const Tensor t = input(row.dtype, {2}, {1, 0});
    EXPECT_EQ((t + true).dtype(), row.plus_true);
    EXPECT_EQ((t + 1).dtype(), row.plus_int);
    EXPECT_EQ((t + 0.5).dtype(), row.plus_float);
    EXPECT_EQ((t / 1).dtype(), row.over_int);
    EXPECT_EQ((t < 0.5).dtype(), Bool);
    EXPECT_EQ(where(c, t, 1).dtype(), row.where_int);
    EXPECT_EQ(where(c, t, 0.5).dtype(), row.where_float);
    EXPECT_EQ((-t).dtype(), row.negative);
    EXPECT_EQ(sum(t).dtype(), row.total);
    EXPECT_EQ(mean(t).dtype(), row.average);
    EXPECT_EQ(exp(t).dtype(), row.exponential);
    if (row.dtype == Bool)
      continue;  // an operator on weak ints commits: the two cells below are int32 here
    EXPECT_EQ(floordiv(t, 2).dtype(), row.floordiv_int);
    EXPECT_EQ(pow(t, 2).dtype(), row.power);
  }
  for (const DType f :
       {Fp8E4M3, Fp8E5M2, Fp8E4M3Fnuz, Fp8E5M2Fnuz, Float16, BFloat16, Float32, Float64}) {
    SCOPED_TRACE(std::string(to_string(f)));
    const Tensor t = input(f, {2}, {1, 0});
    for (const Tensor& y : {t + true, t + 1, t + 0.5, t / 1, floordiv(t, 2), pow(t, 2),
                            where(c, t, 1), where(c, t, 0.5), -t, sum(t), mean(t), exp(t)}) {
      EXPECT_EQ(y.dtype(), f);
    }
  }
}

TEST_F(TensorTest, FurtherPromotionRows) {
  using enum DType;
  const auto of = [&](DType dtype) { return input(dtype, {2}, {1, 2}); };
  EXPECT_EQ(Tensor::scalar(graph_, 3).dtype(), WeakInt);
  EXPECT_EQ(Tensor::scalar(graph_, 3.0).dtype(), WeakFloat);
  EXPECT_EQ((of(Int64) + of(UInt64)).dtype(), WeakFloat);
  EXPECT_EQ((of(Int64) + of(UInt64) + of(Float16)).dtype(), Float16);
  EXPECT_EQ((of(Int8) + 0.5 + of(Float16)).dtype(), Float16);
  EXPECT_EQ((of(Int8) + 0.5 + of(BFloat16)).dtype(), BFloat16);
  EXPECT_EQ((of(Bool) + 1 + of(Int8)).dtype(), Int8);
  EXPECT_EQ((of(Bool) + 1 + of(UInt16)).dtype(), UInt16);
  EXPECT_EQ((1 / of(Int8)).dtype(), Float32);
  EXPECT_EQ((1 - of(UInt16)).dtype(), UInt16);
  EXPECT_EQ(pow(2, of(Int8)).dtype(), Int8);
  EXPECT_EQ(exp(Tensor::scalar(graph_, 2)).dtype(), WeakFloat);
  EXPECT_EQ((of(Float16) / of(Int8)).dtype(), Float16);
  EXPECT_EQ(copysign(of(UInt8), of(UInt32)).dtype(), UInt32);
  EXPECT_EQ(pad(of(UInt8), {{1, 1}}, 1).dtype(), UInt8);
  EXPECT_EQ(commit(of(Bool) + 1).dtype(), Int32);
  EXPECT_EQ(argmax(of(Float16), 0).dtype(), Int32);
  EXPECT_EQ(matmul(of(Int8), of(Int8)).dtype(), Int8);
  EXPECT_EQ(matmul(of(Int8), of(Int8), Int32).dtype(), Int32);
  EXPECT_EQ(matmul(of(Float16), of(Float16)).dtype(), Float16);
  EXPECT_NE(error_of([&] { pow(of(Int8), -1); }), "");
  EXPECT_NE(error_of([&] { bitcast(Tensor::scalar(graph_, 1), Int32); }), "");
}

TEST_F(TensorTest, ScalarsAndConstantsAreOneNode) {
  const Tensor f = iota({3});
  EXPECT_EQ((f + 2).node(), (f + Tensor::scalar(graph_, 2)).node());
  EXPECT_EQ((f + 2).node(), (f + 2.0).node());
  EXPECT_EQ((f + 2).node(), (f + Tensor::full(graph_, {3}, 2, DType::Float32)).node());
  EXPECT_NE((f * 0.0).node(), (f * -0.0).node());
  const Tensor u = input(DType::UInt8, {2}, {1, 2});
  for (const Tensor& y : {minimum(u, 1), minimum(1, u)}) {
    EXPECT_EQ(y.dtype(), DType::UInt8);
    EXPECT_FALSE(has_op(y, Op::Cast));
  }
}

TEST_F(TensorTest, ScalarsWrapButCompareExactly) {
  const Tensor u = input(DType::UInt8, {1}, {255}), s = input(DType::Int8, {1}, {1});
  EXPECT_EQ(values(u + 1), Values{0});
  EXPECT_EQ(values(u + 256), Values{255});
  EXPECT_EQ(values(s + 200), Values{-55});
  EXPECT_EQ(values(s < 200), Values{1});
  EXPECT_EQ(values(s > 200), Values{0});
  EXPECT_EQ(values(200 > s), Values{1});
  EXPECT_EQ(values(s > -300), Values{1});
  EXPECT_EQ(values(equal(s, 257)), Values{0});
  EXPECT_EQ(values(not_equal(s, 257)), Values{1});
  EXPECT_EQ(values(u < 256), Values{1});
  EXPECT_EQ(values(u >= -1), Values{1});
}

TEST_F(TensorTest, SignedAndUnsigned64BitsCompareExactly) {
  const int64_t big = int64_t{1} << 53;
  const Tensor a =
      Tensor::constant(graph_, HostTensor::from<int64_t>(DType::Int64, {3}, {-1, big, big + 1}));
  const Tensor b = Tensor::constant(
      graph_, HostTensor::from<int64_t>(DType::UInt64, {3}, {INT64_MIN, big + 1, big}));
  EXPECT_EQ(values(a < b), (Values{1, 1, 0}));  // uint64 holds 2^63 in its first element
  EXPECT_EQ(values(b < a), (Values{0, 0, 1}));
  EXPECT_EQ(values(equal(a, b)), (Values{0, 0, 0}));
  EXPECT_EQ(values(not_equal(a, b)), (Values{1, 1, 1}));
  EXPECT_EQ(values(a <= b), (Values{1, 1, 0}));
}

TEST_F(TensorTest, IntegerDivisionRules) {
  const Tensor a = input(DType::Int64, {4}, {8, -8, 7, -7}),
               b = input(DType::Int64, {4}, {-3, 3, -2, 2});
  EXPECT_EQ(values(cdiv(a, b)), (Values{-2, -2, -3, -3}));
  EXPECT_EQ(values(floormod(a, b)), (Values{-1, 1, -1, 1}));
  EXPECT_EQ(values(cmod(a, b)), (Values{2, -2, 1, -1}));
  EXPECT_EQ(values(floordiv(a, b)), (Values{-3, -3, -4, -4}));
  const Tensor zero = input(DType::Int64, {4}, {0, 0, 0, 0});
  for (const Tensor& y : {cdiv(a, zero), cmod(a, zero), floordiv(a, zero), floormod(a, zero)}) {
    EXPECT_EQ(values(y), (Values{0, 0, 0, 0}));
  }
  const Tensor low = input(DType::Int8, {1}, {-128});
  EXPECT_EQ(values(floordiv(low, -1)), Values{-128});
  EXPECT_EQ(values(floormod(low, -1)), Values{0});
}

TEST_F(TensorTest, ShiftsPushEverythingOut) {
  const Tensor u = input(DType::UInt8, {4}, {255, 1, 128, 3}),
               n = input(DType::UInt32, {4}, {8, 256, 7, 1});
  EXPECT_EQ(values(shift_left(u, n)), (Values{0, 0, 0, 6}));
  EXPECT_EQ(values(shift_right(u, n)), (Values{0, 0, 1, 1}));
  EXPECT_EQ(values(shift_right(u, 300)), (Values{0, 0, 0, 0}));
  const Tensor s = input(DType::Int8, {2}, {-5, 5});
  EXPECT_EQ(values(shift_right(s, 1)), (Values{-3, 2}));
  EXPECT_EQ(values(shift_right(s, 40)), (Values{-1, 0}));
  EXPECT_EQ(shift_left(input(DType::UInt32, {1}, {0xFFFF}), 4).dtype(), DType::UInt32);
}

TEST_F(TensorTest, CastSaturatesFloatsAndWrapsIntegers) {
  const Tensor f = input(DType::Float32, {6}, {300, NAN, INFINITY, -INFINITY, 50, -50});
  EXPECT_EQ(values(cast(f, DType::Int8)), (Values{127, 0, 127, -128, 50, -50}));
  EXPECT_EQ(values(cast(input(DType::Int32, {1}, {300}), DType::Int8)), Values{44});
  EXPECT_EQ(values(cast(f, DType::Bool)), (Values{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(
      values(cast(cast(input(DType::Float32, {1}, {70000}), DType::BFloat16), DType::Float32)),
      Values{70144});
}

TEST_F(TensorTest, BitcastRescalesTheLastAxis) {
  const Tensor bytes = input(DType::UInt8, {4}, {1, 2, 3, 4});
  EXPECT_EQ(values(bitcast(bytes, DType::Int32)), Values{67305985});
  EXPECT_EQ(values(bitcast(bitcast(bytes, DType::Int32), DType::UInt8)), (Values{1, 2, 3, 4}));
  EXPECT_NE(error_of([&] { bitcast(input(DType::UInt8, {3}, {1, 2, 3}), DType::Int32); }), "");
  EXPECT_EQ(values(bitcast(input(DType::Float32, {1}, {1.0}), DType::UInt32)), Values{0x3f800000});
}

}  // namespace
}  // namespace ignis::tensor
