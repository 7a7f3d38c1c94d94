#pragma once

#include "ignis/base/result.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace ignis {

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

/// Opens a file to read it, without waiting where it is a pipe; false when it cannot be opened (errno says why).
FileHandle open_to_read(const std::string& path);

/// A file's bytes, mapped read-only while an owner lives.
struct MappedFile {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Maps an open regular file; `path` is for messages. Errors: InvalidArgument with the reason NotRegular, or LimitExceeded for
/// one of more than `max_bytes`; OutOfMemory.
Result<MappedFile> map_open_file(const FileHandle& file, const std::string& path,
                                 int64_t max_bytes);
/// Opens and maps. Errors: NotFound when it cannot be opened; as map_open_file().
Result<MappedFile> map_file(const std::string& path,
                            int64_t max_bytes = std::numeric_limits<int64_t>::max());

}  // namespace ignis
