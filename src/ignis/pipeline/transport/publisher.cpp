#include "ignis/pipeline/transport/publisher.h"

#include "ignis/pipeline/messages/wire.h"
#include "ignis/pipeline/transport/socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr std::string_view kIpc = "ipc://";
constexpr std::string_view kLocalhost = "tcp://localhost:";
constexpr size_t kEndpointBytes = 512;

Error in_use(const std::string& endpoint, Topic topic) {
  return Error(ErrorCode::InvalidArgument,
               "'" + endpoint + "' is in use: " + std::string(info(topic).name) +
                   " has one publisher. End the other one or choose another endpoint.",
               "EndpointInUse");
}

Error cannot_bind(const std::string& endpoint, const std::string& why) {
  return Error(ErrorCode::InvalidArgument, "'" + endpoint + "' cannot be bound: " + why + ".",
               "Endpoint");
}

/// Holds PATH.lock as long as it lives. ZeroMQ removes whatever lies at PATH before it binds there, a living socket of
/// another publisher or a plain file: the lock and the look at the file prevent both. The lock ends with the process,
/// however that ends; the file stays, because removing it would let two in.
class IpcLock {
 public:
  static Result<IpcLock> acquire(const std::string& endpoint, Topic topic) {
    IpcLock lock;
    if (!endpoint.starts_with(kIpc) || endpoint[kIpc.size()] == '@') return lock;
    const std::string path = endpoint.substr(kIpc.size());
    const std::string lock_path = path + ".lock";
    lock.descriptor_ = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock.descriptor_ < 0) {
      return cannot_bind(endpoint,
                         "'" + lock_path + "': " + std::generic_category().message(errno));
    }
    if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) return in_use(endpoint, topic);
    struct stat status{};
    if (::lstat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
      return cannot_bind(endpoint, "'" + path + "' exists and is no socket");
    }
    return lock;
  }
  IpcLock() = default;
  IpcLock(IpcLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  IpcLock& operator=(IpcLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~IpcLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

 private:
  int descriptor_ = -1;
};

struct Outlet {
  bool is_open = false;
  IpcLock lock;
  detail::Socket socket;
  std::string endpoint;
};

Result<Outlet> bind_outlet(std::string_view base, Topic topic) {
  IGNIS_TRY_ASSIGN(std::string endpoint, endpoint_below(base, topic));
  // ZeroMQ binds to addresses and interfaces only; this one name is what people type.
  if (endpoint.starts_with(kLocalhost)) {
    endpoint = "tcp://127.0.0.1:" + endpoint.substr(kLocalhost.size());
  }
  Outlet outlet;
  IGNIS_TRY_ASSIGN(outlet.lock, IpcLock::acquire(endpoint, topic));
  IGNIS_TRY_ASSIGN(outlet.socket,
                   detail::Socket::open(ZMQ_PUB, endpoint, info(topic).queue_messages));
  if (zmq_bind(outlet.socket.handle(), endpoint.c_str()) != 0) {
    if (zmq_errno() == EADDRINUSE) return in_use(endpoint, topic);
    if (zmq_errno() == ENODEV || zmq_errno() == EADDRNOTAVAIL) {
      return cannot_bind(endpoint, "its host is no address of this machine; * means all of them");
    }
    return cannot_bind(endpoint, zmq_strerror(zmq_errno()));
  }
  std::array<char, kEndpointBytes> bound{};
  size_t size = bound.size();
  const bool is_told =
      zmq_getsockopt(outlet.socket.handle(), ZMQ_LAST_ENDPOINT, bound.data(), &size) == 0;
  outlet.endpoint = is_told ? std::string(bound.data()) : endpoint;
  outlet.is_open = true;
  return outlet;
}

}  // namespace

struct Publisher::State {
  std::array<Outlet, kTopicCount> outlets;
  PublisherCounters counters;
};

Publisher::Publisher(std::unique_ptr<State> state) : state_(std::move(state)) {}
Publisher::Publisher(Publisher&&) noexcept = default;
Publisher& Publisher::operator=(Publisher&&) noexcept = default;
Publisher::~Publisher() = default;

Result<Publisher> Publisher::open(std::string_view base, std::span<const Topic> topics) {
  auto state = std::make_unique<State>();
  for (const Topic topic : topics) {
    IGNIS_TRY_ASSIGN(state->outlets[static_cast<size_t>(topic)], bind_outlet(base, topic));
  }
  return Publisher(std::move(state));
}

Result<Publisher> Publisher::open(std::string_view base) {
  constexpr std::array kBoth = {Topic::DriverStateV2, Topic::DriverStateQuality};
  return open(base, kBoth);
}

Status Publisher::send(Topic topic, std::span<const std::byte> message) {
  const TopicInfo& wanted = info(topic);
  Outlet& outlet = state_->outlets[static_cast<size_t>(topic)];
  if (!outlet.is_open) {
    return Error(ErrorCode::InvalidArgument,
                 "This publisher was not opened for " + std::string(wanted.name) + ".");
  }
  if (message.size() > kMaxMessageBytes) {
    ++state_->counters.failed;
    return Error(ErrorCode::InvalidArgument, "A " + std::string(wanted.name) + " of " +
                                                 std::to_string(message.size()) +
                                                 " bytes is too long; at most " +
                                                 std::to_string(kMaxMessageBytes) + " are sent.");
  }
  void* socket = outlet.socket.handle();
  // A PUB socket never waits: it drops for those whose queue is full. ZMQ_DONTWAIT says so to the reader.
  const bool is_sent =
      zmq_send(socket, wanted.name.data(), wanted.name.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0 &&
      zmq_send(socket, message.data(), message.size(), ZMQ_DONTWAIT) >= 0;
  if (!is_sent) {
    ++state_->counters.failed;
    return Error(ErrorCode::Internal,
                 "'" + outlet.endpoint + "' refuses a message: " + zmq_strerror(zmq_errno()) + ".");
  }
  ++state_->counters.sent;
  return Status::ok();
}

std::string Publisher::endpoint(Topic topic) const {
  return state_->outlets[static_cast<size_t>(topic)].endpoint;
}

const PublisherCounters& Publisher::counters() const { return state_->counters; }

}  // namespace ignis::pipeline
