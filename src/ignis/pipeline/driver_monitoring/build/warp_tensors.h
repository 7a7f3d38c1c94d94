#pragma once

#include "ignis/engine/session.h"
#include "ignis/pipeline/driver_monitoring/staged_model.h"

#include <vector>

namespace ignis::pipeline {

/// A warp as a session takes it.
struct WarpTensors {
  std::vector<NamedTensor> inputs, outputs;
  FloatLevel float_level = FloatLevel::Finite;
};
/// Errors: Unsupported, reason "UnknownGeometry", for frames that show too little of what the model needs; as
/// make_warp_graph(), make_planes_graph() and make_rgb_graph().
Result<WarpTensors> make_warp_tensors(const WarpRequest& request);

}  // namespace ignis::pipeline
