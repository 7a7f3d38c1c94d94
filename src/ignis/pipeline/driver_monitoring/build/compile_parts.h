#pragma once

#include "ignis/engine/artifact.h"
#include "ignis/pipeline/driver_monitoring/camera.h"
#include "ignis/pipeline/driver_monitoring/decode.h"
#include "ignis/pipeline/driver_monitoring/profile.h"

#include <optional>
#include <string>
#include <vector>

namespace ignis::pipeline {

/// What a cabin model's artifact is to carry beside the network.
struct PartsOptions {
  std::string profile =
      "auto";  ///< "none", or a profile's name; "auto": what the inputs and outputs are of, if any
  /// Warps are made for frames of each: NV12 padded as camera servers do, and where it is wanted tight NV12 and I420, too.
  std::vector<Camera> cameras;
  bool takes_tight_frames = false;
  std::vector<DriverSide> sides = {DriverSide::Left};  ///< of a one-sided model
};

/// Adds to `options` what the pipeline needs to run the model from its artifact alone: slices, geometry, warps, and the size of
/// the picture where the file leaves it to the pipeline. Returns the profile; nothing, and changes nothing, when there is none.
/// Errors: as load_model() for what is wrong with the model; Unsupported (ArtifactMismatch) for a profile that is asked for and
/// does not fit.
Result<std::optional<Profile>> add_parts(const std::string& path, const PartsOptions& parts,
                                         CompileOptions& options);

}  // namespace ignis::pipeline
