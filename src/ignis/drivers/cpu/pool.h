#pragma once

#include "ignis/base/result.h"

#include <chrono>
#include <cstdint>
#include <memory>

namespace ignis::cpu {

using Deadline = std::chrono::steady_clock::time_point;

struct PoolOptions {
  int threads = 0;  ///< the calling thread included; 0: usable_cpus()
  /// How long a thread looks for work, or for the others' end, before it sleeps. Only while a run is in progress:
  /// between runs every worker sleeps. 0: sleeps at once.
  std::chrono::nanoseconds spin = std::chrono::microseconds(50);
};

/// Persistent worker threads that, with the calling thread, run the parts of one task at a time.
///
/// Parts are assigned statically: with n threads, thread t runs parts t, t + n, …; the caller is thread 0. A share
/// whose worker has not woken up when the caller has finished its own is taken over by the caller, so a slow
/// wake-up never delays a short task. Workers treat denormal floats as zero.
///
/// A worker that does not come back by the deadline cannot be stopped. The pool is then lost for good: the run
/// returns Timeout, later ones DeviceLost, and the workers are left to themselves. What the abandoned task reads and
/// writes must stay valid for the rest of the process; the pool's own state does.
class Pool {
 public:
  /// A part of a task. `context` is the task's own.
  using Task = void (*)(void* context, int64_t part, int64_t parts);

  /// Starts the workers. Errors: InvalidArgument for a negative or absurd count, OutOfMemory when a thread
  /// cannot be started.
  static Result<std::shared_ptr<Pool>> create(const PoolOptions& options = {});
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  /// Waits for the workers, unless the pool is lost.
  ~Pool();

  int threads() const;
  bool is_lost() const;
  /// For whoever knows that a part does not come back: as when a deadline passes.
  void lose();
  /// False in the child of a fork: the workers stayed behind, and the calling thread does all parts.
  bool is_of_this_process() const;

  /// The right to run tasks on the pool, held by one thread at a time.
  class Lease {
   public:
    Lease(Lease&& other) noexcept : core_(std::move(other.core_)), threads_(other.threads_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    /// Threads this lease may use: those of the pool, or 1 when another thread held the pool at begin().
    int threads() const { return threads_; }
    /// Runs parts 0 … parts - 1 and returns when all have come back. Allocates nothing when it succeeds.
    /// Errors: Timeout when one does not by the deadline, DeviceLost after that.
    Status run(Task task, void* context, int64_t parts, Deadline deadline);

   private:
    friend class Pool;
    Lease(std::shared_ptr<struct PoolCore> core, int threads)
        : core_(std::move(core)), threads_(threads) {}
    std::shared_ptr<struct PoolCore> core_;
    int threads_ = 1;
  };

  /// Begins a run of tasks. When another thread is in a run, the lease has the calling thread only: two sessions on
  /// one pool get on with one thread each instead of waiting for each other.
  /// Errors: DeviceLost when the pool is lost, InvalidArgument (NestedRun) from inside a task.
  Result<Lease> begin();

 private:
  explicit Pool(std::shared_ptr<PoolCore> core) : core_(std::move(core)) {}
  std::shared_ptr<PoolCore>
      core_;  // shared with the workers: an abandoned one may outlive the pool
};

}  // namespace ignis::cpu
