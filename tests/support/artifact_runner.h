#pragma once

#include "ignis/base/result.h"
#include "ignis/engine/artifact.h"

#include <memory>
#include <string>
#include <vector>

namespace ignis::test {

/// Runs artifacts in another process: tests/artifact/run_artifact, as it is or in an emulator.
class ArtifactRunner {
 public:
  /// `command` is run by the shell. Errors: Internal when it cannot be started.
  static Result<std::unique_ptr<ArtifactRunner>> start(const std::string& command);
  ArtifactRunner(const ArtifactRunner&) = delete;
  ArtifactRunner& operator=(const ArtifactRunner&) = delete;
  /// Ends the process.
  ~ArtifactRunner();

  /// Runs an artifact once. `inputs` in the order of its own. Errors: Internal with what the process answers.
  Result<std::vector<HostTensor>> run(const CompiledArtifact& artifact,
                                      const std::vector<HostTensor>& inputs);

 private:
  ArtifactRunner(std::string folder, FILE* questions, FILE* answers, pid_t process)
      : folder_(std::move(folder)), questions_(questions), answers_(answers), process_(process) {}

  std::string folder_;  // of the files that are exchanged
  FILE* questions_;
  FILE* answers_;
  pid_t process_;
};

}  // namespace ignis::test
