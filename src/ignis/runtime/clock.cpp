#include "ignis/runtime/clock.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace ignis::runtime {
namespace {

constexpr int64_t kFirstSleepNs = 1'000;
constexpr int64_t kPlainSleepNs =
    50'000;  // from here on a clock that wakes up by itself sleeps long

class RealClock final : public Clock {
 public:
  int64_t now_ns() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void sleep_until(int64_t until_ns) override {
    std::this_thread::sleep_until(
        std::chrono::steady_clock::time_point(std::chrono::nanoseconds(until_ns)));
  }
};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Clock& Clock::real() {
  static RealClock clock;
  return clock;
}

int64_t add_ns(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return INT64_MAX;  // both count forwards
  return sum;
}

WaitEnd wait_at_least(Clock& clock, const std::function<uint64_t()>& read, uint64_t target,
                      const WaitLimits& limits, const std::function<bool()>& is_abandoned) {
  uint64_t last = read();
  if (last >= target) return WaitEnd::Reached;
  if (is_abandoned && is_abandoned()) return WaitEnd::Abandoned;
  if (limits.deadline_ns <= 0) return WaitEnd::DeadlineExceeded;
  int64_t now = clock.now_ns();
  const int64_t end = add_ns(now, limits.deadline_ns);
  int64_t stall_end = limits.stall_ns > 0 ? add_ns(now, limits.stall_ns) : INT64_MAX;
  const int most_spins = clock.spins();
  const int64_t spin_end = add_ns(now, clock.spin_ns());
  const int64_t longest_sleep_ns = clock.longest_sleep_ns();
  int64_t sleep_ns = longest_sleep_ns > kPlainSleepNs ? longest_sleep_ns : kFirstSleepNs;
  for (int spins = 0;;) {
    // The clock is read before the word: a value that came in time counts, however late we look.
    now = clock.now_ns();
    const uint64_t ticket = clock.ticket();
    const uint64_t value = read();
    if (value >= target) return WaitEnd::Reached;
    if (value != last) {
      last = value;
      if (limits.stall_ns > 0) stall_end = add_ns(now, limits.stall_ns);
    }
    if (is_abandoned && is_abandoned()) return WaitEnd::Abandoned;
    if (now >= stall_end) return WaitEnd::Stalled;
    if (now >= end) return WaitEnd::DeadlineExceeded;
    if (spins < most_spins || now < spin_end) {
      ++spins;
      relax();
      continue;
    }
    clock.sleep_until_event(std::min({add_ns(now, sleep_ns), end, stall_end}), ticket);
    sleep_ns = std::min(2 * sleep_ns, longest_sleep_ns);
  }
}

}  // namespace ignis::runtime
