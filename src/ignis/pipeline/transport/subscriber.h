#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/transport/endpoints.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::pipeline {

struct SubscriberCounters {
  uint64_t received = 0;
  uint64_t replaced = 0;    ///< newer ones came before they were asked for
  uint64_t refused = 0;     ///< wrong number of parts, wrong topic
  uint64_t reconnects = 0;  ///< made because nothing came for a while; others happen unseen
};

/// Keeps the newest message of one topic. A thread takes what comes, so nothing old waits in a queue however seldom
/// receive() is called. Connects in the background, and again whenever the publisher comes back.
class Subscriber {
 public:
  /// `endpoint` is the topic's own (see endpoint_below). The publisher need not be there yet.
  /// Errors: InvalidArgument, reason "Endpoint".
  static Result<Subscriber> open(std::string_view endpoint, Topic topic);
  Subscriber(Subscriber&&) noexcept;
  Subscriber& operator=(Subscriber&&) noexcept;
  ~Subscriber();

  /// The newest message that was not handed over yet, into `message`.
  /// Errors: Timeout when none came within `timeout`.
  Status receive(std::vector<std::byte>& message, std::chrono::nanoseconds timeout);
  /// The same without waiting, and without making an error.
  bool try_receive(std::vector<std::byte>& message);
  SubscriberCounters counters() const;

 private:
  struct State;
  explicit Subscriber(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace ignis::pipeline
