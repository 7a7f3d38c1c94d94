#pragma once

#include "ignis/base/result.h"
#include "ignis/drivers/cpu/futex.h"
#include "ignis/drivers/cpu/loader.h"
#include "ignis/drivers/cpu/pool.h"
#include "ignis/drivers/cpu/queue_words.h"
#include "ignis/runtime/queued_device.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace ignis::cpu {

/// Gives the threads that a worker leads. Errors: as Pool::create().
using PoolSource = std::function<Result<std::shared_ptr<Pool>>()>;

/// What a worker shares with its queue over all of its generations.
struct QueueEvents {
  EventCount changed;                ///< a timeline moved, or the device was lost
  std::atomic<bool> is_wide{false};  ///< the worker needs all threads at the moment
};

/// The thread that takes entries out of the CPU's ring and runs them in order: thread 0 of a pool, so that no caller ever runs
/// a program. A thread that does not come back out of a program cannot be stopped: it is cut off, and keeps its ring, until it
/// does or for the rest of the process. One thread at a time submits.
class Worker {
 public:
  Worker(PoolSource pool_source, std::chrono::nanoseconds spin, std::shared_ptr<QueueEvents> events,
         runtime::MemoryRef timeline_memory);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// Starts the thread, which holds `self`. Errors: OutOfMemory.
  static Status start(const std::shared_ptr<Worker>& self);
  bool is_started() const { return is_started_; }

  uint64_t free_words() const { return kRingWords - (write_.load() - read_.load()); }
  /// `words` fit.
  void submit(std::span<const std::byte> words);

  /// Nothing it does is seen from now on, but for what a program that it is in writes.
  void cut_off();
  /// Whether its thread has ended or never began: it touches no memory any more.
  bool has_ended() const { return !is_started_.load() || has_ended_.load() || was_left_behind(); }
  /// Whether this process is the child of a fork, and the thread its parent's.
  bool was_left_behind() const { return is_started_.load() && forks_ != count_forks(); }
  /// Ends the thread after the entry that it is in, and waits for that at most `timeout`.
  void stop(std::chrono::nanoseconds timeout);
  /// For tests: the thread ends, and nobody has noticed.
  void die() { dies_.store(true), wake(); }

  /// Entries that were run.
  uint64_t executed() const { return executed_.load(std::memory_order_relaxed); }
  uint64_t waiting_words() const { return write_.load() - read_.load(); }

 private:
  enum class Next : uint8_t { GoOn, End };

  static uint32_t count_forks();
  static void* thread_main(void* self);
  void wake();
  bool wait_for_words();
  void work();
  Next run_entry(const uint64_t* entry, const EntryHeader& header);
  void run_program(Entry program, void* const* buffers, uint64_t max_parts, uint64_t work_ns);
  Next wait_for_word(const std::atomic<uint64_t>& word, uint64_t value);
  Next store(uint64_t address, uint64_t value, bool ends_batch);
  const uint64_t* contiguous(uint64_t at, uint32_t words);
  bool ends() const { return is_cut_off_.load() || dies_.load(); }

  PoolSource pool_source_;
  std::chrono::nanoseconds spin_;
  std::shared_ptr<QueueEvents> events_;
  runtime::MemoryRef timeline_memory_;  // its stores may come late
  uint64_t* ring_;

  // Of the submitting side. Positions are words since the beginning; a word lies at (position - origin_) % kRingWords. An
  // empty ring is filled from its begin again, so that few submits under way use few pages of it.
  alignas(128) std::atomic<uint64_t> write_{0};
  uint64_t origin_ = 0;  // changed while the ring is empty, seen with the next write_
  EventCount submitted_;

  alignas(128) std::atomic<uint64_t> read_{0};
  std::atomic<uint64_t> executed_{0};
  std::mutex stores_;  // a worker that is cut off stores nothing
  std::atomic<bool> is_cut_off_{false}, dies_{false}, is_started_{false};
  std::atomic<bool> has_ended_{false};
  uint32_t forks_ = 0;  // at start()
  EventCount ended_;

  std::mutex pool_mutex_;  // around changes of pool_ by the thread, and looks of others
  std::atomic<bool> is_in_pool_{false};

  // Of the thread.
  std::shared_ptr<Pool> pool_;
  std::optional<Pool::Lease> lease_;
  bool is_short_ = false;
  uint64_t straddling_[kMostWords];  // an entry that lies across the ring's end
};

}  // namespace ignis::cpu
