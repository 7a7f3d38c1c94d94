#include "ignis/pipeline/driver_monitoring/warp.h"

#include "ignis/pipeline/driver_monitoring/test_warp_vectors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace ignis::pipeline {
namespace {

using testing::WarpCase;

std::vector<std::byte> warp(const WarpCase& c) {
  const std::vector<std::byte> luma = c.luma();
  std::vector<std::byte> output(static_cast<size_t>(c.shape.output_bytes()));
  warp_luma(c.shape, luma, c.matrix, output);
  return output;
}

TEST(Warp, EqualsEveryVectorOfTheContract) {
  for (const WarpCase& c : testing::warp_cases()) {
    SCOPED_TRACE(c.name);
    testing::expect_vectors(c, warp(c));
  }
}

// Camera B's rows 862..959 lie below the picture.
TEST(Warp, CameraBFills98Rows) {
  const WarpCase c = testing::camera_b();
  const std::vector<std::byte> output = warp(c);
  for (size_t i = 862 * 1440; i < output.size(); ++i) ASSERT_EQ(output[i], std::byte{16}) << i;
}

// A sample is filled when it follows the fill value.
TEST(Warp, FillsAsManySamplesAsTheContractCounts) {
  for (WarpCase c : {testing::camera_a(), testing::camera_b()}) {
    SCOPED_TRACE(c.name);
    const std::vector<std::byte> first = warp(c);
    c.shape.fill = 17;
    const std::vector<std::byte> second = warp(c);
    int64_t filled = 0;
    for (size_t i = 0; i < first.size(); ++i) filled += first[i] != second[i] ? 1 : 0;
    EXPECT_EQ(filled, c.filled);
  }
}

TEST(Warp, NothingIsLoadedWhereTheDivisorIsZeroOrACoordinateIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  WarpCase c = testing::projective();
  for (const std::array<float, 9>& matrix : {
           std::array<float, 9>{1, 0, 0, 0, 1, 0, 0, 0, 0},  // divisor 0
           std::array<float, 9>{0, 0, 0, 0, 0, 0, 0, 0, 0},  // 0 / 0
           std::array<float, 9>{nan, nan, nan, nan, nan, nan, nan, nan, nan},
           std::array<float, 9>{1, 0, inf, 0, 1, 0, 0, 0, 1},
           std::array<float, 9>{1, 0, 0, 0, 1, -inf, 0, 0, 1},
           std::array<float, 9>{3e38f, 3e38f, 3e38f, 0, 1, 0, 0, 0, 1e-38f},
           std::array<float, 9>{0, 0, 1e10f, 0, 1, 0, 0, 0, 1},  // beyond any integer index
       }) {
    c.matrix = matrix;
    for (const std::byte value : warp(c)) ASSERT_EQ(value, std::byte{16});
  }
}

TEST(Warp, KindFollowsTheZeros) {
  EXPECT_EQ(warp_kind(testing::camera_a().matrix), WarpKind::AxisAligned);
  EXPECT_EQ(warp_kind(testing::projective().matrix), WarpKind::Projective);
  for (const size_t i : {1u, 3u, 6u, 7u, 8u}) {
    std::array<float, 9> matrix = testing::camera_b().matrix;
    matrix[i] += 1e-3f;
    EXPECT_EQ(warp_kind(matrix), WarpKind::Projective) << i;
  }
}

}  // namespace
}  // namespace ignis::pipeline
