#pragma once

#include "ignis/base/result.h"

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

namespace ignis::engine {

/// Messages between a tuner and its worker over a stream socket: a line each, of fields with tabs between them. Fields
/// hold no tab and no line break; those that do are sent with blanks instead. Any thread may send.
class Channel {
 public:
  using Message = std::vector<std::string>;

  /// Owns `fd`.
  explicit Channel(int fd) : fd_(fd) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Errors: Internal "WorkerGone" when nobody listens.
  Status send(const Message& message);
  /// Errors: Timeout; Internal "WorkerGone" at the end of the stream, or for a line of more than 16 MiB.
  Result<Message> receive(std::chrono::steady_clock::time_point deadline);

 private:
  int fd_;
  std::mutex sending_;
  std::string read_;  // beyond the last whole line
};

}  // namespace ignis::engine
