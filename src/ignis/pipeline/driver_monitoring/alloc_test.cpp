// A program of its own: it counts every allocation of the process.

#include "ignis/pipeline/driver_monitoring/testing/test_host_rig.h"

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

TEST(Allocations, TheCounterCounts) {
  is_counting = true;
  auto something = std::make_unique<std::vector<int>>(100);
  is_counting = false;
  EXPECT_EQ(allocations.exchange(0), 2);
}

/// Frames, calibration and reports of a running host; the frames are made before.
int count_in_steady_state(HostRig& rig) {
  rig.options.watches_view = true;
  rig.options.publishes_raw = true;
  rig.start();
  rig.calibrate();
  std::vector<Frame> frames;
  std::vector<uint64_t> at_ns;
  for (int i = 0; i < 120; ++i) {
    frames.push_back(rig.next_frame());
    at_ns.push_back(rig.now_ns);
  }
  Calibration calibration;
  calibration.rpy_rad = {0.01F, 0.02F, 0.03F};
  calibration.status = CalibrationStatus::Calibrated;
  calibration.valid = true;
  allocations = 0;
  int valid = 0;
  for (size_t i = 0; i < frames.size(); ++i) {
    is_counting = i >= 10;
    rig.now_ns = at_ns[i];
    calibration.log_mono_time_ns = at_ns[i];
    rig.host->calibrate(calibration);
    valid += rig.process(frames[i]).quality.valid ? 1 : 0;
    rig.host->check_watchdog();
  }
  is_counting = false;
  EXPECT_EQ(valid, 120);
  return allocations.exchange(0);
}

TEST(Allocations, NoneForAFrameAfterTheTenth) {
  HostRig rig;
  EXPECT_EQ(count_in_steady_state(rig), 0);
}

TEST(Allocations, NoneInTheDecodeOfTwoSides) {
  HostRig rig;
  std::vector<float> output(553);
  for (size_t i = 0; i < output.size(); ++i)
    output[i] = static_cast<float>((37 * i) % 101) / 25 - 2;
  rig.script->set_output(output);
  EXPECT_EQ(count_in_steady_state(rig), 0);
}

}  // namespace
}  // namespace ignis::pipeline
