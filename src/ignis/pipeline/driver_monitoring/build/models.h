#pragma once

#include "ignis/engine/program_cache.h"
#include "ignis/pipeline/driver_monitoring/model.h"
#include "ignis/pipeline/driver_monitoring/profile.h"
#include "ignis/pipeline/driver_monitoring/staged_model.h"

#include <functional>
#include <memory>
#include <string>

namespace ignis::pipeline {

struct ModelOptions : StageOptions {
  std::string profile = "auto";  ///< or "comma-553", "comma-38", "face"
  /// Where compiled kernels are looked up and kept; null: they are compiled at each load.
  std::shared_ptr<ProgramCache> program_cache;
  /// Called while compiling, from any thread, one call at a time.
  std::function<void(const std::string& stage, int done, int total)> progress;
};

/// Loads a model file behind the profile that it follows: an ONNX model, which is compiled, or an artifact, of which only a
/// warp that it has not is compiled, with a warning. What depends on the camera is made by bind().
/// Errors: NotFound (no such file or profile), InvalidArgument (a malformed file; slices that do not fit, reason
/// SliceOutOfRange, SliceWidth, SliceOverlap, SliceMissing or SliceMap), Unsupported (reason ArtifactMismatch: inputs or
/// outputs of no profile), as Session::load. load_reasons() turns them into validity reasons.
Result<std::unique_ptr<Model>> load_model(const std::string& path,
                                          const ModelOptions& options = {});

}  // namespace ignis::pipeline
