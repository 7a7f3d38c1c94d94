#include "ignis/onnx/test_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ignis::onnx {
namespace {

using namespace testing;
using Values = std::vector<double>;

Values run_one(const OneNode& node) {
  auto y = node.run();
  EXPECT_TRUE(y) << y.error().to_string();
  return y ? doubles((*y)[0]) : Values{};
}

TEST(Gather, NegativeIndicesCountFromTheEnd) {
  EXPECT_EQ(run_one(OneNode("Gather", 13, {attr("axis", 1)})
                        .input(f32({2, 3}, {1, 2, 3, 4, 5, 6}))
                        .input(i64({-1, 0}))),
            (Values{3, 1, 6, 4}));
}

TEST(ScatterElements, LastOfEqualIndicesWins) {
  const OneNode replace = OneNode("ScatterElements", 13)
                              .input(f32({1, 2, 3}))
                              .input(i64({1, -1, 1}))
                              .input(f32({10, 20, 30}));
  EXPECT_EQ(run_one(replace), (Values{1, 30, 20}));
  const OneNode add = OneNode("ScatterElements", 16, {attr("reduction", "add")})
                          .input(f32({1, 2, 3}))
                          .input(i64({1, -1, 1}))
                          .input(f32({10, 20, 30}));
  EXPECT_EQ(run_one(add), (Values{1, 42, 23}));
}

TEST(ScatterND, RowsAndReductions) {
  const auto node = [](const char* reduction) {
    return OneNode("ScatterND", 18, {attr("reduction", reduction)})
        .input(f32({3, 2}, {1, 2, 3, 4, 5, 6}))
        .input(i64({2, 1}, {2, 0}))
        .input(f32({2, 2}, {10, 20, -1, 7}));
  };
  EXPECT_EQ(run_one(node("none")), (Values{-1, 7, 3, 4, 10, 20}));
  EXPECT_EQ(run_one(node("mul")), (Values{-1, 14, 3, 4, 50, 120}));
  EXPECT_EQ(run_one(node("max")), (Values{1, 7, 3, 4, 10, 20}));
  EXPECT_EQ(run_one(node("min")), (Values{-1, 2, 3, 4, 5, 6}));
}

TEST(OneHot, NegativeAndOutsideIndices) {
  EXPECT_EQ(run_one(OneNode("OneHot", 11)
                        .input(i64({0, -1, 3, -4}))
                        .constant(i64({}, {3}))
                        .input(f32({2, 5}))),
            (Values{5, 2, 2, 2, 2, 5, 2, 2, 2, 2, 2, 2}));
}

TEST(TopK, EqualValuesKeepTheirOrder) {
  const auto node = [](int largest) {
    return OneNode("TopK", 11, {attr("largest", largest)})
        .input(f32({3, 1, 3, 2, 1}))
        .constant(i64({1}, {3}));
  };
  auto most = node(1).run(2);
  ASSERT_TRUE(most) << most.error().to_string();
  EXPECT_EQ(doubles((*most)[0]), (Values{3, 3, 2}));
  EXPECT_EQ(doubles((*most)[1]), (Values{0, 2, 3}));
  auto least = node(0).run(2);
  ASSERT_TRUE(least) << least.error().to_string();
  EXPECT_EQ(doubles((*least)[0]), (Values{1, 1, 2}));
  EXPECT_EQ(doubles((*least)[1]), (Values{1, 4, 3}));
}

TEST(ReverseSequence, OnlyInsideEachLength) {
  // [time 3, batch 2]
  EXPECT_EQ(run_one(OneNode("ReverseSequence", 10)
                        .input(f32({3, 2}, {1, 10, 2, 20, 3, 30}))
                        .input(i64({2, 3}))),
            (Values{2, 30, 1, 20, 3, 10}));
}

TEST(Trilu, FarDiagonals) {
  const HostTensor x = f32({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(run_one(OneNode("Trilu", 14).input(x).constant(i64({}, {INT64_MAX}))),
            (Values{0, 0, 0, 0}));
  EXPECT_EQ(run_one(OneNode("Trilu", 14).input(x).constant(i64({}, {INT64_MIN}))),
            (Values{1, 2, 3, 4}));
  EXPECT_EQ(run_one(OneNode("Trilu", 14, {attr("upper", 0)}).input(x)), (Values{1, 0, 3, 4}));
}

TEST(ChosenByValue, NeedsConstants) {
  EXPECT_EQ(run_one(OneNode("NonZero", 13).constant(f32({2, 2}, {0, 5, 6, 0}))),
            (Values{0, 1, 1, 0}));
  EXPECT_EQ(run_one(OneNode("Compress", 11, {attr("axis", 1)})
                        .input(f32({2, 3}, {1, 2, 3, 4, 5, 6}))
                        .constant(HostTensor::from<int64_t>(DType::Bool, {3}, {1, 0, 1}))),
            (Values{1, 3, 4, 6}));
  auto unknown = OneNode("NonZero", 13).input(f32({1, 0})).run();
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().reason(), "NeedsConstant");
}

TEST(Unique, FirstPositionsInversesAndCounts) {
  auto y = OneNode("Unique", 11).constant(f32({2, 1, 1, 3, 4, 3})).run(4);
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_EQ(doubles((*y)[0]), (Values{1, 2, 3, 4}));
  EXPECT_EQ(doubles((*y)[1]), (Values{1, 0, 3, 4}));
  EXPECT_EQ(doubles((*y)[2]), (Values{1, 0, 0, 2, 3, 2}));
  EXPECT_EQ(doubles((*y)[3]), (Values{2, 1, 2, 1}));
}

TEST(NonMaxSuppression, WithoutBoxesIsEmpty) {
  const HostTensor boxes = f32({1, 2, 4}, {0, 0, 1, 1, 0, 0, 1, 1});
  const HostTensor scores = f32({1, 1, 2}, {.9, .8});
  auto absent = OneNode("NonMaxSuppression", 11).input(boxes).input(scores).run();
  ASSERT_TRUE(absent) << absent.error().to_string();
  EXPECT_EQ((*absent)[0].shape, (Shape{0, 3}));
  auto none =
      OneNode("NonMaxSuppression", 11).input(boxes).input(scores).constant(i64({}, {0})).run();
  ASSERT_TRUE(none) << none.error().to_string();
  EXPECT_EQ((*none)[0].shape, (Shape{0, 3}));
}

TEST(NonMaxSuppression, KeepsTheBestOfOverlappingBoxes) {
  // Box 1 covers box 0 by 0.81 / 1.19 = 0.68; box 2 lies apart.
  auto y = OneNode("NonMaxSuppression", 11)
               .constant(f32({1, 3, 4}, {0, 0, 1, 1, 0.1, 0.1, 1.1, 1.1, 5, 5, 6, 6}))
               .constant(f32({1, 1, 3}, {.5, .9, .7}))
               .constant(i64({}, {3}))
               .constant(f32({}, {0.5}))
               .run();
  ASSERT_TRUE(y) << y.error().to_string();
  EXPECT_EQ(doubles((*y)[0]), (Values{0, 0, 1, 0, 0, 2}));
}

}  // namespace
}  // namespace ignis::onnx
