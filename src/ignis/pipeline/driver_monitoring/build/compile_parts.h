#pragma once

#include "ignis/engine/artifact.h"
#include "ignis/pipeline/driver_monitoring/camera.h"
#include "ignis/pipeline/driver_monitoring/profile.h"

#include <optional>
#include <string>
#include <vector>

namespace ignis::pipeline {

/// What a cabin model's artifact is to carry beside the network.
struct PartsOptions {
  std::string profile =
      "auto";  ///< "none", or a profile's name; "auto": what the inputs and outputs are of, if any
  /// Warps are made for frames of each: NV12 padded as camera servers do and tight, and I420; of one-sided models for both
  /// sides.
  std::vector<Camera> cameras;
};

/// Adds to `options` what the pipeline needs to run the model from its artifact alone: slices, geometry, warps, and the size of
/// the picture where the file leaves it to the pipeline. Returns the profile; nothing, and changes nothing, when there is none.
/// Errors: as load_model() for what is wrong with the model; Unsupported (ArtifactMismatch) for a profile that is asked for and
/// does not fit.
Result<std::optional<Profile>> add_parts(const std::string& path, const PartsOptions& parts,
                                         CompileOptions& options);

}  // namespace ignis::pipeline
