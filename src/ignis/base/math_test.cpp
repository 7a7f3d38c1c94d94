#include "ignis/base/math.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace ignis {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(CheckedArithmetic, RefusesWhatDoesNotFit) {
  EXPECT_EQ(checked_add<int64_t>(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add<int64_t>(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_add<int64_t>(kMin, -1), std::nullopt);
  EXPECT_EQ(checked_sub<int64_t>(kMin, 1), std::nullopt);
  EXPECT_EQ(checked_sub<uint64_t>(1, 2), std::nullopt);
  EXPECT_EQ(checked_mul<int64_t>(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
  EXPECT_EQ(checked_mul<int64_t>(int64_t{1} << 32, int64_t{1} << 31), std::nullopt);
  EXPECT_EQ(checked_mul<int64_t>(kMin, -1), std::nullopt);
  EXPECT_EQ(checked_mul<uint64_t>(1ULL << 32, 1ULL << 32), std::nullopt);
}

TEST(RangeInside, DoesNotWrap) {
  EXPECT_TRUE(is_range_inside(0, 10, 10));
  EXPECT_TRUE(is_range_inside(10, 0, 10));
  EXPECT_FALSE(is_range_inside(11, 0, 10));
  EXPECT_FALSE(is_range_inside(1, 10, 10));
  EXPECT_FALSE(is_range_inside(8, UINT64_MAX - 4, 10));  // offset + size wraps to 3
}

TEST(Rounding, UpAndToAlignment) {
  EXPECT_EQ(ceil_div<int64_t>(0, 4), 0);
  EXPECT_EQ(ceil_div<int64_t>(1, 4), 1);
  EXPECT_EQ(ceil_div<int64_t>(8, 4), 2);
  EXPECT_EQ(ceil_div<int64_t>(kMax, 2), kMax / 2 + 1);
  EXPECT_EQ(align_up<int64_t>(0, 64), 0);
  EXPECT_EQ(align_up<int64_t>(1, 64), 64);
  EXPECT_EQ(align_up<uint64_t>(64, 64), 64U);
  EXPECT_TRUE(is_power_of_two(1));
  EXPECT_FALSE(is_power_of_two(0));
  EXPECT_FALSE(is_power_of_two(-4));
  EXPECT_FALSE(is_power_of_two(12));
}

}  // namespace
}  // namespace ignis
