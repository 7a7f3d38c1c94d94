#include "ignis/pipeline/driver_monitoring/build/warp_graph.h"

#include "ignis/pipeline/driver_monitoring/build/gather_inside.h"
#include "ignis/pipeline/frames/layout.h"
#include "ignis/tensor/tensor.h"

#include <string>

namespace ignis::pipeline {
namespace {

using tensor::Tensor;

// [count] 0, 1, 2, … as float32; exact, because extents stay far below 2^24.
Tensor positions(const std::shared_ptr<ir::Graph>& graph, int count) {
  return tensor::cast(Tensor::arange(graph, 0, count), DType::Float32);
}

// A rounded coordinate, and whether the sample lies inside. NaN is not inside: each comparison with it is false.
struct Axis {
  Tensor rounded, is_inside;
};
Axis to_axis(const Tensor& coordinate, int extent_px) {
  const Tensor rounded = tensor::round(coordinate);
  return {rounded,
          tensor::logical_and(rounded >= 0.0f, rounded <= static_cast<float>(extent_px - 1))};
}

// The position as an integer, 0 where the sample is outside: the cast of a huge value or a NaN never makes an index.
Tensor index_of(const Axis& axis, DType dtype) {
  return tensor::cast(tensor::where(axis.is_inside, axis.rounded, 0.0f), dtype);
}

// A column's position depends on x only and a row's on y only: both are computed once, stored, and added at each sample.
// Stored, because a vector of samples would otherwise compute each of its indices on its own.
Tensor warp_axis_aligned(const WarpGraph& warp, const WarpShape& shape, const Axis& column,
                         const Axis& row, const Tensor& fill) {
  const Tensor columns = tensor::contiguous(index_of(column, DType::Int64));
  const Tensor rows = tensor::contiguous(index_of(row, DType::Int64) * shape.source_stride);
  return tensor::where(
      tensor::logical_and(tensor::contiguous(row.is_inside), tensor::contiguous(column.is_inside)),
      gather_inside(warp.luma, rows + columns), fill);
}

// One index for each sample, -1 for the fill.
Tensor warp_projective(const WarpGraph& warp, const WarpShape& shape, const Axis& column,
                       const Axis& row, const Tensor& fill) {
  const Tensor position = index_of(row, DType::Int32) * static_cast<int32_t>(shape.source_stride) +
                          index_of(column, DType::Int32);
  const Tensor index = tensor::contiguous(
      tensor::where(tensor::logical_and(row.is_inside, column.is_inside), position, -1));
  return tensor::where(index >= 0, gather_inside(warp.luma, tensor::maximum(index, 0)), fill);
}

Status check_shape(const WarpShape& shape) {
  const auto is_size = [](int width_px, int height_px) {
    return width_px > 0 && height_px > 0 && width_px <= kMaxFrameWidthPx &&
           height_px <= kMaxFrameHeightPx;
  };
  const auto size = [](int width_px, int height_px) {
    return std::to_string(width_px) + "x" + std::to_string(height_px);
  };
  if (!is_size(shape.source_width_px, shape.source_height_px) ||
      !is_size(shape.output_width_px, shape.output_height_px)) {
    return Error(ErrorCode::InvalidArgument,
                 "A warp from " + size(shape.source_width_px, shape.source_height_px) + " to " +
                     size(shape.output_width_px, shape.output_height_px) +
                     " is asked for; sizes from 1x1 to 4096x3072 are supported.",
                 "WarpSize");
  }
  if (shape.source_stride < shape.source_width_px || shape.source_stride > kMaxStrideBytes) {
    return Error(ErrorCode::InvalidArgument,
                 "The luma plane has stride " + std::to_string(shape.source_stride) +
                     " at a width of " + std::to_string(shape.source_width_px) +
                     "; from the width to 65536 is possible.",
                 "WarpStride");
  }
  return {};
}

}  // namespace

Result<WarpGraph> make_warp_graph(const WarpShape& shape, WarpKind kind) {
  IGNIS_TRY(check_shape(shape));
  try {
    WarpGraph warp;
    warp.graph = std::make_shared<ir::Graph>();
    warp.luma = Tensor::input(warp.graph, 0, "luma", DType::UInt8, {shape.source_bytes()});
    warp.matrix = Tensor::input(warp.graph, 1, "matrix", DType::Float32, {9});
    const auto m = [&](int i) { return tensor::select(warp.matrix, 0, i); };
    const Tensor x =
        tensor::reshape(positions(warp.graph, shape.output_width_px), {1, shape.output_width_px});
    const Tensor y =
        tensor::reshape(positions(warp.graph, shape.output_height_px), {shape.output_height_px, 1});
    const Tensor fill = Tensor::full_int(warp.graph, {1, 1}, shape.fill, DType::UInt8);
    Tensor image;
    if (kind == WarpKind::AxisAligned) {
      // The products with M01, M10, M20 and M21 are zeros and the divisor is one: leaving them out changes no bit.
      image = warp_axis_aligned(warp, shape, to_axis(m(0) * x + m(2), shape.source_width_px),
                                to_axis(m(4) * y + m(5), shape.source_height_px), fill);
    } else {
      // A coordinate over 0 is infinite or NaN, so outside by itself.
      const Tensor divisor = m(6) * x + m(7) * y + m(8);
      image = warp_projective(
          warp, shape, to_axis((m(0) * x + m(1) * y + m(2)) / divisor, shape.source_width_px),
          to_axis((m(3) * x + m(4) * y + m(5)) / divisor, shape.source_height_px), fill);
    }
    warp.image = tensor::reshape(image, {1, shape.output_bytes()});
    return warp;
  } catch (const tensor::GraphError& error) {
    return error.error();
  }
}

}  // namespace ignis::pipeline
