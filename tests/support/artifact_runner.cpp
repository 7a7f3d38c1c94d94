#include "tests/support/artifact_runner.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ignis::test {
namespace {

Status write_bytes(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) return Error(ErrorCode::Internal, "'" + path + "' cannot be written.");
  return {};
}

std::string file_of(const std::string& folder, const char* kind, size_t index) {
  return folder + "/" + kind + "_" + std::to_string(index) + ".bin";
}

}  // namespace

Result<std::unique_ptr<ArtifactRunner>> ArtifactRunner::start(const std::string& command) {
  std::string folder = (std::filesystem::temp_directory_path() / "ignis-runner-XXXXXX").string();
  int to[2], from[2];
  if (mkdtemp(folder.data()) == nullptr || pipe(to) != 0 || pipe(from) != 0) {
    return Error(ErrorCode::Internal, "'" + command + "' cannot be started.");
  }
  const pid_t process = fork();
  if (process == 0) {
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    for (const int end : {to[0], to[1], from[0], from[1]}) close(end);
    const std::string line = "exec " + command;
    execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  return std::unique_ptr<ArtifactRunner>(
      new ArtifactRunner(folder, fdopen(to[1], "w"), fdopen(from[0], "r"), process));
}

ArtifactRunner::~ArtifactRunner() {
  std::fclose(questions_);  // the end of its input ends the process
  std::fclose(answers_);
  int status = 0;
  waitpid(process_, &status, 0);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Result<std::vector<HostTensor>> ArtifactRunner::run(const CompiledArtifact& artifact,
                                                    const std::vector<HostTensor>& inputs) {
  IGNIS_TRY(write_bytes(folder_ + "/model.ignis", artifact.bytes));
  for (size_t i = 0; i < inputs.size(); ++i) {
    IGNIS_TRY(write_bytes(file_of(folder_, "input", i), inputs[i].bytes));
  }
  std::fprintf(questions_, "%s\n", folder_.c_str());
  std::fflush(questions_);
  char answer[4096] = {};
  if (std::fgets(answer, sizeof answer, answers_) == nullptr) {
    return Error(ErrorCode::Internal, "The process that runs the artifact ended.");
  }
  if (std::string(answer) != "ok\n") return Error(ErrorCode::Internal, answer);
  std::vector<HostTensor> outputs;
  for (const PortInfo& port : artifact.outputs) {
    HostTensor output = HostTensor::zeros(port.dtype, port.shape);
    std::ifstream file(file_of(folder_, "output", outputs.size()), std::ios::binary);
    file.read(reinterpret_cast<char*>(output.bytes.data()),
              static_cast<std::streamsize>(output.bytes.size()));
    if (!file) return Error(ErrorCode::Internal, "Output '" + port.name + "' is too short.");
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace ignis::test
