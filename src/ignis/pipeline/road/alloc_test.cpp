// A program of its own: it counts every allocation of the process.

#include "ignis/pipeline/road/host.h"
#include "ignis/pipeline/road/test_fake_road_model.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace {
std::atomic<bool> is_counting{false};
std::atomic<int> allocations{0};

void* allocate(std::size_t size_bytes, std::size_t alignment) {
  if (is_counting.load()) ++allocations;
  const std::size_t size = size_bytes == 0 ? 1 : size_bytes;
  void* bytes = alignment <= alignof(std::max_align_t)
                    ? std::malloc(size)
                    : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (bytes == nullptr) std::abort();
  return bytes;
}
}  // namespace

// Not inline, or the compiler warns of malloc behind new.
[[gnu::noinline]] void* operator new(std::size_t size) { return allocate(size, 1); }
[[gnu::noinline]] void* operator new[](std::size_t size) { return allocate(size, 1); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* bytes) noexcept { std::free(bytes); }
[[gnu::noinline]] void operator delete[](void* bytes) noexcept { std::free(bytes); }
[[gnu::noinline]] void operator delete(void* bytes, std::size_t) noexcept { std::free(bytes); }
[[gnu::noinline]] void operator delete[](void* bytes, std::size_t) noexcept { std::free(bytes); }
[[gnu::noinline]] void operator delete(void* bytes, std::align_val_t) noexcept { std::free(bytes); }
[[gnu::noinline]] void operator delete[](void* bytes, std::align_val_t) noexcept {
  std::free(bytes);
}
[[gnu::noinline]] void operator delete(void* bytes, std::size_t, std::align_val_t) noexcept {
  std::free(bytes);
}
[[gnu::noinline]] void operator delete[](void* bytes, std::size_t, std::align_val_t) noexcept {
  std::free(bytes);
}

namespace ignis::pipeline {
namespace {

using testing::fake_input;
using testing::FakeRoad;

TEST(RoadAllocations, NoneAfterTheTenthFrame) {
  FakeRoad road;
  TierOptions options;
  options.big = FakeRoad::options(road.script(), RoadTier::Big);
  options.small = FakeRoad::options(road.script(), RoadTier::Small);
  RoadHost host(options);
  ASSERT_TRUE(host.load(testing::fake_layout()));
  int valid = 0;
  const auto run = [&](uint32_t first, uint32_t last) {
    for (uint32_t frame = first; frame < last; ++frame) {
      const RoadInput input = fake_input(frame);
      valid += host.run(input, testing::in_seconds(20)).is_valid ? 1 : 0;
    }
  };
  run(0, 10);
  is_counting = true;
  run(10, 110);
  is_counting = false;
  EXPECT_EQ(allocations.exchange(0), 0);
  EXPECT_EQ(valid, 110);
}

}  // namespace
}  // namespace ignis::pipeline
