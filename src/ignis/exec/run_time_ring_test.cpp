#include "ignis/exec/run_time_ring.h"

#include "ignis/exec/host_memory.h"

#include <gtest/gtest.h>

#include <atomic>

namespace ignis::exec {
namespace {

/// Time that moves on when somebody sleeps.
class StillClock final : public runtime::Clock {
 public:
  int64_t now_ns() const override { return now_ns_; }
  void sleep_until(int64_t until_ns) override { now_ns_ = std::max(now_ns_, until_ns); }

 private:
  int64_t now_ns_ = 0;
};

struct Token final : CompletionToken {
  std::atomic<bool> is_done{false};
  bool is_complete() const override { return is_done; }
};

struct Ring {
  StillClock clock;
  RunTimeRing ring{"G", allocate_host_memory("G", 1024).value(), clock};
  std::shared_ptr<Token> token = std::make_shared<Token>();
  Result<Placement> reserve(uint64_t size_bytes, int64_t deadline_ns = 50'000'000) {
    return ring.reserve(size_bytes, token, {deadline_ns, deadline_ns});
  }
};

TEST(RunTimeRing, SlotsAreAligned) {
  Ring r;
  EXPECT_EQ(r.reserve(10)->offset_bytes, 0u);
  EXPECT_EQ(r.reserve(10)->offset_bytes, 256u);
  EXPECT_EQ(r.reserve(257)->offset_bytes, 512u);
}

TEST(RunTimeRing, ASlotIsGivenAgainWhenItsUserIsDone) {
  Ring r;
  const auto first = std::exchange(r.token, std::make_shared<Token>());
  ASSERT_TRUE(r.ring.reserve(512, first, {}));
  ASSERT_TRUE(r.reserve(512));
  const Result<Placement> none = r.reserve(256);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().reason(), "RingExhausted");
  EXPECT_EQ(none.error().code(), ErrorCode::OutOfMemory);
  EXPECT_GE(r.clock.now_ns(), 50'000'000);
  EXPECT_LT(r.clock.now_ns(), 100'000'000);
  first->is_done = true;
  EXPECT_EQ(r.reserve(512)->offset_bytes, 0u);
}

TEST(RunTimeRing, ALimitOfZeroOnlyLooks) {
  Ring r;
  ASSERT_TRUE(r.reserve(1024));
  ASSERT_FALSE(r.reserve(1, 0));
  EXPECT_EQ(r.clock.now_ns(), 0);
}

TEST(RunTimeRing, MoreThanItHoldsIsRefusedAtOnce) {
  Ring r;
  const Result<Placement> refused = r.reserve(1025);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "RingTooSmall");
  EXPECT_EQ(r.clock.now_ns(), 0);
}

}  // namespace
}  // namespace ignis::exec
