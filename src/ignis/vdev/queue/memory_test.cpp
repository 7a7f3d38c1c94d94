#include "ignis/vdev/queue/memory.h"

#include <gtest/gtest.h>

namespace ignis::vdev {
namespace {

std::shared_ptr<SimulatedMemory> make(uint64_t size_bytes,
                                      std::shared_ptr<std::atomic<uint64_t>> count = nullptr) {
  if (count == nullptr) count = std::make_shared<std::atomic<uint64_t>>(0);
  return SimulatedMemory::create("CUDA", size_bytes, HostView::Coherent, count).value();
}

TEST(AddressMap, LeadsToBytesAndNowhereElse) {
  AddressMap map(0x10000);
  const auto first = make(100);
  const auto second = make(100);
  const uint64_t at = map.map(first);
  EXPECT_EQ(map.map(first), at);
  EXPECT_EQ(at % 4096, 0u);
  const uint64_t other = map.map(second);
  EXPECT_GE(other, at + 100 + 4096) << "there is a gap";

  ASSERT_TRUE(map.reach(at + 10, 90));
  EXPECT_EQ(map.reach(at + 10, 90)->bytes, first->bytes() + 10);
  EXPECT_EQ(map.reach(at + 10, 90)->room_bytes, 90u);
  EXPECT_FALSE(map.reach(at + 10, 91));
  EXPECT_FALSE(map.reach(at + 10, UINT64_MAX));
  EXPECT_FALSE(map.reach(at - 1, 1));
  EXPECT_FALSE(map.reach(at + 4096, 1));
  EXPECT_FALSE(map.reach(0, 1));
  EXPECT_FALSE(map.reach(UINT64_MAX, 1));
  EXPECT_NE(map.reach(0x10, 1).error().message().find("0x10"), std::string::npos);
}

TEST(AddressMap, ReleasedMemoryIsAPageFault) {
  AddressMap map(0x10000);
  auto count = std::make_shared<std::atomic<uint64_t>>(0);
  auto memory = make(100, count);
  EXPECT_EQ(*count, 100u);
  const uint64_t at = map.map(memory);
  memory.reset();
  EXPECT_EQ(*count, 0u) << "a mapping keeps nothing alive";
  ASSERT_FALSE(map.reach(at, 1));
  EXPECT_NE(map.reach(at, 1).error().message().find("released"), std::string::npos);
  // Thousands come and go; every one has an address of its own.
  uint64_t last = at;
  for (int i = 0; i < 2000; ++i) {
    const auto next = make(8);
    const uint64_t address = map.map(next);
    ASSERT_GT(address, last);
    ASSERT_TRUE(map.reach(address, 8));
    last = address;
  }
}

}  // namespace
}  // namespace ignis::vdev
