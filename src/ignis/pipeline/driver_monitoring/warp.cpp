// Compiled with -ffp-contract=off: a fused multiply-add would round once where the definition rounds twice.

#include "ignis/pipeline/driver_monitoring/warp.h"

#include "ignis/base/check.h"

#include <cmath>

namespace ignis::pipeline {

WarpKind warp_kind(const std::array<float, 9>& matrix) {
  const bool is_axis_aligned =
      matrix[1] == 0 && matrix[3] == 0 && matrix[6] == 0 && matrix[7] == 0 && matrix[8] == 1;
  return is_axis_aligned ? WarpKind::AxisAligned : WarpKind::Projective;
}

void warp_luma(const WarpShape& shape, std::span<const std::byte> luma,
               const std::array<float, 9>& matrix, std::span<std::byte> output) {
  IGNIS_CHECK(shape.source_stride >= shape.source_width_px && shape.source_height_px >= 0);
  IGNIS_CHECK(static_cast<int64_t>(luma.size()) >= shape.source_bytes());
  IGNIS_CHECK(static_cast<int64_t>(output.size()) == shape.output_bytes());
  const auto& m = matrix;
  const auto last_x = static_cast<float>(shape.source_width_px - 1);
  const auto last_y = static_cast<float>(shape.source_height_px - 1);
  size_t at = 0;
  for (int row = 0; row < shape.output_height_px; ++row) {
    const auto y = static_cast<float>(row);
    for (int column = 0; column < shape.output_width_px; ++column, ++at) {
      const auto x = static_cast<float>(column);
      const float sw = m[6] * x + m[7] * y + m[8];
      const float sx = (m[0] * x + m[1] * y + m[2]) / sw;
      const float sy = (m[3] * x + m[4] * y + m[5]) / sw;
      const float rx = std::nearbyint(sx), ry = std::nearbyint(sy);  // default mode: ties to even
      // Each comparison is false for NaN; an infinity is outside.
      const bool is_inside = sw != 0 && rx >= 0 && rx <= last_x && ry >= 0 && ry <= last_y;
      output[at] = is_inside
                       ? luma[static_cast<size_t>(static_cast<int64_t>(ry) * shape.source_stride +
                                                  static_cast<int64_t>(rx))]
                       : static_cast<std::byte>(shape.fill);
    }
  }
}

}  // namespace ignis::pipeline
