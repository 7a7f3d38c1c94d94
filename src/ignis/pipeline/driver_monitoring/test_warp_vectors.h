#pragma once

#include "ignis/pipeline/driver_monitoring/warp.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

/// The warp's test vectors (section 10.1 of the contract), for the oracle and for the compiled warps.
namespace ignis::pipeline::testing {

struct WarpPoint {
  int x, y, value;
};

struct WarpCase {
  std::string name;
  WarpShape shape;
  std::array<float, 9> matrix{};
  std::vector<WarpPoint> points;
  uint64_t sum = 0;  ///< of all bytes; 0: not stated
  uint32_t crc = 0;
  int64_t filled = 0;

  /// s(x, y) = (x + 3 y) mod 256 where it is visible, 255 in the padding, so that a stride error shows.
  std::vector<std::byte> luma() const {
    std::vector<std::byte> bytes(static_cast<size_t>(shape.source_bytes()), std::byte{255});
    for (int y = 0; y < shape.source_height_px; ++y) {
      for (int x = 0; x < shape.source_width_px; ++x) {
        bytes[static_cast<size_t>(y * shape.source_stride + x)] =
            static_cast<std::byte>((x + 3 * y) % 256);
      }
    }
    return bytes;
  }
};

inline WarpCase camera_a() {
  return {"camera A",
          {1928, 1208, 2048},
          {1, 0, 244, 0, 1, 248, 0, 0, 1},
          {{0, 0, 220}, {1, 0, 221}, {0, 1, 223}, {719, 479, 72}, {1439, 0, 123}, {1439, 959, 184}},
          176133376,
          0xa850357d,
          0};
}

inline WarpCase camera_b() {
  return {"camera B",
          {1344, 760, 1408},
          {0.75f, 0, 132, 0, 0.75f, 113, 0, 0, 1},
          {{0, 0, 215},
           {2, 0, 217},
           {2, 2, 220},
           {719, 479, 39},
           {1439, 861, 160},
           {0, 861, 105},
           {0, 862, 16},
           {1439, 959, 16}},
          160286264,
          0xb94b8f16,
          141120};
}

inline WarpCase projective() {
  return {"projective",
          {64, 48, 64, 128, 96},
          {0.9f, 0.05f, -20, -0.04f, 1.1f, -30, 1e-4f, -5e-5f, 1},
          {{0, 0, 16},
           {30, 30, 14},
           {10, 40, 16},
           {25, 60, 111},
           {90, 30, 16},
           {100, 70, 16},
           {60, 60, 136}}};
}

inline std::vector<WarpCase> warp_cases() { return {camera_a(), camera_b(), projective()}; }

/// CRC-32 as zlib computes it (polynomial 0xedb88320, reflected).
inline uint32_t crc32(std::span<const std::byte> bytes) {
  uint32_t crc = 0xffffffff;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

inline void expect_vectors(const WarpCase& c, std::span<const std::byte> output) {
  ASSERT_EQ(static_cast<int64_t>(output.size()), c.shape.output_bytes());
  for (const WarpPoint& p : c.points) {
    EXPECT_EQ(static_cast<int>(output[static_cast<size_t>(p.y * c.shape.output_width_px + p.x)]),
              p.value)
        << "at (" << p.x << ", " << p.y << ")";
  }
  if (c.sum == 0) return;
  uint64_t sum = 0;
  for (const std::byte byte : output) sum += static_cast<uint64_t>(byte);
  EXPECT_EQ(sum, c.sum);
  EXPECT_EQ(crc32(output), c.crc);
}

}  // namespace ignis::pipeline::testing
