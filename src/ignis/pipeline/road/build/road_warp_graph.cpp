#include "ignis/pipeline/road/build/road_warp_graph.h"

#include "ignis/pipeline/frames/layout.h"
#include "ignis/tensor/tensor.h"

#include <string>
#include <vector>

namespace ignis::pipeline {
namespace {

using tensor::Tensor;

Status check_shape(const RoadWarpShape& shape) {
  const bool is_size = shape.width_px >= kMinFramePx && shape.height_px >= kMinFramePx &&
                       shape.width_px <= kMaxFrameWidthPx && shape.height_px <= kMaxFrameHeightPx &&
                       shape.width_px % 2 == 0 && shape.height_px % 2 == 0;
  const bool has_room = is_size && shape.stride >= shape.width_px &&
                        shape.stride <= kMaxStrideBytes &&
                        shape.uv_offset >= shape.stride * shape.height_px &&
                        shape.uv_offset <= kMaxFrameBytes && shape.size_bytes <= kMaxFrameBytes &&
                        shape.size_bytes >= shape.uv_offset + shape.stride * shape.height_px / 2;
  if (has_room) return {};
  return Error(ErrorCode::InvalidArgument,
               "Frames of " + std::to_string(shape.width_px) + "x" +
                   std::to_string(shape.height_px) + ", stride " + std::to_string(shape.stride) +
                   ", with chroma at byte " + std::to_string(shape.uv_offset) +
                   " do not lie inside a copy of " + std::to_string(shape.size_bytes) + " bytes.",
               "WarpSize");
}

/// Numbers of the six planes, as a constant that broadcasts against [camera, plane, row, column].
template <typename T>
Tensor of_planes(const std::shared_ptr<ir::Graph>& graph, DType dtype,
                 const std::vector<T>& values) {
  return Tensor::constant(graph, HostTensor::from<T>(dtype, {1, kRoadPlanes, 1, 1}, values));
}

// The nearest position in [0, last], NaN to 0.
Tensor nearest(const Tensor& coordinate, const Tensor& last) {
  const Tensor rounded = tensor::round(coordinate);
  return tensor::cast(tensor::where(rounded > 0.0f, tensor::minimum(rounded, last), 0.0f),
                      DType::Int32);
}

}  // namespace

Result<RoadWarpGraph> make_road_warp_graph(const RoadWarpShape& shape) {
  IGNIS_TRY(check_shape(shape));
  try {
    RoadWarpGraph warp;
    const auto graph = warp.graph = std::make_shared<ir::Graph>();
    warp.frames = Tensor::input(graph, 0, "frames", DType::UInt8, {2, shape.size_bytes});
    warp.transforms = Tensor::input(graph, 1, "transforms", DType::Float32, {2, 3, 3});

    // All planes are one expression: they differ in constants only, so that no plane is computed to be thrown away.
    const auto of = [&](const std::vector<float>& values) {
      return of_planes<float>(graph, DType::Float32, values);
    };
    const Tensor first_x = of({0, 0, 1, 1, 0, 0}), first_y = of({0, 1, 0, 1, 0, 0});
    const Tensor pitch = of({2, 2, 2, 2, 1, 1});  // luma planes take every second pixel
    const auto w = static_cast<float>(shape.width_px), h = static_cast<float>(shape.height_px);
    const Tensor last_x = of({w - 1, w - 1, w - 1, w - 1, w / 2 - 1, w / 2 - 1});
    const Tensor last_y = of({h - 1, h - 1, h - 1, h - 1, h / 2 - 1, h / 2 - 1});
    const Tensor halves = of({1, 1, 1, 1, 0.5f, 0.5f}), doubles = of({1, 1, 1, 1, 2, 2});
    const auto uv = static_cast<int32_t>(shape.uv_offset);
    const Tensor base = of_planes<int32_t>(graph, DType::Int32, {0, 0, 0, 0, uv, uv + 1});
    const Tensor step = of_planes<int32_t>(graph, DType::Int32, {1, 1, 1, 1, 2, 2});

    const auto positions = [&](int count, const Shape& along) {
      return tensor::reshape(tensor::cast(Tensor::arange(graph, 0, count), DType::Float32), along);
    };
    const Tensor x = positions(kRoadPlaneColumns, {1, 1, 1, kRoadPlaneColumns}) * pitch + first_x;
    const Tensor y = positions(kRoadPlaneRows, {1, 1, kRoadPlaneRows, 1}) * pitch + first_y;
    const Tensor flat = tensor::reshape(warp.transforms, {2, 9, 1, 1, 1});
    const auto m = [&](int i) { return tensor::select(flat, 1, i); };
    // The chroma matrix: powers of two, exact.
    const Tensor divisor = m(6) * doubles * x + m(7) * doubles * y + m(8);
    const Tensor column = nearest((m(0) * x + m(1) * y + m(2) * halves) / divisor, last_x);
    const Tensor row = nearest((m(3) * x + m(4) * y + m(5) * halves) / divisor, last_y);
    const Tensor camera = tensor::reshape(
        Tensor::arange(graph, 0, 2, 1) * static_cast<int32_t>(shape.size_bytes), {2, 1, 1, 1});
    const Tensor index = camera + base + row * static_cast<int32_t>(shape.stride) + column * step;
    warp.image = tensor::gather(tensor::flatten(warp.frames), index);
    return warp;
  } catch (const tensor::GraphError& error) {
    return error.error();
  }
}

}  // namespace ignis::pipeline
