#include "ignis/pipeline/road/artifact_file.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace ignis::pipeline {

Status check_artifact_file(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) {
    return Error(ErrorCode::NotFound, "There is no model file '" + path + "'.", "NoArtifact");
  }
  // Git LFS and git-annex stubs; a model begins with neither.
  constexpr std::string_view kStubs[] = {"version https://git-lfs", "/annex/objects/",
                                         "../.git/annex/"};
  std::array<char, 32> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  const std::string_view begin(head.data(), static_cast<size_t>(file.gcount()));
  if (begin.empty()) {
    return Error(ErrorCode::NotFound, "Model file '" + path + "' is empty or cannot be read.",
                 "NoArtifact");
  }
  for (const std::string_view stub : kStubs) {
    if (!begin.starts_with(stub)) continue;
    return Error(ErrorCode::InvalidArgument,
                 "Model file '" + path +
                     "' is a pointer to a file that was not fetched; fetch large files in the "
                     "folder it comes from.",
                 "NotAnArtifact");
  }
  return {};
}

}  // namespace ignis::pipeline
