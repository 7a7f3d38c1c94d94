// A program of its own: it counts every allocation of the process while a bound model runs.

#include "ignis/pipeline/driver_monitoring/build/models.h"
#include "ignis/pipeline/driver_monitoring/build/test_frames.h"
#include "ignis/pipeline/driver_monitoring/build/test_synthetic_detector.h"
#include "ignis/pipeline/driver_monitoring/build/test_synthetic_model.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

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

// The tenth frame and all that follow cost no allocation, whether there is a face to describe or not.
void expect_no_allocations(const std::string& path) {
  SCOPED_TRACE(path);
  auto model = load_model(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(model) << model.error().to_string();
  testing::TestFrame frame(testing::layout_a());
  ASSERT_TRUE((*model)->bind(frame.frame.layout, testing::camera_of(frame.frame.layout)));
  for (int i = 0; i < 30; ++i) {
    for (int x = 0; x < 64; ++x) {
      for (int y = 0; y < 64; ++y) {
        frame.at(0, 900 + 8 * i + x, 500 + y) = std::byte{235};  // a face that moves
      }
    }
    is_counting = i >= 10;
    const auto times = (*model)->run(frame.frame, {0, 0, 0}, testing::soon());
    const Decoded decoded = (*model)->decode();
    is_counting = false;
    ASSERT_TRUE(times) << times.error().to_string();
    ASSERT_TRUE(decoded.reasons.is_empty());
  }
  EXPECT_EQ(allocations.exchange(0), 0);
}

TEST(Allocations, TheCounterCounts) {
  is_counting = true;
  auto something = std::make_unique<std::vector<int>>(100);
  is_counting = false;
  EXPECT_EQ(allocations.exchange(0), 2);
  EXPECT_EQ(something->size(), 100u);
}

TEST(Allocations, ABoundModelMakesNone) {
  expect_no_allocations(testing::SyntheticModel().write("ignis_alloc_553.onnx"));
  expect_no_allocations(testing::SyntheticDetector().write("ignis_alloc_face.onnx"));
}

}  // namespace
}  // namespace ignis::pipeline
