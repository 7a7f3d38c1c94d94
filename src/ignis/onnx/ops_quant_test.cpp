#include "ignis/onnx/test_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ignis::onnx {
namespace {

using namespace testing;

HostTensor i8(Shape shape, const std::vector<int64_t>& v) {
  return HostTensor::from<int64_t>(DType::Int8, std::move(shape), v);
}
HostTensor u8(Shape shape, const std::vector<int64_t>& v) {
  return HostTensor::from<int64_t>(DType::UInt8, std::move(shape), v);
}

TEST(QuantizeLinear, SaturatesAndRoundsToEven) {
  const auto quantize = [](const std::vector<double>& x) {
    auto y =
        OneNode("QuantizeLinear", 13).input(f32(x)).input(f32({}, {1})).input(i8({}, {0})).run();
    EXPECT_TRUE(y) << y.error().to_string();
    EXPECT_EQ((*y)[0].dtype, DType::Int8);
    return doubles((*y)[0]);
  };
  EXPECT_EQ(quantize({-129, -128, -127, -126, 126, 127, 128, 129}),
            (std::vector<double>{-128, -128, -127, -126, 126, 127, 127, 127}));
  EXPECT_EQ(quantize({.5, 1.5, 2.5, -.5, -1.5}), (std::vector<double>{0, 2, 2, 0, -2}));
}

TEST(QuantizeLinear, PerAxisAndBlocks) {
  const HostTensor x = f32({2, 4}, {2, 4, 6, 8, 2, 4, 6, 8});
  auto per_axis = OneNode("QuantizeLinear", 13, {attr("axis", 0)})
                      .input(x)
                      .input(f32({2, 4}))
                      .input(u8({2}, {0, 10}))
                      .run();
  ASSERT_TRUE(per_axis) << per_axis.error().to_string();
  EXPECT_EQ(doubles((*per_axis)[0]), (std::vector<double>{1, 2, 3, 4, 10, 11, 12, 12}));
  auto blocked = OneNode("QuantizeLinear", 21, {attr("axis", 1), attr("block_size", 2)})
                     .input(x)
                     .input(f32({2, 2}, {1, 2, 4, 8}))
                     .run();
  ASSERT_TRUE(blocked) << blocked.error().to_string();
  EXPECT_EQ((*blocked)[0].dtype, DType::UInt8);
  EXPECT_EQ(doubles((*blocked)[0]), (std::vector<double>{2, 4, 3, 4, 0, 1, 1, 1}));
}

TEST(DequantizeLinear, SubtractsInAWiderType) {
  auto y = OneNode("DequantizeLinear", 13)
               .input(i8({3}, {-128, 0, 127}))
               .input(f32({}, {0.5}))
               .input(i8({}, {127}))
               .run();
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_EQ(doubles((*y)[0]), (std::vector<double>{-127.5, -63.5, 0}));
}

TEST(DynamicQuantizeLinear, OfZerosIsZero) {
  auto y = OneNode("DynamicQuantizeLinear", 11).input(f32({0, 0, 0})).run(3);
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_EQ(doubles((*y)[0]), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(doubles((*y)[2]), (std::vector<double>{0}));
}

TEST(MatMulInteger, ZeroPointsPerRowAndColumn) {
  auto y = OneNode("MatMulInteger", 10)
               .input(u8({2, 2}, {1, 2, 3, 255}))
               .input(i8({2, 2}, {-128, 1, 2, 3}))
               .input(u8({2}, {1, 2}))
               .input(i8({2}, {0, 1}))
               .run();
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_EQ((*y)[0].dtype, DType::Int32);
  // rows [0, 1] and [1, 253]; columns [-128, 2] and [0, 2]
  EXPECT_EQ(doubles((*y)[0]), (std::vector<double>{2, 2, 378, 506}));
}

TEST(QLinearConv, PadsWithTheZeroPointAndScalesPerChannel) {
  // x - 10 = [1, -2, 3]; w = [1, 1, 1] and [2, 0, 0] (zero points 0 and 1): sums over windows of 3, pads 1.
  auto y = OneNode("QLinearConv", 10, {ints("pads", {1, 1})})
               .input(u8({1, 1, 3}, {11, 8, 13}))
               .input(f32({}, {0.5}))
               .input(u8({}, {10}))
               .input(i8({2, 1, 3}, {1, 1, 1, 3, 1, 1}))
               .input(f32({1, 2}))
               .input(i8({2}, {0, 1}))
               .input(f32({}, {0.5}))
               .input(u8({}, {100}))
               .input(HostTensor::from<int64_t>(DType::Int32, {2}, {0, 7}))
               .run();
  ASSERT_TRUE(y) << y.error().to_string();
  // Channel 0: [-1, 2, 1] * 1 + 100; channel 1: ([0, 2, -4] + 7) * 2 + 100.
  EXPECT_EQ(doubles((*y)[0]), (std::vector<double>{99, 102, 101, 114, 118, 106}));
}

}  // namespace
}  // namespace ignis::onnx
