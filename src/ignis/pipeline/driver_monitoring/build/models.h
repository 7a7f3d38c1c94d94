#pragma once

#include "ignis/engine/program_cache.h"
#include "ignis/pipeline/driver_monitoring/model.h"
#include "ignis/pipeline/driver_monitoring/profile.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace ignis::pipeline {

struct ModelOptions {
  std::string profile = "auto";  ///< or "comma-553", "comma-38", "face"
  /// The side that a one-sided model ("comma-38", "face") fills; the other one stays unknown.
  DriverSide side = DriverSide::Left;
  std::string device = "cpu";  ///< SPEC of a device: "cpu", "cpu:llvm:avx2", "cpu:interp"
  int threads = 0;             ///< 0: what the affinity mask and the cgroup quota allow
  /// How long a worker spins before it sleeps. A camera's period is far longer than a run.
  std::chrono::nanoseconds spin = std::chrono::microseconds(50);
  std::chrono::nanoseconds warm_up_limit = std::chrono::seconds(60);  ///< of the run at bind
  /// Where compiled kernels are looked up and kept; null: they are compiled at each load.
  std::shared_ptr<ProgramCache> program_cache;
  /// Called while compiling, from any thread, one call at a time.
  std::function<void(const std::string& stage, int done, int total)> progress;
};

/// Loads and compiles a model file behind the profile that it follows. What depends on the camera is made by bind().
/// Errors: NotFound (no such file or profile), InvalidArgument (a malformed file; slices that do not fit, reason
/// SliceOutOfRange, SliceWidth, SliceOverlap, SliceMissing or SliceMap), Unsupported (reason ArtifactMismatch: inputs or
/// outputs of no profile), as Session::load. load_reasons() turns them into validity reasons.
Result<std::unique_ptr<Model>> load_model(const std::string& path,
                                          const ModelOptions& options = {});

}  // namespace ignis::pipeline
