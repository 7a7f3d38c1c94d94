#include "ignis/tensor/test_graph.h"

namespace ignis::tensor {
namespace {

TEST_F(TensorTest, Reductions) {
  const Tensor x = input(DType::Float32, {2, 3}, {1, -2, 3, 4, 5, -6});
  EXPECT_EQ(values(sum(x, {1})), (Values{2, 3}));
  EXPECT_EQ(values(sum(x)), Values{5});
  EXPECT_EQ(sum(x, {0, 1}, true).shape(), (Shape{1, 1}));
  EXPECT_EQ(values(prod(x, {0})), (Values{4, -10, -18}));
  EXPECT_EQ(values(max(x, {1})), (Values{3, 5}));
  EXPECT_EQ(values(min(x, {-1})), (Values{-2, -6}));
  EXPECT_EQ(values(mean(x, {0})), (Values{2.5, 1.5, -1.5}));
  EXPECT_EQ(values(var(input(DType::Float32, {4}, {1, 2, 3, 4}))), Values{1.25});
  EXPECT_EQ(values(var(input(DType::Float32, {5}, {1, 2, 3, 4, 5}), {}, false, 1)), Values{2.5});
  EXPECT_EQ(values(norm_l1(x, {1})), (Values{6, 15}));
  EXPECT_EQ(values(norm_l2(input(DType::Float32, {2}, {3, 4}))), Values{5});
  EXPECT_EQ(values(sum_square(x, {1})), (Values{14, 77}));
  EXPECT_EQ(values(any(input(DType::Int32, {2, 2}, {0, 0, 0, 3}), {1})), (Values{0, 1}));
  EXPECT_EQ(values(all(input(DType::Bool, {2, 2}, {1, 1, 0, 1}), {1})), (Values{1, 0}));
}

TEST_F(TensorTest, ReductionsOfNothingGiveTheIdentity) {
  const Tensor x = slice(iota({3, 2}), 0, 0, 0);
  EXPECT_EQ(values(sum(x, {0})), (Values{0, 0}));
  EXPECT_EQ(values(prod(x, {0})), (Values{1, 1}));
  EXPECT_EQ(values(max(x, {0})), (Values{-INFINITY, -INFINITY}));
  EXPECT_EQ(values(min(cast(x, DType::Int8), {0})), (Values{127, 127}));
  EXPECT_EQ(values(cumsum(x, 0)), Values{});
}

TEST_F(TensorTest, SumsAccumulateWide) {
  // 4096 halves of value 1 would stick at 2048 if they were added in float16.
  EXPECT_EQ(values(sum(input(DType::Float16, {4096}, Values(4096, 1.0)))), Values{4096});
  EXPECT_EQ(values(sum(input(DType::UInt8, {3}, {255, 255, 255}))), Values{765});
  EXPECT_EQ(values(sum(input(DType::Bool, {3}, {1, 1, 1}))), Values{3});
  EXPECT_EQ(values(mean(input(DType::UInt8, {2}, {255, 254}))), Values{254.5});
}

TEST_F(TensorTest, NanWinsMaximaAndPositions) {
  const Tensor x = input(DType::Float32, {4}, {1, NAN, 3, NAN});
  EXPECT_TRUE(std::isnan(values(max(x))[0]));
  EXPECT_TRUE(std::isnan(values(relu(x))[1]));
  EXPECT_TRUE(std::isnan(values(clamp(x, 0, 2))[1]));
  EXPECT_EQ(values(argmax(x, 0)), Values{1});
  EXPECT_EQ(values(argmin(x, 0, false, Pick::Last)), Values{3});
}

TEST_F(TensorTest, Positions) {
  const Tensor x = input(DType::Float32, {2, 4}, {1, 5, 5, 0, -1, -1, -3, -3});
  EXPECT_EQ(values(argmax(x, 1)), (Values{1, 0}));
  EXPECT_EQ(values(argmax(x, 1, false, Pick::Last)), (Values{2, 1}));
  EXPECT_EQ(values(argmin(x, 1)), (Values{3, 2}));
  EXPECT_EQ(argmin(x, 0, true).shape(), (Shape{1, 4}));
  EXPECT_EQ(values(argmax(input(DType::Int32, {1, 3}, {4, 4, 2}), 0)), (Values{0, 0, 0}));
}

TEST_F(TensorTest, Scans) {
  const Tensor x = input(DType::Float32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values(cumsum(x, 1)), (Values{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(values(cumsum(x, 0)), (Values{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(values(cumsum(x, 1, ScanStart::Exclusive)), (Values{0, 1, 3, 0, 4, 9}));
  EXPECT_EQ(values(cumsum(x, 1, ScanStart::Inclusive, ScanOrder::Reverse)),
            (Values{6, 5, 3, 15, 11, 6}));
  EXPECT_EQ(values(cumsum(x, 1, ScanStart::Exclusive, ScanOrder::Reverse)),
            (Values{5, 3, 0, 11, 6, 0}));
  EXPECT_EQ(values(cumprod(x, 1)), (Values{1, 2, 6, 4, 20, 120}));
}

TEST_F(TensorTest, SoftmaxAndLogSumExp) {
  const Tensor x = input(DType::Float32, {2, 2}, {0, 0, 1000, 0});
  EXPECT_EQ(values(softmax(x, 1)), (Values{0.5, 0.5, 1, 0}));
  expect_near(log_softmax(x, -1), {-std::log(2.0), -std::log(2.0), 0, -1000}, 1e-6);
  expect_near(logsumexp(x, {1}), {std::log(2.0), 1000}, 1e-6);
  EXPECT_EQ(values(logsumexp(input(DType::Float32, {2}, {-INFINITY, -INFINITY}))),
            Values{-INFINITY});
}

TEST_F(TensorTest, Norms) {
  Values v;
  const Tensor x = random({2, 4, 3, 3}, &v);
  const Tensor scale = input(DType::Float32, {4}, {1, 2, 0.5, -1}),
               bias = input(DType::Float32, {4}, {0, 1, -1, 2});
  const double s[] = {1, 2, 0.5, -1}, b[] = {0, 1, -1, 2};
  // Mean and deviation over runs of `length` consecutive elements, in float64.
  const auto expected = [&](size_t length) {
    Values out(v.size());
    for (size_t start = 0; start < v.size(); start += length) {
      double total = 0, square = 0;
      for (size_t i = 0; i < length; ++i) total += v[start + i];
      const double centre = total / static_cast<double>(length);
      for (size_t i = 0; i < length; ++i)
        square += (v[start + i] - centre) * (v[start + i] - centre);
      const double deviation = std::sqrt(square / static_cast<double>(length) + 1e-5);
      for (size_t i = start; i < start + length; ++i) {
        const size_t channel = i / 9 % 4;
        out[i] = (v[i] - centre) / deviation * s[channel] + b[channel];
      }
    }
    return out;
  };
  expect_near(instance_norm(x, scale, bias), expected(9), 2e-5);
  expect_near(group_norm(x, 2, scale, bias), expected(18), 2e-5);
  expect_near(group_norm(x, 1, scale, bias), expected(36), 2e-5);
  const Tensor mean_of = input(DType::Float32, {4}, {0.5, 0, -0.5, 1}),
               variance = input(DType::Float32, {4}, {1, 2, 3, 4});
  const double m[] = {0.5, 0, -0.5, 1}, r[] = {1, 2, 3, 4};
  Values normal(v.size());
  for (size_t i = 0; i < v.size(); ++i) {
    const size_t c = i / 9 % 4;
    normal[i] = (v[i] - m[c]) / std::sqrt(r[c] + 1e-5) * s[c] + b[c];
  }
  expect_near(batch_norm(x, scale, bias, mean_of, variance), normal, 2e-6);
  const Tensor row = input(DType::Float32, {1, 3}, {1, 2, 3});
  const double root = std::sqrt(14.0 / 3 + 1e-5);
  expect_near(rms_norm(row, 1, {}), {1 / root, 2 / root, 3 / root}, 1e-6);
  expect_near(layer_norm(row, 1, input(DType::Float32, {3}, {1, 1, 2}), {}, 0),
              {-std::sqrt(1.5), 0, 2 * std::sqrt(1.5)}, 1e-6);
}

}  // namespace
}  // namespace ignis::tensor
