#include "ignis/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ignis {

FileHandle::~FileHandle() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileHandle open_to_read(const std::string& path) {
  // Non-blocking: opening a pipe by mistake must not wait for its writer.
  return FileHandle(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

Result<MappedFile> map_open_file(const FileHandle& file, const std::string& path,
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
  if (size_bytes == 0) return MappedFile{};
  void* base = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (base == MAP_FAILED) {
    return Error(ErrorCode::OutOfMemory,
                 "File '" + path + "' cannot be mapped: " + std::strerror(errno) + ".");
  }
  std::shared_ptr<const void> owner(base, [size_bytes](void* p) { ::munmap(p, size_bytes); });
  return MappedFile{{static_cast<const std::byte*>(base), size_bytes}, std::move(owner)};
}

Result<MappedFile> map_file(const std::string& path, int64_t max_bytes) {
  const FileHandle file = open_to_read(path);
  if (!file) {
    return Error(ErrorCode::NotFound,
                 "File '" + path + "' cannot be opened: " + std::strerror(errno) + ".");
  }
  return map_open_file(file, path, max_bytes);
}

}  // namespace ignis
