#include "ignis/pipeline/driver_monitoring/build/planes_graph.h"

#include "ignis/pipeline/driver_monitoring/build/frame_planes.h"
#include "ignis/tensor/tensor.h"

#include <algorithm>
#include <string>

namespace ignis::pipeline {
namespace {

constexpr int kRows = 640, kColumns = 320;  // of luma; chroma has half of each
constexpr double kReferenceFocalPx = 567, kReferenceCenterXPx = 964, kReferenceCenterYPx = 604;

// Share of the window that the picture holds.
double visible_share(const CropWindow& window, const FrameLayout& layout) {
  const auto overlap = [](double begin, double extent, double limit) {
    return std::max(0.0, std::min(begin + extent, limit) - std::max(begin, 0.0)) / extent;
  };
  return overlap(window.left_px, window.width_px, layout.width_px) *
         overlap(window.top_px, window.height_px, layout.height_px);
}

}  // namespace

CropWindow crop_window(DriverSide side, const Camera& camera) {
  CropWindow window = crop_window(side);
  const double scale = camera.focal_px / kReferenceFocalPx;
  window.left_px = camera.center_x_px + (window.left_px - kReferenceCenterXPx) * scale;
  window.top_px = camera.center_y_px + (window.top_px - kReferenceCenterYPx) * scale;
  window.width_px *= scale;
  window.height_px *= scale;
  return window;
}

Result<PlanesGraph> make_planes_graph(const FrameLayout& layout, const Camera& camera,
                                      DriverSide side) {
  const CropWindow window = crop_window(side, camera);
  if (!(visible_share(window, layout) >= 0.5)) {
    return Error(ErrorCode::Unsupported,
                 "The model looks at x " + std::to_string(window.left_px) + ", y " +
                     std::to_string(window.top_px) + ", " + std::to_string(window.width_px) + "x" +
                     std::to_string(window.height_px) +
                     " px, of which less than half lies in the " + std::to_string(layout.width_px) +
                     "x" + std::to_string(layout.height_px) + " picture of camera '" + camera.name +
                     "'; check its focal length and centre.",
                 "UnknownGeometry");
  }
  try {
    PlanesGraph result;
    result.graph = std::make_shared<ir::Graph>();
    result.frame =
        tensor::Tensor::input(result.graph, 0, "frame", DType::UInt8, {layout.size_bytes});
    const FramePlanes planes = split_planes(result.frame, layout);
    const auto xs = [&](double pixel_px, int count) {
      return middles(window.left_px, window.width_px, count, pixel_px, window.is_mirrored);
    };
    const auto ys = [&](double pixel_px, int count) {
      return middles(window.top_px, window.height_px, count, pixel_px, false);
    };
    const Positions luma_xs = xs(1, kColumns), luma_ys = ys(1, kRows);
    const Positions chroma_xs = xs(2, kColumns / 2), chroma_ys = ys(2, kRows / 2);
    std::vector<tensor::Tensor> parts;
    for (const auto& [row, column] : {std::pair(0, 0), {1, 0}, {0, 1}, {1, 1}}) {
      parts.push_back(
          sample_plane(planes, layout, 0, every(luma_xs, column, 2), every(luma_ys, row, 2)));
    }
    for (const int plane : {1, 2}) {
      parts.push_back(sample_plane(planes, layout, plane, chroma_xs, chroma_ys));
    }
    const tensor::Tensor bytes = tensor::round(tensor::stack(parts, 0));
    result.planes = tensor::unsqueeze((bytes - 128.0f) * 0.0078125f, {0});
    return result;
  } catch (const tensor::GraphError& error) {
    return error.error();
  }
}

}  // namespace ignis::pipeline
