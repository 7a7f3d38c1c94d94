#include "ignis/pipeline/driver_monitoring/build/rgb_graph.h"

#include "ignis/pipeline/driver_monitoring/build/frame_planes.h"
#include "ignis/pipeline/driver_monitoring/geometry.h"
#include "ignis/tensor/tensor.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace ignis::pipeline {

Result<RgbGraph> make_rgb_graph(const FrameLayout& layout, int width_px, int height_px) {
  if (width_px <= 0 || height_px <= 0) {
    return Error(ErrorCode::InvalidArgument, "A picture of " + std::to_string(width_px) + "x" +
                                                 std::to_string(height_px) + " is asked for.");
  }
  try {
    RgbGraph result;
    result.graph = std::make_shared<ir::Graph>();
    result.frame =
        tensor::Tensor::input(result.graph, 0, "frame", DType::UInt8, {layout.size_bytes});
    result.scale = rgb_scale(layout, width_px, height_px);
    const auto covered = [&](int extent_px, int limit_px) {
      return std::clamp(static_cast<int>(std::ceil(extent_px / result.scale - 1e-9)), 1, limit_px);
    };
    const int columns = covered(layout.width_px, width_px);
    const int rows = covered(layout.height_px, height_px);
    const FramePlanes planes = split_planes(result.frame, layout);
    const auto sample = [&](int plane) {
      const double pixel_px = plane == 0 ? 1 : 2;
      return sample_plane(planes, layout, plane,
                          middles(0, columns * result.scale, columns, pixel_px, false),
                          middles(0, rows * result.scale, rows, pixel_px, false));
    };
    // ITU-R BT.601: luma 16 … 235 and chroma 16 … 240 in the limited range, 0 … 255 in the full one.
    const bool is_full = layout.range == ColorRange::Full;
    const float luma_gain = is_full ? 1.0f : 255.0f / 219.0f;
    const float chroma_gain = is_full ? 1.0f : 255.0f / 224.0f;
    const tensor::Tensor y = (sample(0) - (is_full ? 0.0f : 16.0f)) * luma_gain;
    const tensor::Tensor u = (sample(1) - 128.0f) * chroma_gain;
    const tensor::Tensor v = (sample(2) - 128.0f) * chroma_gain;
    const tensor::Tensor r = y + v * 1.402f;
    const tensor::Tensor g = y - u * 0.344136f - v * 0.714136f;
    const tensor::Tensor b = y + u * 1.772f;
    const tensor::Tensor rgb = tensor::clamp(tensor::stack({r, g, b}, 0), 0.0f, 255.0f);
    result.rgb = tensor::unsqueeze(
        tensor::pad(rgb, {{0, 0}, {0, height_px - rows}, {0, width_px - columns}}), {0});
    return result;
  } catch (const tensor::GraphError& error) {
    return error.error();
  }
}

}  // namespace ignis::pipeline
