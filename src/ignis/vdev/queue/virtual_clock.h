#pragma once

#include "ignis/runtime/clock.h"

#include <atomic>
#include <functional>
#include <utility>

namespace ignis::vdev {

/// Time that stands still until somebody sleeps. Whoever sleeps lets the simulated devices work until then.
class VirtualClock final : public runtime::Clock {
 public:
  int64_t now_ns() const override { return now_ns_.load(); }
  void sleep_until(int64_t until_ns) override {
    if (serve_) serve_(until_ns);
    move_to(until_ns);
  }
  /// Moves on to `time_ns`; time never goes back.
  void move_to(int64_t time_ns) {
    int64_t now = now_ns_.load();
    while (now < time_ns && !now_ns_.compare_exchange_weak(now, time_ns)) {
    }
  }
  /// Called by a sleeper with the time it wakes up at. Set before anybody sleeps.
  void set_serve(std::function<void(int64_t until_ns)> serve) { serve_ = std::move(serve); }

 private:
  std::atomic<int64_t> now_ns_{1'000'000'000};
  std::function<void(int64_t)> serve_;
};

}  // namespace ignis::vdev
