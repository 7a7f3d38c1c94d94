#pragma once

#include "ignis/pipeline/road/road_warp.h"
#include "ignis/tensor/core.h"

#include <memory>

namespace ignis::pipeline {

/// The road warp of both cameras as one tensor graph.
struct RoadWarpGraph {
  std::shared_ptr<ir::Graph> graph;
  tensor::Tensor frames;      ///< input 0: uint8 [2, bytes of one copy]: main, wide
  tensor::Tensor transforms;  ///< input 1: float32 [2, 3, 3]: model pixels to luma pixels
  tensor::Tensor image;       ///< output: uint8 [2, 6, 128, 256]
};

/// Builds it for frames of this shape; equal to warp_road() bit for bit when compiled with FloatLevel::Strict.
/// Errors: InvalidArgument, reason WarpSize, for planes that do not lie inside the copy.
Result<RoadWarpGraph> make_road_warp_graph(const RoadWarpShape& shape);

}  // namespace ignis::pipeline
