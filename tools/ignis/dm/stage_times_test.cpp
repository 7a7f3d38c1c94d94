#include "tools/ignis/dm/stage_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace ignis::tools {
namespace {

TEST(TimeHistogram, SmallValuesAreExact) {
  TimeHistogram h;
  for (uint64_t v = 1; v <= 50; ++v) h.add(v);
  EXPECT_EQ(h.percentile_ns(0.5), 25u);
  EXPECT_EQ(h.percentile_ns(0.02), 1u);
  EXPECT_EQ(h.percentile_ns(1), 50u);
}

TEST(TimeHistogram, LargeValuesAreWithinOneInSixtyFour) {
  std::mt19937_64 rng(7);
  std::uniform_real_distribution<double> exponent(2, 10.5);  // 100 ns … 30 s
  TimeHistogram h;
  std::vector<uint64_t> values;
  for (int i = 0; i < 5000; ++i) {
    values.push_back(static_cast<uint64_t>(std::pow(10.0, exponent(rng))));
    h.add(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.01, 0.5, 0.9, 0.99, 1.0}) {
    const auto rank = static_cast<size_t>(std::ceil(share * 5000)) - 1;
    const double want = static_cast<double>(values[rank]);
    const double got = static_cast<double>(h.percentile_ns(share));
    EXPECT_GE(got, want) << share;
    EXPECT_LE(got, want * (1 + 1.0 / 64)) << share;
  }
  EXPECT_EQ(h.max_ns(), values.back());
}

TEST(TimeHistogram, TakesZeroAndTheLargestNumber) {
  TimeHistogram h;
  EXPECT_EQ(h.percentile_ns(0.5), 0u);
  h.add(0);
  h.add(~uint64_t{0});
  EXPECT_EQ(h.percentile_ns(0.5), 0u);
  EXPECT_EQ(h.percentile_ns(1), ~uint64_t{0});
}

TEST(Summarize, NearestRank) {
  std::vector<StageSample> samples(100);
  for (size_t i = 0; i < 100; ++i) samples[i][Stage::Model] = 100 - i;
  const StageSummary s = summarize(samples);
  EXPECT_EQ(s.p50_ns[static_cast<size_t>(Stage::Model)], 50u);
  EXPECT_EQ(s.p99_ns[static_cast<size_t>(Stage::Model)], 99u);
  EXPECT_EQ(s.p99_ns[static_cast<size_t>(Stage::Warp)], 0u);
  EXPECT_EQ(summarize({}).count, 0u);
}

}  // namespace
}  // namespace ignis::tools
