#pragma once

#include "ignis/base/result.h"

#include <cstdint>
#include <string>
#include <utility>

namespace ignis::onnx {

struct FileBytes;

/// A file descriptor that closes itself. Move-only.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int descriptor) : descriptor_(descriptor) {}
  FileHandle(FileHandle&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileHandle& operator=(FileHandle other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileHandle();

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// Maps an open regular file; `path` is for messages. Errors: InvalidArgument when it is no regular file or has more
/// than `max_bytes`.
Result<FileBytes> map_open_file(const FileHandle& file, const std::string& path, int64_t max_bytes);

}  // namespace ignis::onnx
