#pragma once

#include "ignis/pipeline/driver_monitoring/camera.h"
#include "ignis/pipeline/driver_monitoring/decode.h"
#include "ignis/pipeline/frames/frame.h"
#include "ignis/tensor/core.h"

#include <memory>

namespace ignis::pipeline {

/// The one-sided model's input as a tensor graph.
struct PlanesGraph {
  std::shared_ptr<ir::Graph> graph;
  tensor::Tensor frame;   ///< input 0: uint8 [layout.size_bytes]
  tensor::Tensor planes;  ///< output: float32 [1, 6, 320, 160]
};

/// The side's part of a picture, in pixels of this camera: the same rays as in camera A's picture.
CropWindow crop_window(DriverSide side, const Camera& camera);

/// Crops to the driver, mirrors the right side, scales bilinearly to 640 rows of 320 pixels and packs: Y(even row, even
/// column), Y(odd, even), Y(even, odd), Y(odd, odd), U, V, each 320 rows of 160; a value is (byte - 128) / 128 with the
/// sampled value rounded to a byte.
/// Errors: Unsupported, reason "UnknownGeometry", when less than half of the driver's part lies in the picture.
Result<PlanesGraph> make_planes_graph(const FrameLayout& layout, const Camera& camera,
                                      DriverSide side);

}  // namespace ignis::pipeline
