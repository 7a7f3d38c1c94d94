#include "ignis/exec/mapped_file.h"

#include "ignis/exec/artifact.h"
#include "ignis/exec/artifact_format.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ignis::exec {
namespace {

// Closes what it holds.
struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

Result<MappedFile> map_file(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its other end.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat info{};
  if (file.number < 0 || ::fstat(file.number, &info) != 0) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::NotFound : ErrorCode::InvalidArgument;
    return Error(code, "'" + path + "' cannot be opened: " + std::strerror(errno) + ".");
  }
  if (!S_ISREG(info.st_mode)) {
    return Error(ErrorCode::InvalidArgument, "'" + path + "' is not a regular file.",
                 "NotAnArtifact");
  }
  const auto size_bytes = static_cast<size_t>(info.st_size);
  if (size_bytes == 0) return MappedFile{};
  void* base = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (base == MAP_FAILED) {
    return Error(ErrorCode::OutOfMemory,
                 "'" + path + "' cannot be mapped: " + std::strerror(errno) + ".");
  }
  std::shared_ptr<const void> owner(base, [size_bytes](void* p) { ::munmap(p, size_bytes); });
  return MappedFile{{static_cast<const std::byte*>(base), size_bytes}, std::move(owner)};
}

bool is_artifact(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  char magic[kArtifactMagic.size()] = {};
  return file.number >= 0 &&
         ::pread(file.number, magic, sizeof magic, 0) == static_cast<ssize_t>(sizeof magic) &&
         std::string_view(magic, sizeof magic) == kArtifactMagic;
}

}  // namespace ignis::exec
