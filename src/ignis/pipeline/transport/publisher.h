#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/transport/endpoints.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ignis::pipeline {

struct PublisherCounters {
  uint64_t sent = 0;    ///< messages handed over; a subscriber that lags misses some of them
  uint64_t failed = 0;  ///< messages the socket did not take
};

/// The one publisher of some topics. A message has two parts: the topic's name, then the bytes. Sending never waits: what a
/// subscriber has not taken when the queue is full is dropped for that subscriber. Use it from one thread.
class Publisher {
 public:
  /// Binds one endpoint for each topic, below `base` (see endpoint_below).
  /// Errors: InvalidArgument, reason "EndpointInUse", when somebody publishes there already, "Endpoint" when it cannot be
  /// bound for another cause; both name it.
  static Result<Publisher> open(std::string_view base, std::span<const Topic> topics);
  /// driverStateV2 and driverStateQuality.
  static Result<Publisher> open(std::string_view base);
  Publisher(Publisher&&) noexcept;
  Publisher& operator=(Publisher&&) noexcept;
  ~Publisher();  ///< does not wait for anybody

  /// Errors: InvalidArgument for a topic that was not opened or a message longer than kMaxMessageBytes; Internal when the
  /// socket refuses it.
  Status send(Topic topic, std::span<const std::byte> message);
  /// As bound, with the port: "tcp://127.0.0.1:7100". Empty for a topic that was not opened.
  std::string endpoint(Topic topic) const;
  const PublisherCounters& counters() const;

 private:
  struct State;
  explicit Publisher(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace ignis::pipeline
