#include "ignis/runtime/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace ignis::runtime {
namespace {

constexpr int64_t kMs = 1'000'000;

class SteppedClock final : public Clock {
 public:
  int64_t now_ns() const override { return now; }
  void sleep_until(int64_t until_ns) override {
    longest_sleep = std::max(longest_sleep, until_ns - now);
    now = std::max(now, until_ns);
  }
  int64_t now = 5 * kMs;
  int64_t longest_sleep = 0;
};

TEST(Wait, WhatIsThereIsReachedWithoutTheClock) {
  SteppedClock clock;
  EXPECT_EQ(wait_at_least(clock, [] { return uint64_t{7}; }, 7, {}), WaitEnd::Reached);
  EXPECT_EQ(clock.now, 5 * kMs);
}

TEST(Wait, WT9_ALimitOfZeroLooksOnce) {
  SteppedClock clock;
  int looks = 0;
  const auto read = [&] { return ++looks, uint64_t{6}; };
  EXPECT_EQ(wait_at_least(clock, read, 7, {.deadline_ns = 0, .stall_ns = 100 * kMs}),
            WaitEnd::DeadlineExceeded);
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(clock.now, 5 * kMs);
}

TEST(Wait, AWordThatStandsStillIsAStall) {
  SteppedClock clock;
  EXPECT_EQ(wait_at_least(clock, [] { return uint64_t{0}; }, 1,
                          {.deadline_ns = 1000 * kMs, .stall_ns = 100 * kMs}),
            WaitEnd::Stalled);
  EXPECT_EQ(clock.now, 105 * kMs);
  EXPECT_LE(clock.longest_sleep, 60'000);
}

// Each look takes a microsecond; nothing sleeps before the clock's spin is over, and everything after it does.
TEST(Wait, LooksOnForTheClocksSpin) {
  class SpinningClock final : public Clock {
   public:
    int64_t now_ns() const override { return now += 1'000; }
    void sleep_until(int64_t until_ns) override {
      if (first_sleep == 0) first_sleep = now;
      now = std::max(now, until_ns);
    }
    int spins() const override { return 3; }
    int64_t spin_ns() const override { return spin; }
    mutable int64_t now = 5 * kMs;
    int64_t spin = 0, first_sleep = 0;
  };
  for (const int64_t spin : {int64_t{0}, int64_t{200'000}}) {
    SpinningClock clock;
    clock.spin = spin;
    EXPECT_EQ(
        wait_at_least(clock, [] { return uint64_t{0}; }, 1, {.deadline_ns = kMs, .stall_ns = 0}),
        WaitEnd::DeadlineExceeded);
    EXPECT_GE(clock.first_sleep, 5 * kMs + spin);
    EXPECT_LE(clock.first_sleep, 5 * kMs + spin + 10'000);
  }
}

TEST(Wait, BothLimitsAtOnceAreAStall) {
  SteppedClock clock;
  EXPECT_EQ(wait_at_least(clock, [] { return uint64_t{0}; }, 1,
                          {.deadline_ns = 100 * kMs, .stall_ns = 100 * kMs}),
            WaitEnd::Stalled);
}

// The word moves once in 60 ms; the target is 5 steps away (WT-2, WT-3).
TEST(Wait, WT2_EachChangeStartsTheStallLimitAnew) {
  SteppedClock clock;
  const auto read = [&] { return static_cast<uint64_t>((clock.now - 5 * kMs) / (60 * kMs)); };
  EXPECT_EQ(wait_at_least(clock, read, 5, {.deadline_ns = 1000 * kMs, .stall_ns = 100 * kMs}),
            WaitEnd::Reached);
  EXPECT_GE(clock.now, 305 * kMs);
  EXPECT_LE(clock.now, 305 * kMs + 50'000);
}

TEST(Wait, WT3_TheDeadlineCountsFromTheStart) {
  SteppedClock clock;
  const auto read = [&] { return static_cast<uint64_t>((clock.now - 5 * kMs) / (60 * kMs)); };
  EXPECT_EQ(wait_at_least(clock, read, 5, {.deadline_ns = 150 * kMs, .stall_ns = 100 * kMs}),
            WaitEnd::DeadlineExceeded);
  EXPECT_EQ(clock.now, 155 * kMs);
}

TEST(Wait, AnAbandonedWaitEnds) {
  SteppedClock clock;
  const auto is_gone = [&] { return clock.now > 20 * kMs; };
  EXPECT_EQ(wait_at_least(
                clock, [] { return uint64_t{0}; }, 1, {.deadline_ns = 1000 * kMs}, is_gone),
            WaitEnd::Abandoned);
  EXPECT_LT(clock.now, 21 * kMs);
}

TEST(Wait, TheLongestDeadlineIsNoOverflow) {
  SteppedClock clock;
  const auto read = [&] { return static_cast<uint64_t>(clock.now > 6 * kMs); };
  EXPECT_EQ(wait_at_least(clock, read, 1, {.deadline_ns = INT64_MAX, .stall_ns = INT64_MAX}),
            WaitEnd::Reached);
}

TEST(Wait, TheRealClockSeesAnotherThread) {
  std::atomic<uint64_t> word{0};
  std::jthread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    word = 3;
  });
  EXPECT_EQ(
      wait_at_least(Clock::real(), [&] { return word.load(); }, 3, {.deadline_ns = 60'000 * kMs}),
      WaitEnd::Reached);
}

}  // namespace
}  // namespace ignis::runtime
