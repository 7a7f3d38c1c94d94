#pragma once

#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/road/road_warp.h"

#include <cstddef>
#include <vector>

namespace ignis::pipeline::testing {

/// A frame whose samples tell where they are; the padding is 255, so that a wrong stride shows.
struct RoadTestFrame {
  FrameLayout layout;
  std::vector<std::byte> bytes;

  RoadTestFrame(int width_px, int height_px) : layout(*nv12_layout(width_px, height_px)) {
    bytes.assign(static_cast<size_t>(layout.size_bytes), std::byte{255});
    for (int y = 0; y < height_px; ++y) {
      for (int x = 0; x < width_px; ++x) {
        bytes[static_cast<size_t>(y * layout.y_stride + x)] = static_cast<std::byte>(luma(x, y));
      }
    }
    for (int y = 0; y < height_px / 2; ++y) {
      for (int x = 0; x < width_px / 2; ++x) {
        std::byte* uv = bytes.data() + layout.u_offset + y * layout.uv_stride + 2 * x;
        uv[0] = static_cast<std::byte>(u(x, y));
        uv[1] = static_cast<std::byte>(v(x, y));
      }
    }
  }
  static int luma(int x, int y) { return (x + 3 * y) % 251; }
  static int u(int x, int y) { return (5 * x + 7 * y + 1) % 251; }
  static int v(int x, int y) { return (11 * x + 2 * y + 3) % 251; }
  RoadWarpShape shape() const { return RoadWarpShape::of(layout); }
};

}  // namespace ignis::pipeline::testing
