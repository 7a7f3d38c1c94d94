#pragma once

#include "ignis/pipeline/frames/frame.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ignis::pipeline {

/// The road networks' image: 512 x 256, packed to 6 planes of 128 rows and 256 columns.
inline constexpr int kRoadWidthPx = 512, kRoadHeightPx = 256;
inline constexpr int kRoadPlanes = 6, kRoadPlaneRows = 128, kRoadPlaneColumns = 256;
inline constexpr int64_t kRoadImageBytes =
    int64_t{kRoadPlanes} * kRoadPlaneRows * kRoadPlaneColumns;

/// A virtual camera of the road models (section 11.3).
struct RoadView2d {
  double focal_px = 0, center_x_px = 0, center_y_px = 0;
};
inline constexpr RoadView2d kMainModelView{910, 256, 47.6};
inline constexpr RoadView2d kWideModelView{455, 256, 151.8};

/// K_camera * inverse(K_model) for a camera that looks where the model does, row-major, as float32: model pixels to frame
/// pixels.
std::array<float, 9> road_matrix(const RoadView2d& camera, const RoadView2d& model);

/// The matrix of the half-size chroma planes: M scaled element by element by [[1, 1, .5], [1, 1, .5], [2, 2, 1]].
std::array<float, 9> chroma_matrix(const std::array<float, 9>& luma_matrix);

/// Where the planes of a road copy lie.
struct RoadWarpShape {
  int width_px = 0, height_px = 0;  ///< of the luma plane; chroma is half of each
  int64_t stride = 0;               ///< of both planes
  int64_t uv_offset = 0;            ///< of the interleaved chroma plane, U first
  int64_t size_bytes = 0;           ///< of the copy

  static RoadWarpShape of(const FrameLayout& layout);
};

/// The road warp in plain C++, nearest sample with ties to even and coordinates clamped to the plane (there is no fill):
/// the oracle that compiled warps are held against.
///
/// \param frame   shape.size_bytes bytes: luma rows and interleaved chroma rows.
/// \param matrix  row-major, takes model pixels to luma pixels.
/// \param image   kRoadImageBytes: Y(even row, even column), Y(odd, even), Y(even, odd), Y(odd, odd), U, V.
///
/// All in float32, in the order M00*x + M01*y + M02, without fused multiply-add. A coordinate that is NaN (0 / 0) reads
/// position 0; infinite ones are clamped like any other.
void warp_road(const RoadWarpShape& shape, std::span<const std::byte> frame,
               const std::array<float, 9>& matrix, std::span<std::byte> image);

}  // namespace ignis::pipeline
