#include "ignis/pipeline/driver_monitoring/build/frame_planes.h"

#include "ignis/pipeline/driver_monitoring/build/gather_inside.h"
#include "ignis/tensor/tensor.h"

#include <algorithm>
#include <cmath>

namespace ignis::pipeline {
namespace {

using tensor::Tensor;

// Byte offsets of the neighbours of each position, and the weight of the second one, as constants.
struct Taps {
  Tensor low, high;  // int64 [count]
  Tensor weight;     // float32 [count]
};

Taps make_taps(const std::shared_ptr<ir::Graph>& graph, const Positions& positions, int extent,
               int64_t step, int64_t channel) {
  std::vector<int64_t> low, high;
  std::vector<double> weight;
  for (const double position : positions) {
    const double inside = std::clamp(position, 0.0, static_cast<double>(extent - 1));
    const auto first = static_cast<int64_t>(inside);
    const int64_t second = std::min<int64_t>(first + 1, extent - 1);
    low.push_back(first * step + channel);
    high.push_back(second * step + channel);
    weight.push_back(inside - static_cast<double>(first));
  }
  const Shape shape = {static_cast<int64_t>(positions.size())};
  return {Tensor::constant(graph, HostTensor::from(DType::Int64, shape, low)),
          Tensor::constant(graph, HostTensor::from(DType::Int64, shape, high)),
          Tensor::constant(graph, HostTensor::from(DType::Float32, shape, weight))};
}

Tensor plane_view(const Tensor& frame, int64_t offset, int64_t rows, int64_t stride) {
  const int64_t end = offset + rows * stride;
  // The last row may end with its pixels, where the buffer ends.
  const Tensor whole = end > frame.dim(0) ? tensor::pad(frame, {{0, end - frame.dim(0)}}) : frame;
  return tensor::reshape(tensor::slice(whole, 0, offset, end), {rows, stride});
}

}  // namespace

FramePlanes split_planes(const Tensor& frame, const FrameLayout& layout) {
  FramePlanes planes;
  planes.y = plane_view(frame, 0, layout.height_px, layout.y_stride);
  const int64_t rows = layout.height_px / 2;
  if (layout.format == PixelFormat::Nv12) {
    planes.chroma = plane_view(frame, layout.u_offset, rows, layout.uv_stride);
  } else {
    planes.u = plane_view(frame, layout.u_offset, rows, layout.uv_stride);
    planes.v = plane_view(frame, layout.v_offset, rows, layout.uv_stride);
  }
  return planes;
}

Positions middles(double begin_px, double extent_px, int count, double pixel_px, bool is_mirrored) {
  Positions positions(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    const double middle_px = begin_px + (i + 0.5) * extent_px / count;
    positions[static_cast<size_t>(i)] = middle_px / pixel_px - 0.5;
  }
  if (is_mirrored) std::reverse(positions.begin(), positions.end());
  return positions;
}

Positions every(const Positions& positions, int first, int step) {
  Positions picked;
  for (size_t i = static_cast<size_t>(first); i < positions.size();
       i += static_cast<size_t>(step)) {
    picked.push_back(positions[i]);
  }
  return picked;
}

Tensor sample_plane(const Tensor& plane, int column_count, int pixel_bytes, int channel,
                    const Positions& xs, const Positions& ys) {
  const auto& graph = plane.graph();
  const int64_t stride = plane.dim(1);
  const Taps columns = make_taps(graph, xs, column_count, pixel_bytes, channel);
  const Taps rows = make_taps(graph, ys, static_cast<int>(plane.dim(0)), stride, 0);
  const auto row_count = static_cast<int64_t>(ys.size());
  const auto column_shape = Shape{1, static_cast<int64_t>(xs.size())};
  const Tensor bytes = tensor::flatten(plane);
  const auto sample = [&](const Tensor& row, const Tensor& column) {
    const Tensor index =
        tensor::reshape(row, {row_count, 1}) + tensor::reshape(column, column_shape);
    return tensor::cast(gather_inside(bytes, index), DType::Float32);
  };
  const Tensor across = tensor::reshape(columns.weight, column_shape);
  const Tensor down = tensor::reshape(rows.weight, {row_count, 1});
  const Tensor top =
      tensor::lerp(sample(rows.low, columns.low), sample(rows.low, columns.high), across);
  const Tensor bottom =
      tensor::lerp(sample(rows.high, columns.low), sample(rows.high, columns.high), across);
  return tensor::lerp(top, bottom, down);
}

Tensor sample_plane(const FramePlanes& planes, const FrameLayout& layout, int plane,
                    const Positions& xs, const Positions& ys) {
  if (plane == 0) return sample_plane(planes.y, layout.width_px, 1, 0, xs, ys);
  const int columns = layout.width_px / 2;
  if (layout.format == PixelFormat::Nv12) {
    return sample_plane(planes.chroma, columns, 2, plane - 1, xs, ys);
  }
  return sample_plane(plane == 1 ? planes.u : planes.v, columns, 1, 0, xs, ys);
}

}  // namespace ignis::pipeline
