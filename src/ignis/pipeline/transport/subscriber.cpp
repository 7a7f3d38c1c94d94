#include "ignis/pipeline/transport/subscriber.h"

#include "ignis/pipeline/transport/socket.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace ignis::pipeline {
namespace {

// The thread is woken by its event; this only bounds the wait.
constexpr long kPollMs = 500;
// ZeroMQ connects again by itself when a connection breaks, but gives up for good on a peer that breaks the protocol or
// sends too long a message. So a subscriber that hears nothing for this long begins anew.
constexpr auto kSilence = std::chrono::seconds(2);
// condition_variable adds the timeout to now: it must not overflow.
constexpr std::chrono::nanoseconds kLongestWait = std::chrono::hours(1);

/// A message part, closed when it goes.
class Part {
 public:
  Part() { zmq_msg_init(&message_); }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() { zmq_msg_close(&message_); }

  bool receive(void* socket) { return zmq_msg_recv(&message_, socket, ZMQ_DONTWAIT) >= 0; }
  bool has_more() { return zmq_msg_more(&message_) != 0; }
  std::span<const std::byte> bytes() {
    return {static_cast<const std::byte*>(zmq_msg_data(&message_)), zmq_msg_size(&message_)};
  }
  std::string_view text() {
    return {static_cast<const char*>(zmq_msg_data(&message_)), zmq_msg_size(&message_)};
  }

 private:
  zmq_msg_t message_;
};

}  // namespace

struct Subscriber::State {
  const TopicInfo* topic = nullptr;
  std::string endpoint;
  detail::Socket socket;  ///< the thread's alone once it runs
  int stop_event = -1;

  std::mutex mutex;
  std::condition_variable has_come;
  std::vector<std::byte> newest;  ///< guarded by the mutex, as are the next two
  bool is_new = false;
  SubscriberCounters counters;

  std::thread thread;

  ~State() {
    if (thread.joinable()) {
      const uint64_t one = 1;
      (void)!::write(stop_event, &one, sizeof(one));  // fails only when it is set already
      thread.join();
    }
    if (stop_event >= 0) ::close(stop_event);
  }

  void run();
  void reconnect();
  /// Takes one message off the socket; false when there is none.
  bool take(std::vector<std::byte>& scratch);
};

void Subscriber::State::run() {
  std::vector<std::byte> scratch;
  std::array<zmq_pollitem_t, 2> items{};
  items[0].socket = socket.handle();
  items[0].events = ZMQ_POLLIN;
  items[1].fd = stop_event;
  items[1].events = ZMQ_POLLIN;
  auto last_heard = std::chrono::steady_clock::now();
  while (true) {
    if (zmq_poll(items.data(), static_cast<int>(items.size()), kPollMs) < 0 &&
        zmq_errno() != EINTR) {
      return;  // the context is gone
    }
    if ((items[1].revents & ZMQ_POLLIN) != 0) return;
    const auto now = std::chrono::steady_clock::now();
    // A publisher that floods must not keep the thread from seeing that it shall stop.
    for (int i = 0; i < 64 && take(scratch); ++i) last_heard = now;
    if (now - last_heard > kSilence) {
      reconnect();
      last_heard = now;
    }
  }
}

void Subscriber::State::reconnect() {
  zmq_disconnect(socket.handle(), endpoint.c_str());  // fails when the connection was given up
  zmq_connect(socket.handle(), endpoint.c_str());     // good once, good again
  const std::lock_guard lock(mutex);
  ++counters.reconnects;
}

bool Subscriber::State::take(std::vector<std::byte>& scratch) {
  Part first;
  if (!first.receive(socket.handle())) return false;
  Part second;
  int parts = 1;
  for (bool has_more = first.has_more(); has_more;) {
    Part surplus;
    Part& next = parts == 1 ? second : surplus;
    if (!next.receive(socket.handle())) break;  // never: a message comes whole
    ++parts;
    has_more = next.has_more();
  }
  const bool is_named =
      parts == 2 && (first.text() == topic->name ||
                     (!topic->other_name.empty() && first.text() == topic->other_name));
  const bool is_bare = parts == 1 && topic->accepts_bare;
  if (!is_named && !is_bare) {
    const std::lock_guard lock(mutex);
    ++counters.refused;
    return true;
  }
  const std::span<const std::byte> bytes = is_named ? second.bytes() : first.bytes();
  scratch.assign(bytes.begin(), bytes.end());
  const std::lock_guard lock(mutex);
  std::swap(newest, scratch);
  ++counters.received;
  counters.replaced += is_new ? 1 : 0;
  is_new = true;
  has_come.notify_one();
  return true;
}

Subscriber::Subscriber(std::unique_ptr<State> state) : state_(std::move(state)) {}
Subscriber::Subscriber(Subscriber&&) noexcept = default;
Subscriber& Subscriber::operator=(Subscriber&&) noexcept = default;
Subscriber::~Subscriber() = default;

Result<Subscriber> Subscriber::open(std::string_view endpoint, Topic topic) {
  IGNIS_TRY(check_endpoint(endpoint));
  auto state = std::make_unique<State>();
  state->topic = &info(topic);
  state->endpoint = endpoint;
  IGNIS_TRY_ASSIGN(state->socket,
                   detail::Socket::open(ZMQ_SUB, state->endpoint, state->topic->queue_messages));
  if (state->topic->accepts_bare) {
    IGNIS_TRY(state->socket.subscribe(""));
  } else {
    IGNIS_TRY(state->socket.subscribe(state->topic->name));
  }
  if (zmq_connect(state->socket.handle(), state->endpoint.c_str()) != 0) {
    return Error(
        ErrorCode::InvalidArgument,
        "'" + state->endpoint + "' cannot be subscribed to: " + zmq_strerror(zmq_errno()) + ".",
        "Endpoint");
  }
  state->stop_event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (state->stop_event < 0) {
    return Error(ErrorCode::Internal,
                 "No event can be made: " + std::generic_category().message(errno) + ".");
  }
  // Signals are for the threads of the program.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  std::optional<Error> error;
  try {
    state->thread = std::thread([raw = state.get()] { raw->run(); });
  } catch (const std::system_error& exception) {
    error = Error(ErrorCode::Internal,
                  std::string("No thread can be started: ") + exception.what() + ".");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error) return *std::move(error);
  return Subscriber(std::move(state));
}

Status Subscriber::receive(std::vector<std::byte>& message, std::chrono::nanoseconds timeout) {
  std::unique_lock lock(state_->mutex);
  timeout = std::clamp(timeout, std::chrono::nanoseconds(0), kLongestWait);
  if (!state_->has_come.wait_for(lock, timeout, [&] { return state_->is_new; })) {
    return Error(ErrorCode::Timeout, "No " + std::string(state_->topic->name) + " came from '" +
                                         state_->endpoint + "' within " +
                                         std::to_string(timeout.count()) + " ns.");
  }
  std::swap(message, state_->newest);
  state_->is_new = false;
  return Status::ok();
}

bool Subscriber::try_receive(std::vector<std::byte>& message) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->is_new) return false;
  std::swap(message, state_->newest);
  state_->is_new = false;
  return true;
}

SubscriberCounters Subscriber::counters() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counters;
}

}  // namespace ignis::pipeline
