#pragma once

#include "ignis/pipeline/driver_monitoring/camera.h"
#include "ignis/pipeline/frames/layout.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

/// Frames in plain memory. Linked into tests only.
namespace ignis::pipeline::testing {

struct VectorMemory final : FrameMemory {
  explicit VectorMemory(size_t size_bytes) : bytes(size_bytes) {}
  std::vector<std::byte> bytes;
};

struct TestFrame {
  std::shared_ptr<VectorMemory> memory;
  Frame frame;

  explicit TestFrame(const FrameLayout& layout)
      : memory(std::make_shared<VectorMemory>(static_cast<size_t>(layout.size_bytes))) {
    frame.layout = layout;
    frame.bytes = memory->bytes;
    frame.memory = memory;
  }
  /// One sample: plane 0 is Y, 1 U, 2 V.
  std::byte& at(int plane, int x, int y) {
    const FrameLayout& l = frame.layout;
    if (plane == 0) return memory->bytes[static_cast<size_t>(y * l.y_stride + x)];
    const bool is_nv12 = l.format == PixelFormat::Nv12;
    const int64_t begin = plane == 1 ? l.u_offset : l.v_offset;
    return memory->bytes[static_cast<size_t>(begin + y * l.uv_stride + x * (is_nv12 ? 2 : 1))];
  }
  int value(int plane, int x, int y) { return static_cast<int>(at(plane, x, y)); }
  void fill(const std::function<int(int plane, int x, int y)>& sample) {
    for (int plane = 0; plane < 3; ++plane) {
      const int part = plane == 0 ? 1 : 2;
      for (int y = 0; y < frame.layout.height_px / part; ++y) {
        for (int x = 0; x < frame.layout.width_px / part; ++x) {
          at(plane, x, y) = static_cast<std::byte>(sample(plane, x, y));
        }
      }
    }
  }
  void fill_random(uint32_t seed) {
    std::mt19937 rng(seed);
    for (std::byte& byte : memory->bytes) byte = static_cast<std::byte>(rng());
  }
};

inline FrameLayout layout_a() { return *nv12_layout(1928, 1208); }
inline FrameLayout layout_b() { return *nv12_layout(1344, 760); }
inline Camera camera_of(const FrameLayout& layout) { return *find_camera(known_cameras(), layout); }
inline std::chrono::steady_clock::time_point soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(60);
}

}  // namespace ignis::pipeline::testing
