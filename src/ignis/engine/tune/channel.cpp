#include "ignis/engine/tune/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace ignis::engine {
namespace {

constexpr size_t kMaxLine = size_t{16} << 20;

Error gone(const char* what) { return Error(ErrorCode::Internal, what, "WorkerGone"); }

}  // namespace

Channel::~Channel() {
  if (fd_ >= 0) ::close(fd_);
}

Status Channel::send(const Message& message) {
  std::string line;
  for (size_t i = 0; i < message.size(); ++i) {
    if (i > 0) line += '\t';
    const size_t begin = line.size();
    line += message[i];
    std::replace_if(
        line.begin() + static_cast<std::ptrdiff_t>(begin), line.end(),
        [](char c) { return c == '\t' || c == '\n'; }, ' ');
  }
  line += '\n';
  const std::lock_guard lock(sending_);
  for (std::string_view left = line; !left.empty();) {
    const ssize_t count = ::send(fd_, left.data(), left.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return gone("The other side of the tuner no longer listens.");
    left.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<Channel::Message> Channel::receive(std::chrono::steady_clock::time_point deadline) {
  size_t seen = 0;
  while (true) {
    const size_t end = read_.find('\n', seen);
    if (end != std::string::npos) {
      Message message(1);
      for (const char c : std::string_view(read_).substr(0, end)) {
        if (c == '\t') {
          message.emplace_back();
        } else {
          message.back() += c;
        }
      }
      read_.erase(0, end + 1);
      return message;
    }
    seen = read_.size();
    if (seen > kMaxLine) return gone("The other side of the tuner sends a line without an end.");
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ready{fd_, POLLIN, 0};
    const int count =
        ::poll(&ready, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000)));
    if (count < 0 && errno != EINTR) return gone("The other side of the tuner cannot be heard.");
    if (count <= 0) {
      if (std::chrono::steady_clock::now() < deadline) continue;
      return Error(ErrorCode::Timeout, "The other side of the tuner is silent.");
    }
    char bytes[16384];
    const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return gone("The other side of the tuner is gone.");
    read_.append(bytes, static_cast<size_t>(got));
  }
}

}  // namespace ignis::engine
