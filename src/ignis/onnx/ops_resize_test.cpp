#include "ignis/onnx/resize_table.h"
#include "ignis/onnx/test_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace ignis::onnx {
namespace {

using namespace testing;

// The row [0, 1, 2] by 2.5 gives floor(7.5) = 7 values.
AxisResize row(CoordinateMode coordinate, ResizeMode mode) {
  AxisResize axis;
  axis.in = 3;
  axis.out = 7;
  axis.scale = 2.5;
  axis.coordinate = coordinate;
  axis.mode = mode;
  return axis;
}

TEST(ResizeTable, NearestOfThreeByTwoAndAHalf) {
  using Indices = std::vector<int64_t>;
  const auto indices = [](CoordinateMode c) {
    return make_axis_table(row(c, ResizeMode::Nearest)).index;
  };
  EXPECT_EQ(indices(CoordinateMode::HalfPixel), (Indices{0, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(indices(CoordinateMode::Asymmetric), (Indices{0, 0, 1, 1, 2, 2, 2}));
  EXPECT_EQ(indices(CoordinateMode::AlignCorners), (Indices{0, 0, 1, 1, 1, 2, 2}));
}

// On the row [0, 1, 2] the interpolated value is the clamped position itself.
TEST(ResizeTable, LinearOfThreeByTwoAndAHalf) {
  const auto values = [](CoordinateMode c) {
    const AxisTable table = make_axis_table(row(c, ResizeMode::Linear));
    std::vector<double> out;
    for (int64_t o = 0; o < table.out; ++o) {
      double sum = 0;
      for (int64_t t = 0; t < table.taps; ++t) {
        const size_t at = static_cast<size_t>(o * table.taps + t);
        sum += table.weight[at] * static_cast<double>(table.index[at]);
      }
      out.push_back(sum);
    }
    return out;
  };
  const std::vector<std::pair<CoordinateMode, std::vector<double>>> rows = {
      {CoordinateMode::HalfPixel, {0, .1, .5, .9, 1.3, 1.7, 2}},
      {CoordinateMode::Asymmetric, {0, .4, .8, 1.2, 1.6, 2, 2}},
      {CoordinateMode::AlignCorners, {0, 1.0 / 3, 2.0 / 3, 1, 4.0 / 3, 5.0 / 3, 2}},
  };
  for (const auto& [mode, expected] : rows) {
    const std::vector<double> got = values(mode);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
  }
}

TEST(ResizeTable, NearestTies) {
  // x / 2 for x = 0 … 5 gives 0, .5, 1, 1.5, 2, 2.5.
  AxisResize axis;
  axis.in = 4;
  axis.out = 6;
  axis.scale = 2;
  axis.coordinate = CoordinateMode::Asymmetric;
  const std::vector<std::pair<NearestMode, std::vector<int64_t>>> rows = {
      {NearestMode::RoundPreferFloor, {0, 0, 1, 1, 2, 2}},
      {NearestMode::RoundPreferCeil, {0, 1, 1, 2, 2, 3}},
      {NearestMode::Floor, {0, 0, 1, 1, 2, 2}},
      {NearestMode::Ceil, {0, 1, 1, 2, 2, 3}},
  };
  for (const auto& [mode, expected] : rows) {
    axis.nearest = mode;
    EXPECT_EQ(make_axis_table(axis).index, expected);
  }
}

TEST(ResizeTable, WeightsSumToOne) {
  for (const ResizeMode mode : {ResizeMode::Linear, ResizeMode::Cubic}) {
    for (const bool exclude : {false, true}) {
      for (const bool antialias : {false, true}) {
        for (const int64_t out : {1, 3, 5, 10, 23}) {
          AxisResize axis;
          axis.in = 10;
          axis.out = out;
          axis.scale = static_cast<double>(out) / 10;
          axis.mode = mode;
          axis.exclude_outside = exclude;
          axis.antialias = antialias;
          const AxisTable table = make_axis_table(axis);
          for (int64_t o = 0; o < out; ++o) {
            const auto begin = table.weight.begin() + o * table.taps;
            EXPECT_NEAR(std::accumulate(begin, begin + table.taps, 0.0), 1, 1e-12);
          }
          for (const int64_t i : table.index) {
            EXPECT_GE(i, 0);
            EXPECT_LT(i, 10);
          }
        }
      }
    }
  }
}

TEST(Resize, NearestAndLinearThroughTheImporter) {
  const HostTensor x = f32({1, 1, 1, 3}, {0, 1, 2});
  const HostTensor scales = f32({1, 1, 1, 2.5});
  auto nearest = OneNode("Resize", 13).input(x).absent().constant(scales).run();
  ASSERT_TRUE(nearest) << nearest.error().to_string();
  EXPECT_EQ((*nearest)[0].shape, (Shape{1, 1, 1, 7}));
  EXPECT_EQ(doubles((*nearest)[0]), (std::vector<double>{0, 0, 0, 1, 1, 2, 2}));
  auto linear =
      OneNode("Resize", 13, {attr("mode", "linear")}).input(x).absent().constant(scales).run();
  ASSERT_TRUE(linear) << linear.error().to_string();
  const std::vector<double> expected{0, .1, .5, .9, 1.3, 1.7, 2};
  const std::vector<double> got = doubles((*linear)[0]);
  for (size_t i = 0; i < 7; ++i) EXPECT_NEAR(got[i], expected[i], 1e-6);
}

TEST(Resize, KeepsTheAspectRatio) {
  const HostTensor x = f32({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto shape_for = [&](const char* policy) {
    auto y = OneNode("Resize", 18, {attr("keep_aspect_ratio_policy", policy), ints("axes", {2, 3})})
                 .input(x)
                 .absent()
                 .absent()
                 .constant(i64({7, 8}))
                 .run();
    EXPECT_TRUE(y) << y.error().to_string();
    return (*y)[0].shape;
  };
  EXPECT_EQ(shape_for("stretch"), (Shape{1, 1, 7, 8}));
  EXPECT_EQ(shape_for("not_larger"), (Shape{1, 1, 4, 8}));    // scale min(3.5, 2)
  EXPECT_EQ(shape_for("not_smaller"), (Shape{1, 1, 7, 14}));  // scale max(3.5, 2)
}

TEST(Resize, RefusesBadScales) {
  const HostTensor x = f32({1, 1, 1, 3}, {0, 1, 2});
  EXPECT_FALSE(OneNode("Resize", 13).input(x).absent().constant(f32({1, 1, 1, -2})).run());
  EXPECT_FALSE(OneNode("Resize", 13).input(x).absent().constant(f32({1, 1, 2})).run());
  EXPECT_FALSE(OneNode("Resize", 13).input(x).absent().constant(f32({1, 1, 1, 1e30})).run());
  EXPECT_FALSE(OneNode("Resize", 13).input(x).run());
  EXPECT_FALSE(OneNode("Resize", 13).input(x).absent().constant(f32({1, 1, 1, NAN})).run());
  // Over the limits: a huge side, and a huge product of sides that are each allowed.
  EXPECT_FALSE(
      OneNode("Resize", 13).input(x).absent().absent().constant(i64({1, 1, 1, INT64_MAX})).run());
  EXPECT_FALSE(
      OneNode("Resize", 13).input(x).absent().absent().constant(i64({1, 900000, 900000, 3})).run());
}

TEST(Resize, AntialiasWithLongFiltersMatchesTheTable) {
  std::vector<double> row(40);
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<double>(i * i % 17);
  AxisResize axis;
  axis.in = 40;
  axis.out = 7;
  axis.scale = 7.0 / 40;
  axis.mode = ResizeMode::Cubic;
  axis.antialias = true;
  const AxisTable table = make_axis_table(axis);
  auto y = OneNode("Resize", 18, {attr("mode", "cubic"), attr("antialias", 1), ints("axes", {0})})
               .input(f32({40, 2},
                          [&] {
                            std::vector<double> twice;
                            for (const double v : row) twice.insert(twice.end(), {v, -v});
                            return twice;
                          }()))
               .absent()
               .absent()
               .constant(i64({7}))
               .run();
  ASSERT_TRUE(y) << y.error().to_string();
  const std::vector<double> got = doubles((*y)[0]);
  for (int64_t o = 0; o < 7; ++o) {
    double sum = 0;
    for (int64_t t = 0; t < table.taps; ++t) {
      const size_t at = static_cast<size_t>(o * table.taps + t);
      sum += table.weight[at] * row[static_cast<size_t>(table.index[at])];
    }
    EXPECT_NEAR(got[static_cast<size_t>(2 * o)], sum, 1e-5);
    EXPECT_NEAR(got[static_cast<size_t>(2 * o + 1)], -sum, 1e-5);
  }
}

TEST(Upsample, RepeatsFromBothFormsOfScales) {
  const HostTensor x = f32({1, 1, 1, 2}, {3, 5});
  const std::vector<double> expected{3, 3, 5, 5, 3, 3, 5, 5};
  auto v7 = OneNode("Upsample", 7, {testing::floats("scales", {1, 1, 2, 2})}).input(x).run();
  ASSERT_TRUE(v7) << v7.error().to_string();
  EXPECT_EQ(doubles((*v7)[0]), expected);
  auto v9 = OneNode("Upsample", 9).input(x).constant(f32({1, 1, 2, 2})).run();
  ASSERT_TRUE(v9) << v9.error().to_string();
  EXPECT_EQ(doubles((*v9)[0]), expected);
}

}  // namespace
}  // namespace ignis::onnx
