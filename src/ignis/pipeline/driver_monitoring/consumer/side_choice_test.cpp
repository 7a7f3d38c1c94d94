#include "ignis/pipeline/driver_monitoring/consumer/side_choice.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ignis::pipeline {
namespace {

const PolicySettings kPolicy;

TEST(RunningStats, MeanAndSpreadOfAFewValues) {
  RunningStats stats;
  EXPECT_EQ(stats.standard_deviation(), 0);
  for (const double value : {2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0}) stats.push(value);
  EXPECT_EQ(stats.count(), 8);
  EXPECT_DOUBLE_EQ(stats.mean(), 5);
  EXPECT_DOUBLE_EQ(stats.standard_deviation(), std::sqrt(32.0 / 7));
}

TEST(RunningStats, ALimitKeepsTheWeightOfNewValues) {
  RunningStats stats(2);
  for (int i = 0; i < 10; ++i) stats.push(1);
  EXPECT_EQ(stats.count(), 2);
  stats.push(3);
  EXPECT_DOUBLE_EQ(stats.mean(), 2);  // 1 + (3 - 1) / 2
}

// Section 10.5.
TEST(SideChoice, AConstantValueIsReadyAtPush301) {
  FilteredStats stats(
      RunningStats(kPolicy.wheel_prior_mean, kPolicy.wheel_prior_spread, kPolicy.wheel_prior_count),
      RunningStats());
  EXPECT_FALSE(stats.push(0.9)) << "the first push widens the spread";
  for (int i = 2; i <= 300; ++i) EXPECT_TRUE(stats.push(0.9)) << i;
  EXPECT_EQ(stats.filtered().count(), 299);
  EXPECT_TRUE(stats.push(0.9));
  EXPECT_EQ(stats.filtered().count(), 300);

  SideChoice side(kPolicy, Side::Left);
  for (int i = 1; i <= 300; ++i) side.learn(12, 0.8, 0.9);
  EXPECT_FALSE(side.is_ready());
  EXPECT_EQ(side.choose(false), Side::Left);
  side.learn(12, 0.8, 0.9);
  EXPECT_TRUE(side.is_ready());
  EXPECT_EQ(side.choose(false), Side::Right);
}

TEST(SideChoice, LearnsAtSpeedAndWithAFaceOnly) {
  SideChoice side(kPolicy, Side::Left);
  for (int i = 0; i < 400; ++i) {
    side.learn(11, 0.8, 0.9);  // not faster than 11 m/s
    side.learn(30, 0.7, 0.9);  // no face above 0.7
    side.learn(NAN, 0.8, 0.9);
    side.learn(30, NAN, 0.9);
  }
  EXPECT_EQ(side.stats().raw().count(), kPolicy.wheel_prior_count);
  EXPECT_FALSE(side.is_ready());
}

TEST(SideChoice, TheStoredSideHoldsUntilReady) {
  SideChoice side(kPolicy, Side::Right);
  EXPECT_EQ(side.choose(false), Side::Right);
  for (int i = 0; i < 301; ++i) side.learn(12, 0.8, 0.01);
  EXPECT_EQ(side.choose(false), Side::Left);
}

TEST(SideChoice, IsLockedWhileEngaged) {
  SideChoice side(kPolicy, Side::Left);
  for (int i = 0; i < 301; ++i) side.learn(12, 0.8, 0.9);
  EXPECT_EQ(side.choose(true), Side::Left);
  EXPECT_EQ(side.choose(true, Side::Right), Side::Left);
  EXPECT_EQ(side.choose(false), Side::Right);
  EXPECT_EQ(side.choose(true, Side::Left), Side::Right);
}

TEST(SideChoice, ADemoBelievesTheFirstSamples) {
  SideChoice side(kPolicy, Side::Left, true);
  side.learn(12, 0.8, 0.9);  // rejected, see above
  EXPECT_EQ(side.choose(false), Side::Left);
  side.learn(12, 0.8, 0.9);
  EXPECT_EQ(side.choose(false), Side::Right);
}

TEST(SideChoice, StoresEvery6000TurnsWhenReadyAndInUse) {
  SideChoice side(kPolicy, Side::Left);
  for (int i = 0; i < 301; ++i) side.learn(12, 0.8, 0.9);
  for (int turn = 1; turn < 6000; ++turn) {
    side.choose(false);
    ASSERT_FALSE(side.to_store()) << turn;
  }
  side.choose(false);
  EXPECT_EQ(side.to_store(), Side::Right);

  // Engaged from the start: the learned side is not the one in use.
  SideChoice locked(kPolicy, Side::Left);
  for (int i = 0; i < 301; ++i) locked.learn(12, 0.8, 0.9);
  for (int turn = 0; turn < 6000; ++turn) locked.choose(true);
  EXPECT_FALSE(locked.to_store());

  SideChoice unready(kPolicy, Side::Left);
  for (int turn = 0; turn < 6000; ++turn) unready.choose(false);
  EXPECT_FALSE(unready.to_store());
}

}  // namespace
}  // namespace ignis::pipeline
