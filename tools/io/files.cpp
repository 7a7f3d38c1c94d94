#include "tools/io/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ignis::tools {
namespace {

Error file_error(const std::string& verb, const std::string& path) {
  const int code = errno;
  return Error(code == ENOENT ? ErrorCode::NotFound : ErrorCode::InvalidArgument,
               "File '" + path + "' cannot be " + verb + ": " + std::strerror(code) + ".");
}

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

 private:
  int fd_;
};

Status write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n =
        ::write(fd, bytes.data() + done, std::min<size_t>(bytes.size() - done, size_t{1} << 30));
    if (n < 0 && errno != EINTR) return file_error("written", path);
    if (n > 0) done += static_cast<size_t>(n);
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<std::byte>> read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (file.fd() < 0 || ::fstat(file.fd(), &info) != 0) return file_error("read", path);
  if (!S_ISREG(info.st_mode))
    return Error(ErrorCode::InvalidArgument, "'" + path + "' is not a regular file.");
  std::vector<std::byte> bytes(static_cast<size_t>(info.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::read(file.fd(), bytes.data() + done,
                             std::min<size_t>(bytes.size() - done, size_t{1} << 30));
    if (n < 0 && errno != EINTR) return file_error("read", path);
    if (n == 0) break;  // it became shorter
    if (n > 0) done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

Status write_file(const std::string& path, std::span<const std::byte> bytes) {
  if (path == "-") return write_all(STDOUT_FILENO, bytes, path);
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 &&
      !S_ISREG(info.st_mode)) {  // a pipe or /dev/null is written in place
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.fd() < 0) return file_error("written", path);
    return write_all(file.fd(), bytes, path);
  }
  std::string beside = path + ".XXXXXX";
  const Descriptor file(::mkostemp(beside.data(), O_CLOEXEC));
  if (file.fd() < 0) return file_error("written", path);
  Status status = write_all(file.fd(), bytes, path);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (status &&
      (::fchmod(file.fd(), 0666 & ~mask) != 0 || ::rename(beside.c_str(), path.c_str()) != 0)) {
    status = file_error("written", path);
  }
  if (!status) ::unlink(beside.c_str());
  return status;
}

Status write_file(const std::string& path, const std::string& text) {
  return write_file(path, std::as_bytes(std::span(text)));
}

}  // namespace ignis::tools
