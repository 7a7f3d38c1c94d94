#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ignis::pipeline {

/// Which part of a source plane is picked into which image.
struct WarpShape {
  int source_width_px = 0, source_height_px = 0;
  int64_t source_stride = 0;  ///< bytes from row to row; sample (x, y) is byte y * stride + x
  int output_width_px = 1440, output_height_px = 960;
  uint8_t fill = 16;  ///< where the source has no sample

  bool operator==(const WarpShape&) const = default;
  int64_t source_bytes() const { return source_stride * source_height_px; }
  int64_t output_bytes() const { return int64_t{output_width_px} * output_height_px; }
};

/// What the nine floats of a matrix allow. Axis-aligned: M01, M10, M20 and M21 are zero, M22 is one, so that a
/// sample's column depends on x only and its row on y only.
enum class WarpKind : uint8_t { AxisAligned, Projective };
WarpKind warp_kind(const std::array<float, 9>& matrix);

/// The warp in plain C++, nearest sample with ties to even: the oracle that the compiled warps are held against.
///
/// \param luma    shape.source_bytes() bytes or more.
/// \param matrix  row-major, takes output pixels to source pixels; pixel centres at integers.
/// \param output  shape.output_bytes() bytes, row-major.
///
/// All in float32, in the order M00*x + M01*y + M02, without fused multiply-add. Where the divisor is 0 or a coordinate
/// is not finite the sample is the fill and nothing is loaded.
void warp_luma(const WarpShape& shape, std::span<const std::byte> luma,
               const std::array<float, 9>& matrix, std::span<std::byte> output);

}  // namespace ignis::pipeline
