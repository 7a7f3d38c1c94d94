#pragma once

#include "ignis/base/result.h"

#include <cstdint>
#include <functional>

namespace ignis::runtime {

/// Time as waits see it, so that a test can own it. Nanoseconds of a steady clock.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ns() const = 0;
  /// Gives other threads time to work, at most until `until_ns`; may return early. A test's clock moves on instead.
  virtual void sleep_until(int64_t until_ns) = 0;
  /// A clock whose sleeps end when something happens: a sleep with a ticket ends early when it happened after the ticket was
  /// taken. Without such events a sleep is a sleep, and short.
  virtual uint64_t ticket() const { return 0; }
  virtual void sleep_until_event(int64_t until_ns, uint64_t /*ticket*/) { sleep_until(until_ns); }
  virtual int64_t longest_sleep_ns() const { return 50'000; }
  /// Looks that a wait takes before it sleeps: short enough for the host's own cost not to matter, long enough for a kernel
  /// of some microseconds.
  virtual int spins() const { return 200; }
  /// A wait looks on for this long, too, where being woken costs more than that.
  virtual int64_t spin_ns() const { return 0; }
  /// The machine's.
  static Clock& real();
};

/// How long a wait may last. Both limits are from its start; the stall limit starts anew at each change of what is watched.
struct WaitLimits {
  int64_t deadline_ns = 0;  ///< total; 0: look once and answer at once
  int64_t stall_ns = 0;     ///< 0: only the deadline counts
};

/// The sum of two times that are not negative, held below the end of the range.
int64_t add_ns(int64_t a, int64_t b);

enum class WaitEnd : uint8_t { Reached, Stalled, DeadlineExceeded, Abandoned };

/// Watches a word until it is at least `target`, by a spin and then sleeps that grow to the clock's longest, 50 us as a rule. `is_abandoned` is
/// looked at between looks and ends the wait. Never lasts longer than the limits and one sleep. When both limits end at once
/// it is a stall.
WaitEnd wait_at_least(Clock& clock, const std::function<uint64_t()>& read, uint64_t target,
                      const WaitLimits& limits, const std::function<bool()>& is_abandoned = {});

}  // namespace ignis::runtime
