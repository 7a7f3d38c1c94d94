// Reductions, normalisations and losses.
#include "ignis/onnx/test_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ignis::onnx {
namespace {

using namespace testing;
using Values = std::vector<double>;

void expect_near(const HostTensor& got, const Values& expected, double tolerance = 1e-6) {
  ASSERT_EQ(got.count(), static_cast<int64_t>(expected.size()));
  const Values values = doubles(got);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], tolerance) << i;
}

TEST(Reduce, AxesAsAttributeAndAsInput) {
  const HostTensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const HostTensor old_form = run(OneNode("ReduceSum", 11, {ints("axes", {-1})}).input(x))[0];
  EXPECT_EQ(old_form.shape, (Shape{2, 1}));
  EXPECT_EQ(doubles(old_form), (Values{6, 15}));
  const HostTensor new_form =
      run(OneNode("ReduceSum", 13, {attr("keepdims", 0)}).input(x).constant(i64({0})))[0];
  EXPECT_EQ(new_form.shape, (Shape{3}));
  EXPECT_EQ(doubles(new_form), (Values{5, 7, 9}));
  EXPECT_EQ(doubles(run(OneNode("ReduceMean", 18).input(x))[0]), (Values{3.5}));
}

TEST(Reduce, NothingToReduce) {
  const HostTensor x = f32({2}, {-3, 4});
  const OneNode noop = OneNode("ReduceSum", 13, {attr("noop_with_empty_axes", 1)}).input(x);
  EXPECT_EQ(doubles(run(noop)[0]), (Values{-3, 4}));
  // A scalar has no axes, its square is still a square.
  EXPECT_EQ(doubles(run(OneNode("ReduceSumSquare", 13).input(f32({}, {-3})))[0]), (Values{9}));
  // Over no elements: the operation's identity.
  EXPECT_EQ(doubles(run(OneNode("ReduceSum", 13).input(f32({0}, {})))[0]), (Values{0}));
  EXPECT_EQ(doubles(run(OneNode("ReduceProd", 13).input(f32({0}, {})))[0]), (Values{1}));
}

TEST(Reduce, IntegersKeepTheirType) {
  const HostTensor x = HostTensor::from<int64_t>(DType::Int8, {4}, {100, 100, -7, 1});
  const HostTensor sum = run(OneNode("ReduceSum", 13).input(x))[0];
  EXPECT_EQ(sum.dtype, DType::Int8);
  EXPECT_EQ(doubles(sum), (Values{194 - 256}));
  const HostTensor b = HostTensor::from<int64_t>(DType::Bool, {3}, {0, 1, 0});
  EXPECT_EQ(doubles(run(OneNode("ReduceMax", 20).input(b))[0]), (Values{1}));
  EXPECT_EQ(doubles(run(OneNode("ReduceMin", 20).input(b))[0]), (Values{0}));
}

TEST(ArgMax, FirstOrLast) {
  const HostTensor x = f32({1, 4}, {2, 7, 7, 1});
  const HostTensor first = run(OneNode("ArgMax", 13, {attr("axis", -1)}).input(x))[0];
  EXPECT_EQ(first.dtype, DType::Int64);
  EXPECT_EQ(doubles(first), (Values{1}));
  EXPECT_EQ(
      doubles(
          run(OneNode("ArgMax", 13, {attr("axis", 1), attr("select_last_index", 1)}).input(x))[0]),
      (Values{2}));
}

TEST(CumSum, FourForms) {
  const auto sums = [](int exclusive, int reverse) {
    return doubles(
        run(OneNode("CumSum", 14, {attr("exclusive", exclusive), attr("reverse", reverse)})
                .input(f32({1, 2, 4}))
                .constant(i64({}, {0})))[0]);
  };
  EXPECT_EQ(sums(0, 0), (Values{1, 3, 7}));
  EXPECT_EQ(sums(1, 0), (Values{0, 1, 3}));
  EXPECT_EQ(sums(0, 1), (Values{7, 6, 4}));
  EXPECT_EQ(sums(1, 1), (Values{6, 4, 0}));
}

TEST(LayerNormalization, AllOutputs) {
  // Rows [1, 3] and [2, 2]: means 2 and 2, variances 1 and 0, epsilon 0.25.
  const auto y = run(OneNode("LayerNormalization", 17, {attr("epsilon", 0.25f)})
                         .input(f32({2, 2}, {1, 3, 2, 2}))
                         .input(f32({2, 1}))
                         .input(f32({0, 5})),
                     3);
  const double inverse = 1 / std::sqrt(1.25);
  expect_near(y[0], {-2 * inverse, inverse + 5, 0, 5});
  EXPECT_EQ(y[1].shape, (Shape{2, 1}));
  expect_near(y[1], {2, 2});
  expect_near(y[2], {inverse, 2});
}

TEST(GroupNormalization, ScaleByGroupAndByChannel) {
  // One sample, four channels of one value, two groups: [1, 3] and [0, 4] become -1, 1 each.
  const HostTensor x = f32({1, 4, 1}, {1, 3, 0, 4});
  const std::vector<Attr> attributes{attr("num_groups", 2), attr("epsilon", 0.0f)};
  expect_near(run(OneNode("GroupNormalization", 18, attributes)
                      .input(x)
                      .input(f32({2, 3}))
                      .input(f32({0, 1})))[0],
              {-2, 2, -2, 4});
  expect_near(run(OneNode("GroupNormalization", 21, attributes)
                      .input(x)
                      .input(f32({1, 2, 3, 4}))
                      .input(f32({0, 0, 0, 1})))[0],
              {-1, 2, -3, 5});
}

TEST(LpNormalization, ZerosStayZero) {
  expect_near(run(OneNode("LpNormalization", 1).input(f32({2, 2}, {3, 4, 0, 0})))[0],
              {0.6, 0.8, 0, 0});
}

TEST(NegativeLogLikelihoodLoss, IgnoresEvenInfiniteScores) {
  const HostTensor scores = f32({3, 2}, {-1, -2, -3, -4, -INFINITY, -5});
  const HostTensor target = i64({1, 0, 7});  // 7 is ignored and outside the classes
  const auto loss = [&](const char* reduction) {
    return run(OneNode("NegativeLogLikelihoodLoss", 13,
                       {attr("reduction", reduction), attr("ignore_index", 7)})
                   .input(scores)
                   .input(target)
                   .input(f32({10, 100})))[0];
  };
  expect_near(loss("none"), {200, 30, 0});
  expect_near(loss("sum"), {230});
  expect_near(loss("mean"), {230.0 / 110});
}

TEST(SoftmaxCrossEntropyLoss, GivesTheLogProbabilities) {
  const auto y = run(
      OneNode("SoftmaxCrossEntropyLoss", 13).input(f32({1, 2}, {0, std::log(3.0)})).input(i64({1})),
      2);
  expect_near(y[0], {-std::log(0.75)});
  expect_near(y[1], {std::log(0.25), std::log(0.75)});
}

}  // namespace
}  // namespace ignis::onnx
