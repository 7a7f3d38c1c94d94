#include "ignis/pipeline/road/decode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ignis::pipeline {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Section 10.2; 2 ulp of float32 are below 2.4e-7 relative.
TEST(RoadDecode, SigmoidHasTheTablesValues) {
  const std::pair<float, double> rows[] = {{-1000.0f, 1.67014218e-05},
                                           {-12.0f, 1.67014218e-05},
                                           {-11.0f, 1.67014218e-05},
                                           {-kInf, 1.67014218e-05},
                                           {-10.5f, 2.75356911e-05},
                                           {-1.0f, 0.268941421},
                                           {0.0f, 0.5},
                                           {0.5f, 0.622459331},
                                           {5.0f, 0.993307149},
                                           {kInf, 1}};
  for (const auto& [x, expected] : rows) {
    EXPECT_NEAR(static_cast<double>(road_sigmoid(x)), expected, 2.4e-7 * expected) << x;
  }
  EXPECT_TRUE(std::isnan(road_sigmoid(kNan)));
}

TEST(RoadDecode, SafeExpIsLimitedAboveOnly) {
  const std::pair<float, double> rows[] = {
      {-3.0f, 0.0497870684}, {0.0f, 1},           {1.0f, 2.71828183}, {10.0f, 22026.4658},
      {11.0f, 59874.1417},   {11.5f, 59874.1417}, {kInf, 59874.1417}, {-kInf, 0}};
  for (const auto& [x, expected] : rows) {
    EXPECT_NEAR(static_cast<double>(road_safe_exp(x)), expected, 2.4e-7 * expected) << x;
  }
  EXPECT_TRUE(std::isnan(road_safe_exp(kNan)));
}

TEST(RoadDecode, SoftmaxSubtractsTheMaximum) {
  float values[] = {1000, 1001, 999};
  road_softmax(values);
  const double sum = std::exp(-1.0) + 1 + std::exp(-2.0);
  EXPECT_NEAR(values[0], std::exp(-1.0) / sum, 1e-6);
  EXPECT_NEAR(values[1], 1 / sum, 1e-6);
  EXPECT_NEAR(values[2], std::exp(-2.0) / sum, 1e-6);
  road_softmax({});
}

TEST(RoadDecode, FindsTheFirstValueThatIsNotFinite) {
  const float values[] = {1, 2, kNan, kInf};
  EXPECT_EQ(find_non_finite(values), 2);
  EXPECT_EQ(find_non_finite(std::span(values).first(2)), -1);
  EXPECT_EQ(find_non_finite({}), -1);
}

std::string reason(std::vector<RoadSlice> slices, int64_t count) {
  const Status status = check_slices(slices, count);
  return status ? "" : status.error().reason();
}

TEST(RoadSlices, AreCheckedAtLoad) {
  EXPECT_EQ(reason({{"a", 0, 4}, {"b", 4, 10}}, 10), "");
  EXPECT_EQ(reason({}, 10), "");
  EXPECT_EQ(reason({{"a", 0, 11}}, 10), "SliceOutOfRange");
  EXPECT_EQ(reason({{"a", 4, 4}}, 10), "SliceOutOfRange");
  EXPECT_EQ(reason({{"a", 5, 4}}, 10), "SliceOutOfRange");
  EXPECT_EQ(reason({{"a", -1, 4}}, 10), "SliceOutOfRange");
  EXPECT_EQ(reason({{"a", 0, INT64_MAX}}, 10), "SliceOutOfRange");
  EXPECT_EQ(reason({{"a", 0, 5}, {"b", 4, 10}}, 10), "SliceOverlap");
  EXPECT_EQ(reason({{"a", 0, 5}, {"a", 5, 10}}, 10), "SliceName");
}

TEST(RoadDecode, DecodesEachSliceItsWay) {
  RoadContract contract;
  contract.output_count = 6;
  contract.slices = {{"raw", 0, 1, RoadDecode::Raw},
                     {"prob", 1, 2, RoadDecode::Logit},
                     {"choice", 2, 4, RoadDecode::Softmax}};
  const float output[] = {3, 0, 7, 7, -5, 9};
  float decoded[6];
  ASSERT_TRUE(decode_road_output(contract, output, decoded));
  EXPECT_EQ(decoded[0], 3);
  EXPECT_EQ(decoded[1], 0.5f);
  EXPECT_EQ(decoded[2], 0.5f);
  EXPECT_EQ(decoded[3], 0.5f);
  EXPECT_EQ(decoded[4], -5);
  EXPECT_EQ(decoded[5], 9);
  const Status status = decode_road_output(contract, std::span(output).first(5), decoded);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason(), "OutputSize");
}

}  // namespace
}  // namespace ignis::pipeline
