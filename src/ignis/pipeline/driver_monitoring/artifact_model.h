#pragma once

#include "ignis/exec/artifact.h"
#include "ignis/pipeline/driver_monitoring/staged_model.h"
#include "ignis/runtime/device.h"

#include <map>
#include <memory>
#include <string>

namespace ignis::pipeline {

/// Programs out of an artifact, without a compiler: the network, and the warps for the frames it was compiled for.
class ArtifactPrograms : public ProgramSource {
 public:
  ArtifactPrograms(exec::Artifact artifact, StageOptions options)
      : artifact_(std::move(artifact)), options_(std::move(options)) {}
  /// Errors: Unsupported (TargetMismatch), as exec::Model::create().
  Result<std::unique_ptr<StageProgram>> make_network(
      const std::map<std::string, Shape>& shapes) override;
  /// Errors: Unsupported, reason "UnknownGeometry", naming the warps that there are; as above.
  Result<std::unique_ptr<StageProgram>> make_warp(const WarpRequest& request) override;

 private:
  Result<std::unique_ptr<StageProgram>> make_program(const std::string& part);

  exec::Artifact artifact_;
  StageOptions options_;
};

/// What an artifact says of its model; its digest is the artifact's identity, which covers every byte of the file.
/// Errors: as exec::Artifact::plan_for().
Result<ModelFacts> read_artifact_facts(const exec::Artifact& artifact, const std::string& path,
                                       const std::string& device);
/// The profile that the artifact was compiled for; without one, that of its inputs and outputs. `wanted`: "auto", or a profile's
/// name. Errors: NotFound, Unsupported (ArtifactMismatch).
Result<Profile> artifact_profile(const exec::Artifact& artifact, const ModelFacts& facts,
                                 const std::string& wanted);

/// A cabin model out of an artifact, made ready without a compiler. Errors: as the functions above and
/// make_staged_model().
Result<std::unique_ptr<Model>> load_artifact_model(const exec::Artifact& artifact,
                                                   const std::string& path,
                                                   const StageOptions& options = {},
                                                   const std::string& profile = "auto");
/// The same of a file that is opened and checked here.
Result<std::unique_ptr<Model>> load_artifact_model(const std::string& path,
                                                   const StageOptions& options = {},
                                                   const std::string& profile = "auto");

}  // namespace ignis::pipeline
