#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace ignis::exec {

/// A lock that is waited for at most so long; std::unique_lock takes it. Made of a mutex and a condition because thread
/// sanitizers do not know the timed locks of the C library.
class BoundedMutex {
 public:
  bool try_lock() {
    const std::lock_guard lock(mutex_);
    if (is_held_) return false;
    is_held_ = true;
    return true;
  }
  bool try_lock_for(std::chrono::nanoseconds timeout) {
    // Held below the end of the clock's range.
    const auto bounded = std::min<std::chrono::nanoseconds>(timeout, std::chrono::hours(24));
    std::unique_lock lock(mutex_);
    if (!free_.wait_for(lock, bounded, [this] { return !is_held_; })) return false;
    is_held_ = true;
    return true;
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      is_held_ = false;
    }
    free_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable free_;
  bool is_held_ = false;
};

}  // namespace ignis::exec
