#include "ignis/pipeline/road/road_warp.h"

#include "ignis/base/check.h"
#include "ignis/pipeline/frames/layout.h"

#include <cmath>

namespace ignis::pipeline {
namespace {

// A coordinate's nearest position in [0, extent), ties to even, NaN to 0.
int64_t nearest(float coordinate, int extent) {
  const float rounded = std::nearbyint(coordinate);
  if (!(rounded > 0.0f)) return 0;
  const int64_t last = extent - 1;
  return rounded >= static_cast<float>(last) ? last : static_cast<int64_t>(rounded);
}

// One plane of samples that lie `step` bytes apart.
struct Plane {
  const std::byte* bytes;
  int width, height;
  int64_t stride, step;

  std::byte sample(const std::array<float, 9>& m, int column, int row) const {
    const auto x = static_cast<float>(column), y = static_cast<float>(row);
    const float sw = m[6] * x + m[7] * y + m[8];
    const float sx = (m[0] * x + m[1] * y + m[2]) / sw;
    const float sy = (m[3] * x + m[4] * y + m[5]) / sw;
    return bytes[nearest(sy, height) * stride + nearest(sx, width) * step];
  }
};

}  // namespace

std::array<float, 9> road_matrix(const RoadView2d& camera, const RoadView2d& model) {
  const double scale = camera.focal_px / model.focal_px;
  return {static_cast<float>(scale),
          0,
          static_cast<float>(camera.center_x_px - scale * model.center_x_px),
          0,
          static_cast<float>(scale),
          static_cast<float>(camera.center_y_px - scale * model.center_y_px),
          0,
          0,
          1};
}

std::array<float, 9> chroma_matrix(const std::array<float, 9>& m) {
  // Powers of two: exact.
  return {m[0], m[1], m[2] * 0.5f, m[3], m[4], m[5] * 0.5f, m[6] * 2.0f, m[7] * 2.0f, m[8]};
}

RoadWarpShape RoadWarpShape::of(const FrameLayout& layout) {
  return {layout.width_px, layout.height_px, layout.y_stride, layout.u_offset,
          static_cast<int64_t>(road_copy_bytes(layout))};
}

void warp_road(const RoadWarpShape& shape, std::span<const std::byte> frame,
               const std::array<float, 9>& matrix, std::span<std::byte> image) {
  IGNIS_CHECK(static_cast<int64_t>(frame.size()) >= shape.size_bytes &&
              static_cast<int64_t>(image.size()) == kRoadImageBytes);
  const Plane luma{frame.data(), shape.width_px, shape.height_px, shape.stride, 1};
  const std::byte* chroma = frame.data() + shape.uv_offset;
  const Plane u{chroma, shape.width_px / 2, shape.height_px / 2, shape.stride, 2};
  const Plane v{chroma + 1, u.width, u.height, shape.stride, 2};
  const std::array<float, 9> half = chroma_matrix(matrix);
  size_t at = 0;
  for (int plane = 0; plane < kRoadPlanes; ++plane) {
    for (int row = 0; row < kRoadPlaneRows; ++row) {
      for (int column = 0; column < kRoadPlaneColumns; ++column, ++at) {
        if (plane < 4) {
          image[at] = luma.sample(matrix, 2 * column + plane / 2, 2 * row + plane % 2);
        } else {
          image[at] = (plane == 4 ? u : v).sample(half, column, row);
        }
      }
    }
  }
}

}  // namespace ignis::pipeline
