#pragma once

#include "ignis/pipeline/frames/frame.h"
#include "ignis/tensor/core.h"

#include <memory>

namespace ignis::pipeline {

/// A scaled RGB picture of a frame as a tensor graph.
struct RgbGraph {
  std::shared_ptr<ir::Graph> graph;
  tensor::Tensor frame;  ///< input 0: uint8 [layout.size_bytes]
  tensor::Tensor rgb;    ///< output: float32 [1, 3, height_px, width_px], 0 … 255, order R, G, B
  /// Frame pixels for one pixel of the output; output pixel centre (x, y) lies at ((x + 0.5) * scale - 0.5, …).
  double scale = 1;
};

/// Scales the whole frame bilinearly to fit into width_px x height_px, keeping its proportions, from the upper left
/// corner; the rest is black. BT.601, in the frame's range.
/// Errors: InvalidArgument for an output without pixels.
Result<RgbGraph> make_rgb_graph(const FrameLayout& layout, int width_px, int height_px);

}  // namespace ignis::pipeline
