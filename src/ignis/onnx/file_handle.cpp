#include "ignis/onnx/file_handle.h"

#include "ignis/onnx/wire.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace ignis::onnx {

FileHandle::~FileHandle() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<FileBytes> map_open_file(const FileHandle& file, const std::string& path,
                                int64_t max_bytes) {
  struct stat info{};
  if (::fstat(file.descriptor(), &info) != 0) {
    return Error(ErrorCode::NotFound,
                 "File '" + path + "' cannot be examined: " + std::strerror(errno) + ".");
  }
  if (!S_ISREG(info.st_mode)) {
    return Error(ErrorCode::InvalidArgument, "File '" + path + "' is not a regular file.",
                 "NotRegular");
  }
  if (info.st_size > max_bytes) {
    return Error(ErrorCode::InvalidArgument,
                 "File '" + path + "' has " + std::to_string(info.st_size) +
                     " bytes; the limit is " + std::to_string(max_bytes) + ".",
                 "LimitExceeded");
  }
  const size_t size_bytes = static_cast<size_t>(info.st_size);
  if (size_bytes == 0) return FileBytes{};
  void* base = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (base == MAP_FAILED) {
    return Error(ErrorCode::OutOfMemory,
                 "File '" + path + "' cannot be mapped: " + std::strerror(errno) + ".");
  }
  FileBytes mapped;
  mapped.owner = std::shared_ptr<const void>(
      base, [size_bytes](const void* p) { ::munmap(const_cast<void*>(p), size_bytes); });
  mapped.bytes = {static_cast<const char*>(base), size_bytes};
  return mapped;
}

}  // namespace ignis::onnx
