#pragma once

#include "ignis/pipeline/driver_monitoring/warp.h"
#include "ignis/tensor/core.h"

#include <memory>

namespace ignis::pipeline {

/// The luma warp as a tensor graph.
struct WarpGraph {
  std::shared_ptr<ir::Graph> graph;
  tensor::Tensor luma;    ///< input 0: uint8 [stride * height]
  tensor::Tensor matrix;  ///< input 1: float32 [9], row-major, output pixels to source pixels
  tensor::Tensor image;   ///< output: uint8 [1, output width * output height], row-major
};

/// Builds the warp; equal to warp_luma() bit for bit when compiled with FloatLevel::Strict.
///
/// An AxisAligned graph is several times faster; it reads M00, M02, M11 and M12 only, so it may be run with matrices
/// of that kind only (warp_kind()).
/// Errors: InvalidArgument for a source or output of no size or above 4096x3072, or a stride below the width.
Result<WarpGraph> make_warp_graph(const WarpShape& shape, WarpKind kind);

}  // namespace ignis::pipeline
