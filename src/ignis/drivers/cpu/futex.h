#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace ignis::cpu {

/// Returns when the word is woken, no longer holds `expected`, the time is over, or for no reason.
inline void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, const timespec* timeout) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, timeout,
          nullptr, 0);
}

inline void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
          nullptr, 0);
}

/// Tells the processor that a loop waits.
inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/// A count that threads sleep on until it changes. The order that loses no wake-up: who sleeps takes the count, then looks at
/// what it waits for, then sleeps while the count is the same; who changes something counts after it.
class EventCount {
 public:
  uint32_t count() const { return count_.load(); }
  void add() {
    count_.fetch_add(1);
    if (sleepers_.load() != 0) futex_wake(count_);
  }
  /// At most `timeout_ns`; may return early.
  void sleep_while(uint32_t count, int64_t timeout_ns) {
    if (timeout_ns <= 0) return;
    const timespec timeout = {static_cast<time_t>(timeout_ns / 1'000'000'000),
                              static_cast<long>(timeout_ns % 1'000'000'000)};
    sleepers_.fetch_add(1);
    if (count_.load() == count) futex_wait(count_, count, &timeout);
    sleepers_.fetch_sub(1);
  }

 private:
  std::atomic<uint32_t> count_{0}, sleepers_{0};
};

}  // namespace ignis::cpu
