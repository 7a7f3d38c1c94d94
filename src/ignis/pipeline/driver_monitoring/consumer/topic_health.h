#pragma once

#include <array>
#include <cstdint>

namespace ignis::pipeline {

/// Whether a topic's messages come at all and as often as they should (section 8).
class TopicHealth {
 public:
  explicit TopicHealth(double rate_hz) : rate_hz_(rate_hz) {}

  /// A message came at `now_ns`.
  void receive(uint64_t now_ns);
  /// The last message is younger than 10 nominal periods: 0.5 s at 20 Hz.
  bool is_alive(uint64_t now_ns) const;
  /// The mean rate over the last (up to) 10 intervals is within 0.8 to 1.2 of the nominal one. False with fewer than two
  /// messages: one message has no rate.
  bool is_rate_right() const;

 private:
  static constexpr int kIntervals = 10;
  double rate_hz_;
  std::array<uint64_t, kIntervals + 1> times_ns_{};  ///< a ring
  uint64_t count_ = 0;
};

}  // namespace ignis::pipeline
