#pragma once

#include "ignis/base/result.h"

#include <string>
#include <string_view>

namespace ignis::pipeline::detail {

/// A ZeroMQ context with one socket of it. Closing waits for nobody: what was not sent is given up. Move-only.
class Socket {
 public:
  /// `type` is one of ZMQ_PUB, ZMQ_SUB. The options common to both sides are set: no lingering, bounded message size and
  /// queue, dead peers noticed within seconds, IPv6 when `endpoint` names such a host.
  static Result<Socket> open(int type, const std::string& endpoint, int queue_messages);
  Socket() = default;
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  void* handle() const { return socket_; }
  Status set(int option, int value, const char* name);
  Status subscribe(std::string_view prefix);

 private:
  void* context_ = nullptr;
  void* socket_ = nullptr;
};

}  // namespace ignis::pipeline::detail
