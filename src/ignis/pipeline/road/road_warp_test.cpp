#include "ignis/pipeline/road/road_warp.h"

#include "ignis/pipeline/road/test_road_frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ignis::pipeline {
namespace {

using testing::RoadTestFrame;

int at(const std::vector<std::byte>& image, int plane, int row, int column) {
  return std::to_integer<int>(
      image[static_cast<size_t>((plane * kRoadPlaneRows + row) * kRoadPlaneColumns + column)]);
}

std::vector<std::byte> warp(const RoadTestFrame& frame, const std::array<float, 9>& matrix) {
  std::vector<std::byte> image(kRoadImageBytes);
  warp_road(frame.shape(), frame.bytes, matrix, image);
  return image;
}

constexpr std::array<float, 9> kIdentity{1, 0, 0, 0, 1, 0, 0, 0, 1};

TEST(RoadWarp, PacksTheFourPhasesOfLumaThenChroma) {
  const RoadTestFrame frame(640, 480);
  const auto image = warp(frame, kIdentity);
  for (const auto& [row, column] : {std::pair{0, 0}, {1, 2}, {127, 255}, {50, 100}}) {
    EXPECT_EQ(at(image, 0, row, column), frame.luma(2 * column, 2 * row));
    EXPECT_EQ(at(image, 1, row, column), frame.luma(2 * column, 2 * row + 1));
    EXPECT_EQ(at(image, 2, row, column), frame.luma(2 * column + 1, 2 * row));
    EXPECT_EQ(at(image, 3, row, column), frame.luma(2 * column + 1, 2 * row + 1));
    EXPECT_EQ(at(image, 4, row, column), frame.u(column, row));
    EXPECT_EQ(at(image, 5, row, column), frame.v(column, row));
  }
}

TEST(RoadWarp, RepeatsTheEdgeThereIsNoFill) {
  const RoadTestFrame frame(64, 48);
  const auto image = warp(frame, kIdentity);
  EXPECT_EQ(at(image, 0, 0, 255), frame.luma(63, 0));
  EXPECT_EQ(at(image, 0, 127, 0), frame.luma(0, 47));
  EXPECT_EQ(at(image, 3, 127, 255), frame.luma(63, 47));
  EXPECT_EQ(at(image, 4, 127, 255), frame.u(31, 23));
  EXPECT_EQ(at(image, 5, 127, 255), frame.v(31, 23));
  const auto shifted = warp(frame, {1, 0, -1000, 0, 1, -1000, 0, 0, 1});
  EXPECT_EQ(at(shifted, 0, 5, 5), frame.luma(0, 0));
}

TEST(RoadWarp, RoundsTiesToEvenAndScalesChroma) {
  const RoadTestFrame frame(1928, 1208);
  // x: 0.5 -> 0, 1.5 -> 2, 2.5 -> 2; chroma shift is half of the luma shift: 0.25 -> 0.
  const auto image = warp(frame, {1, 0, 0.5f, 0, 1, 0, 0, 0, 1});
  EXPECT_EQ(at(image, 0, 0, 0), frame.luma(0, 0));
  EXPECT_EQ(at(image, 2, 0, 0), frame.luma(2, 0));
  EXPECT_EQ(at(image, 0, 0, 1), frame.luma(2, 0));
  EXPECT_EQ(at(image, 4, 0, 3), frame.u(3, 0));
  // A shift of 101 pixels is 50.5 in chroma: ties to even gives 50 at column 0, 52 at column 1.
  const auto odd = warp(frame, {1, 0, 101, 0, 1, 0, 0, 0, 1});
  EXPECT_EQ(at(odd, 4, 0, 0), frame.u(50, 0));
  EXPECT_EQ(at(odd, 4, 0, 1), frame.u(52, 0));
  EXPECT_EQ(at(odd, 5, 0, 2), frame.v(52, 0));
}

TEST(RoadWarp, ChromaMatrixIsScaledElementByElement) {
  EXPECT_EQ(chroma_matrix({1, 2, 3, 4, 5, 6, 7, 8, 9}),
            (std::array<float, 9>{1, 2, 1.5f, 4, 5, 3, 14, 16, 9}));
  // A chroma pixel at (x, y) is luma pixel (2x, 2y): both ways lead to the same place.
  const std::array<float, 9> m{1.5f, 0.25f, 40, -0.125f, 1.25f, 60, 0.0001f, -0.0002f, 1};
  const std::array<float, 9> c = chroma_matrix(m);
  const double x = 30, y = 20;
  const auto apply = [](const std::array<float, 9>& a, double px, double py) {
    const double w = a[6] * px + a[7] * py + a[8];
    return (a[0] * px + a[1] * py + a[2]) / w;
  };
  EXPECT_NEAR(apply(c, x, y), apply(m, 2 * x, 2 * y) / 2, 1e-4);
}

TEST(RoadWarp, MatricesOfTheTwoModelViews) {
  // A main camera of 2648 px at (964, 604): scale 2648 / 910.
  const auto main = road_matrix({2648, 964, 604}, kMainModelView);
  EXPECT_NEAR(main[0], 2648.0 / 910, 1e-6);
  EXPECT_NEAR(main[2], 964 - 2648.0 / 910 * 256, 1e-4);
  EXPECT_NEAR(main[5], 604 - 2648.0 / 910 * 47.6, 1e-4);
  const auto wide = road_matrix({567, 964, 604}, kWideModelView);
  EXPECT_NEAR(wide[4], 567.0 / 455, 1e-6);
  EXPECT_NEAR(wide[5], 604 - 567.0 / 455 * 151.8, 1e-4);
  EXPECT_EQ(wide[8], 1);
}

TEST(RoadWarp, EqualsANaiveLoopForAProjectiveMatrix) {
  const RoadTestFrame frame(640, 480);
  const std::array<float, 9> m{1.1f, 0.05f, -20, -0.04f, 0.9f, -30, 1e-4f, -5e-5f, 1};
  const auto image = warp(frame, m);
  int different = 0;
  const std::vector<double> d(m.begin(), m.end());
  for (int row = 0; row < kRoadHeightPx; ++row) {
    for (int column = 0; column < kRoadWidthPx; ++column) {
      const double x = column, y = row;
      const double w = d[6] * x + d[7] * y + d[8];
      const double sx = std::nearbyint((d[0] * x + d[1] * y + d[2]) / w);
      const double sy = std::nearbyint((d[3] * x + d[4] * y + d[5]) / w);
      const int expected = frame.luma(static_cast<int>(std::clamp(sx, 0.0, 639.0)),
                                      static_cast<int>(std::clamp(sy, 0.0, 479.0)));
      const int plane = 2 * (column % 2) + row % 2;
      different += at(image, plane, row / 2, column / 2) != expected ? 1 : 0;
    }
  }
  // Doubles round the other way at a tie now and then: at most 1 in 10000.
  EXPECT_LE(different, 13);
}

TEST(RoadWarp, NoMatrixLeavesTheFrame) {
  const RoadTestFrame frame(64, 48);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(at(warp(frame, {0, 0, 0, 0, 0, 0, 0, 0, 0}), 0, 9, 9), frame.luma(0, 0));  // 0 / 0
  EXPECT_EQ(at(warp(frame, {0, 0, nan, 0, 0, nan, 0, 0, 1}), 3, 9, 9), frame.luma(0, 0));
  EXPECT_EQ(at(warp(frame, {0, 0, inf, 0, 0, inf, 0, 0, 1}), 3, 9, 9), frame.luma(63, 47));
  EXPECT_EQ(at(warp(frame, {0, 0, 1, 0, 0, -1, 0, 0, 0}), 0, 9, 9), frame.luma(63, 0));
  EXPECT_EQ(at(warp(frame, {1e30f, 0, 0, 0, 1e30f, 0, 0, 0, 1}), 0, 9, 9), frame.luma(63, 47));
}

}  // namespace
}  // namespace ignis::pipeline
