#include "ignis/pipeline/transport/socket.h"

#include "ignis/pipeline/messages/wire.h"

#include <zmq.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#if defined(__SANITIZE_THREAD__)
// The library is not built with the thread sanitizer, which then sees its memory and not what orders the accesses.
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libzmq.so\n"; }
#endif

namespace ignis::pipeline::detail {
namespace {

// A peer that is gone without a word (power, cable) is noticed after this time.
constexpr int kHeartbeatMs = 1000;
constexpr int kHeartbeatTimeoutMs = 3000;
constexpr int kReconnectMs = 50;
constexpr int kReconnectMaxMs = 1000;
// Small, so that little waits in the kernel for a subscriber that does not read.
constexpr int kKernelBufferBytes = 64 << 10;

Error failure(const std::string& what) {
  return Error(ErrorCode::Internal, what + ": " + zmq_strerror(zmq_errno()) + ".");
}

}  // namespace

Result<Socket> Socket::open(int type, const std::string& endpoint, int queue_messages) {
  Socket socket;
  socket.context_ = zmq_ctx_new();
  if (socket.context_ == nullptr) return failure("ZeroMQ cannot start");
  zmq_ctx_set(socket.context_, ZMQ_BLOCKY, 0);
  socket.socket_ = zmq_socket(socket.context_, type);
  if (socket.socket_ == nullptr) return failure("ZeroMQ cannot make a socket");
  IGNIS_TRY(socket.set(ZMQ_LINGER, 0, "ZMQ_LINGER"));
  IGNIS_TRY(socket.set(ZMQ_SNDHWM, queue_messages, "ZMQ_SNDHWM"));
  IGNIS_TRY(socket.set(ZMQ_RCVHWM, queue_messages, "ZMQ_RCVHWM"));
  IGNIS_TRY(socket.set(ZMQ_SNDBUF, kKernelBufferBytes, "ZMQ_SNDBUF"));
  IGNIS_TRY(socket.set(ZMQ_RCVBUF, kKernelBufferBytes, "ZMQ_RCVBUF"));
  IGNIS_TRY(socket.set(ZMQ_HEARTBEAT_IVL, kHeartbeatMs, "ZMQ_HEARTBEAT_IVL"));
  IGNIS_TRY(socket.set(ZMQ_HEARTBEAT_TIMEOUT, kHeartbeatTimeoutMs, "ZMQ_HEARTBEAT_TIMEOUT"));
  IGNIS_TRY(socket.set(ZMQ_RECONNECT_IVL, kReconnectMs, "ZMQ_RECONNECT_IVL"));
  IGNIS_TRY(socket.set(ZMQ_RECONNECT_IVL_MAX, kReconnectMaxMs, "ZMQ_RECONNECT_IVL_MAX"));
  const int64_t limit_bytes = kMaxMessageBytes;
  if (zmq_setsockopt(socket.socket_, ZMQ_MAXMSGSIZE, &limit_bytes, sizeof(limit_bytes)) != 0) {
    return failure("ZeroMQ refuses ZMQ_MAXMSGSIZE");
  }
  if (endpoint.find('[') != std::string::npos) IGNIS_TRY(socket.set(ZMQ_IPV6, 1, "ZMQ_IPV6"));
  return socket;
}

Socket::Socket(Socket&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)),
      socket_(std::exchange(other.socket_, nullptr)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(socket_, other.socket_);
  return *this;
}

Socket::~Socket() {
  if (socket_ != nullptr) zmq_close(socket_);
  if (context_ != nullptr) {
    // Returns as soon as the socket is closed, because nothing lingers; only a signal makes it return early.
    while (zmq_ctx_term(context_) != 0 && zmq_errno() == EINTR) {
    }
  }
}

Status Socket::set(int option, int value, const char* name) {
  if (zmq_setsockopt(socket_, option, &value, sizeof(value)) == 0) return Status::ok();
  return failure(std::string("ZeroMQ refuses ") + name + " = " + std::to_string(value));
}

Status Socket::subscribe(std::string_view prefix) {
  if (zmq_setsockopt(socket_, ZMQ_SUBSCRIBE, prefix.data(), prefix.size()) == 0)
    return Status::ok();
  return failure("ZeroMQ refuses to subscribe to '" + std::string(prefix) + "'");
}

}  // namespace ignis::pipeline::detail
