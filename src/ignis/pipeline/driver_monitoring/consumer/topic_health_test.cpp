#include "ignis/pipeline/driver_monitoring/consumer/topic_health.h"

#include <gtest/gtest.h>

namespace ignis::pipeline {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(TopicHealth, AliveMeansYoungerThanTenPeriods) {
  TopicHealth fast(20), slow(4);
  EXPECT_FALSE(fast.is_alive(0));
  fast.receive(1000 * kMs);
  slow.receive(1000 * kMs);
  EXPECT_TRUE(fast.is_alive(1499 * kMs));
  EXPECT_FALSE(fast.is_alive(1500 * kMs));  // 0.5 s at 20 Hz
  EXPECT_TRUE(slow.is_alive(3499 * kMs));
  EXPECT_FALSE(slow.is_alive(3500 * kMs));  // 2.5 s at 4 Hz
  EXPECT_FALSE(fast.is_alive(999 * kMs)) << "a clock that went back says nothing";
}

bool is_right_at(uint64_t period_ms) {
  TopicHealth health(20);
  for (uint64_t i = 0; i < 20; ++i) health.receive(i * period_ms * kMs);
  return health.is_rate_right();
}

TEST(TopicHealth, TheRateIsWithinAFifth) {
  EXPECT_TRUE(is_right_at(50));
  EXPECT_TRUE(is_right_at(62));   // 16.1 Hz
  EXPECT_FALSE(is_right_at(63));  // 15.9 Hz
  EXPECT_TRUE(is_right_at(42));   // 23.8 Hz
  EXPECT_FALSE(is_right_at(41));  // 24.4 Hz
}

TEST(TopicHealth, OneMessageHasNoRate) {
  TopicHealth health(20);
  EXPECT_FALSE(health.is_rate_right());
  health.receive(kMs);
  EXPECT_FALSE(health.is_rate_right());
  health.receive(kMs);
  EXPECT_FALSE(health.is_rate_right());
  health.receive(76 * kMs);
  EXPECT_FALSE(health.is_rate_right());
}

TEST(TopicHealth, AGapIsForgottenAfterTenIntervals) {
  TopicHealth health(20);
  uint64_t now = 0;
  for (int i = 0; i < 20; ++i) health.receive(now += 50 * kMs);
  health.receive(now += 2000 * kMs);
  EXPECT_FALSE(health.is_rate_right());
  for (int i = 0; i < 9; ++i) health.receive(now += 50 * kMs);
  EXPECT_FALSE(health.is_rate_right());
  health.receive(now += 50 * kMs);
  EXPECT_TRUE(health.is_rate_right());
}

}  // namespace
}  // namespace ignis::pipeline
