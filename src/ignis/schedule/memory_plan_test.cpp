#include "ignis/schedule/memory_plan.h"

#include "tests/support/seed.h"
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace ignis::schedule {
namespace {

using ignis::testing::test_seed;

bool lives_meet(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}
bool spans_meet(const Lifetime& a, const Lifetime& b) {
  return a.offset < b.offset + b.size_bytes && b.offset < a.offset + a.size_bytes;
}

TEST(MemoryPlan, BuffersThatLiveTogetherNeverShareBytes) {
  std::mt19937_64 rng(test_seed());
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + " of seed " + std::to_string(test_seed()));
    std::vector<Lifetime> lives(1 + rng() % 40);
    int64_t sum = 0;
    for (Lifetime& l : lives) {
      l.first = static_cast<int>(rng() % 20);
      l.last = l.first + static_cast<int>(rng() % 8);
      l.size_bytes = 1 + static_cast<int64_t>(rng() % 5000);
      if (rng() % 4 == 0) l.exclusive_class = std::string(1, static_cast<char>('a' + rng() % 3));
      sum += (l.size_bytes + 63) / 64 * 64;
    }
    const int64_t arena = plan_memory(lives);
    EXPECT_LE(arena, sum);
    for (size_t i = 0; i < lives.size(); ++i) {
      EXPECT_EQ(lives[i].offset % 64, 0);
      EXPECT_LE(lives[i].offset + lives[i].size_bytes, arena);
      for (size_t j = 0; j < i; ++j) {
        if (!spans_meet(lives[i], lives[j])) continue;
        EXPECT_FALSE(lives_meet(lives[i], lives[j])) << i << " and " << j << " live at once";
        EXPECT_EQ(lives[i].exclusive_class, lives[j].exclusive_class)
            << "a halo is shared with other bytes";
      }
    }
  }
}

// Its halves lie over the same halves of what was there before.
TEST(MemoryPlan, ABufferLiesInTheMiddleOfAnEarlierOne) {
  std::vector<Lifetime> lives(3);
  lives[0].size_bytes = 6 * 1024;
  lives[1].size_bytes = 4 * 1024;
  lives[2].size_bytes = 2 * 1024;
  for (int i = 0; i < 3; ++i)
    lives[static_cast<size_t>(i)].first = lives[static_cast<size_t>(i)].last = i;
  EXPECT_EQ(plan_memory(lives), 6 * 1024);
  EXPECT_EQ(lives[0].offset, 0);
  EXPECT_EQ(lives[1].offset, 1024);
  EXPECT_EQ(lives[2].offset, 2 * 1024);
}

TEST(MemoryPlan, AChainNeedsTwoBuffers) {
  std::vector<Lifetime> lives;
  for (int i = 0; i < 10; ++i) {
    Lifetime l;
    l.first = i;
    l.last = i + 1;
    l.size_bytes = 1000;
    lives.push_back(l);
  }
  EXPECT_EQ(plan_memory(lives), 2 * 1024);
}

}  // namespace
}  // namespace ignis::schedule
