#include "ignis/engine/cache_files.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace ignis::engine {
namespace {

namespace fs = std::filesystem;

/// Closes a descriptor at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Error bad_folder(const std::string& path, const std::string& words) {
  return Error(ErrorCode::InvalidArgument, "The cache folder '" + path + "' " + words + ".",
               "BadFolder");
}

Error bad_file(const std::string& path, const std::string& words) {
  return Error(ErrorCode::InvalidArgument, "File '" + path + "' " + words + ".", "BadFile");
}

Status write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), 1u << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Error(ErrorCode::InvalidArgument, std::strerror(errno), "Full");
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

// No two writers share a name, whatever machine or container they are on.
std::string unfinished_name(const std::string& path) {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    number = static_cast<uint64_t>(::getpid());
  }
  return path + kUnfinished + std::to_string(number);
}

}  // namespace

Status make_private_folder(const std::string& path) {
  std::error_code failed;
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) fs::create_directories(parent, failed);
  if (failed) return bad_folder(path, "cannot be made: " + failed.message());
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return bad_folder(path, "cannot be made: " + std::string(std::strerror(errno)));
  }
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    return bad_folder(path, "cannot be read: " + std::string(std::strerror(errno)));
  }
  if (!S_ISDIR(info.st_mode)) return bad_folder(path, "is no folder");
  if (info.st_uid != ::geteuid()) {
    return bad_folder(path, "belongs to user " + std::to_string(info.st_uid) +
                                ", and this process runs as user " + std::to_string(::geteuid()) +
                                "; it would run code that another user can change");
  }
  if ((info.st_mode & 022) != 0) {
    return bad_folder(path,
                      "may be written by other users, who could change the code in it; take "
                      "that right away with chmod go-w");
  }
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return bad_folder(path, "cannot be written: " + std::string(std::strerror(errno)));
  }
  return {};
}

Result<std::vector<std::byte>> read_whole_file(const std::string& path, uint64_t max_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (file.fd() < 0 || ::fstat(file.fd(), &info) != 0) {
    const int code = errno;
    if (code == ENOENT)
      return Error(ErrorCode::NotFound, "File '" + path + "' is not there.", "BadFile");
    return bad_file(path, "cannot be read: " + std::string(std::strerror(code)));
  }
  if (!S_ISREG(info.st_mode)) return bad_file(path, "is no regular file");
  if (static_cast<uint64_t>(info.st_size) > max_bytes) {
    return bad_file(path, "has " + std::to_string(info.st_size) + " bytes; at most " +
                              std::to_string(max_bytes) + " are read");
  }
  std::vector<std::byte> bytes(static_cast<size_t>(info.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::read(file.fd(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return bad_file(path, "cannot be read: " + std::string(std::strerror(errno)));
    if (count == 0) break;  // it became shorter
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

Status write_whole_file(const std::string& path, std::span<const std::byte> bytes) {
  const std::string unfinished = unfinished_name(path);
  const auto fail = [&](const std::string& words) {
    ::unlink(unfinished.c_str());
    return Error(ErrorCode::InvalidArgument,
                 "File '" + path + "' cannot be written: " + words + ".", "Full");
  };
  Descriptor file(
      ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.fd() < 0) return fail(std::strerror(errno));
  Status written = write_all(file.fd(), bytes);
  if (!written) return fail(written.error().message());
  // Some file systems say only now that there is no room. Nothing is synced: what a power cut leaves fails its digest.
  if (::close(file.release()) != 0) return fail(std::strerror(errno));
  if (::rename(unfinished.c_str(), path.c_str()) != 0) return fail(std::strerror(errno));
  return {};
}

}  // namespace ignis::engine
