#pragma once

#include "ignis/base/program_image.h"
#include "ignis/base/result.h"

#include <filesystem>
#include <memory>
#include <vector>

namespace ignis::codegen::testing {

/// An AArch64 program image linked into a static program that qemu-aarch64 runs. For tests only: each run is a process
/// that gets the buffers on its standard input and gives them back on its standard output.
class EmulatedImage {
 public:
  /// Errors: NotFound when qemu-aarch64, clang-19 or ld.lld is not installed.
  static Result<EmulatedImage> load(const ProgramImage& image);
  /// Runs the entry once on copies of the buffers and copies them back.
  Status run(std::vector<std::vector<std::byte>>& buffers, int64_t part = 0,
             int64_t parts = 1) const;

 private:
  explicit EmulatedImage(std::shared_ptr<const std::filesystem::path> folder)
      : folder_(std::move(folder)) {}
  std::shared_ptr<const std::filesystem::path> folder_;  // removed with the last copy
};

}  // namespace ignis::codegen::testing
