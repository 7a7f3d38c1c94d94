#include "ignis/drivers/cpu/pool.h"

#include "ignis/drivers/cpu/cpu_count.h"
#include "ignis/drivers/cpu/denormals.h"
#include "ignis/drivers/cpu/futex.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

namespace ignis::cpu {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

namespace {

constexpr int kMaxThreads = 1024;

// A slot's word. Idle -> Posted by the caller; Posted -> Taken by the worker, or -> Idle by the caller that takes
// the share back; Taken -> Idle by the worker. Stop is final.
enum Phase : uint32_t { kIdle, kPosted, kTaken, kStop };

struct Share {
  Pool::Task task = nullptr;
  void* context = nullptr;
  int64_t first = 0, step = 1, parts = 0;
};

// One worker's mailbox, on cache lines of its own. `share` belongs to the caller while Idle, to whoever made the
// transition out of Posted after that.
struct alignas(128) Slot {
  std::atomic<uint32_t> phase{kIdle};
  std::atomic<uint32_t> worker_sleeps{0};
  std::atomic<uint32_t> caller_sleeps{0};
  Share share;
};

thread_local bool is_inside_part = false;

void run_share(const Share& share) {
  is_inside_part = true;
  for (int64_t part = share.first; part < share.parts; part += share.step) {
    share.task(share.context, part, share.parts);
  }
  is_inside_part = false;
}

}  // namespace

/// What callers and workers share.
struct PoolCore {
  PoolCore(int thread_count, nanoseconds spin_time)
      : slots(static_cast<size_t>(thread_count - 1)), spin(spin_time) {}

  std::vector<Slot> slots;  // one for each worker; thread t of a run is slots[t - 1]
  nanoseconds spin;
  std::atomic<bool> is_held{false};  // a lease with workers exists; workers may spin
  std::atomic<bool> is_lost{false};
  std::atomic<bool> is_stopping{false};
  std::vector<pthread_t> threads;  // touched by create() and the pool's destructor only
  const pid_t process = getpid();  // the workers are this process's; a fork's child has none

  void work(Slot& slot);
  bool wait_until_idle(Slot& slot, Deadline deadline);
  void stop();
};

// The order of operations that loses no wake-up: the sleeper announces itself, then looks again; the waker changes
// the word, then looks for sleepers. All four are sequentially consistent, so at least one sees the other.
void PoolCore::work(Slot& slot) {
  Clock::time_point idle_since = Clock::now();
  for (int turn = 0;; ++turn) {
    uint32_t phase = slot.phase.load(std::memory_order_acquire);
    if (phase == kStop) return;
    if (phase == kPosted) {
      if (!slot.phase.compare_exchange_strong(phase, kTaken)) continue;
      run_share(slot.share);
      slot.phase.store(kIdle);
      if (slot.caller_sleeps.load() != 0) futex_wake(slot.phase);
      if (is_stopping.load()) return;
      idle_since = Clock::now();
      continue;
    }
    const bool may_spin = spin.count() > 0 && is_held.load(std::memory_order_relaxed);
    if (may_spin && (turn % 32 != 0 || Clock::now() - idle_since < spin)) {
      pause_cpu();
      continue;
    }
    slot.worker_sleeps.store(1);
    if (slot.phase.load() == kIdle) futex_wait(slot.phase, kIdle, nullptr);
    slot.worker_sleeps.store(0);
    // A wake-up without a share gets one spin's time: a run has begun, or its share was taken back.
    idle_since = Clock::now();
  }
}

// False when the worker has not come back by the deadline.
bool PoolCore::wait_until_idle(Slot& slot, Deadline deadline) {
  if (slot.phase.load(std::memory_order_acquire) == kIdle) return true;
  const Clock::time_point spin_end = std::min(Clock::now() + spin, deadline);
  while (spin.count() > 0 && Clock::now() < spin_end) {
    for (int i = 0; i < 32; ++i) {
      if (slot.phase.load(std::memory_order_acquire) == kIdle) return true;
      pause_cpu();
    }
  }
  slot.caller_sleeps.store(1);
  bool is_idle = false;
  while (!(is_idle = slot.phase.load() == kIdle)) {
    const nanoseconds left = deadline - Clock::now();
    if (left.count() <= 0) break;
    const timespec timeout = {static_cast<time_t>(left.count() / 1'000'000'000),
                              static_cast<long>(left.count() % 1'000'000'000)};
    futex_wait(slot.phase, kTaken, &timeout);
  }
  slot.caller_sleeps.store(0);
  return is_idle;
}

// A worker inside a part sees `is_stopping` when it comes back; all others are told by their word.
void PoolCore::stop() {
  is_stopping.store(true);
  for (Slot& slot : slots) {
    uint32_t phase = kIdle;
    if (slot.phase.compare_exchange_strong(phase, kStop)) futex_wake(slot.phase);
  }
}

namespace {

struct WorkerStart {
  std::shared_ptr<PoolCore> core;
  size_t slot;
};

void* worker_main(void* argument) {
  const std::unique_ptr<WorkerStart> start(static_cast<WorkerStart*>(argument));
  const FlushDenormals flush;
  start->core->work(start->core->slots[start->slot]);
  return nullptr;
}

Status start_worker(const std::shared_ptr<PoolCore>& core, size_t index) {
  auto start = std::make_unique<WorkerStart>(WorkerStart{core, index});
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, worker_main, start.get());
  if (error != 0) {
    return Error(ErrorCode::OutOfMemory, "Worker thread " + std::to_string(index + 1) + " of " +
                                             std::to_string(core->slots.size()) +
                                             " cannot be started (error " + std::to_string(error) +
                                             ").");
  }
  start.release();  // the thread owns it now
  const std::string name = "ignis-" + std::to_string(index + 1);
  pthread_setname_np(thread, name.c_str());
  core->threads.push_back(thread);
  return {};
}

}  // namespace

Result<std::shared_ptr<Pool>> Pool::create(const PoolOptions& options) {
  const int threads = options.threads == 0 ? usable_cpus() : options.threads;
  if (threads < 1 || threads > kMaxThreads) {
    return Error(ErrorCode::InvalidArgument, "A pool of " + std::to_string(threads) +
                                                 " threads is asked for; 1 to " +
                                                 std::to_string(kMaxThreads) + " are possible.");
  }
  const auto core = std::make_shared<PoolCore>(threads, options.spin);
  std::shared_ptr<Pool> pool(new Pool(core));  // on an error its destructor ends the workers so far
  // Signals belong to the application's threads; workers inherit this mask.
  sigset_t all, former;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &former);
  Status status;
  for (size_t i = 0; i < core->slots.size() && status.has_value(); ++i) {
    status = start_worker(core, i);
  }
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  IGNIS_TRY(std::move(status));
  return pool;
}

Pool::~Pool() {
  if (!is_of_this_process()) return;
  core_->stop();
  const bool is_lost = core_->is_lost.load();
  for (const pthread_t thread : core_->threads) {
    if (is_lost) pthread_detach(thread);
    else pthread_join(thread, nullptr);
  }
}

int Pool::threads() const { return static_cast<int>(core_->slots.size()) + 1; }
bool Pool::is_lost() const { return core_->is_lost.load(); }
void Pool::lose() { core_->is_lost.store(true); }
bool Pool::is_of_this_process() const { return core_->process == getpid(); }

Result<Pool::Lease> Pool::begin() {
  if (is_inside_part) {
    return Error(ErrorCode::InvalidArgument, "A task of the thread pool begins another run.",
                 "NestedRun");
  }
  if (core_->is_lost.load()) {
    return Error(ErrorCode::DeviceLost, "The CPU's threads are lost: a program did not come back.",
                 "PoolLost");
  }
  const bool has_workers = !core_->slots.empty() && is_of_this_process();
  const bool is_free = has_workers && !core_->is_held.exchange(true);
  return Lease(core_, is_free ? threads() : 1);
}

Pool::Lease::~Lease() {
  if (core_ != nullptr && threads_ > 1) core_->is_held.store(false);
}

Status Pool::Lease::run(Task task, void* context, int64_t parts, Deadline deadline) {
  PoolCore& core = *core_;
  if (core.is_lost.load(std::memory_order_relaxed)) {
    return Error(ErrorCode::DeviceLost, "The CPU's threads are lost: a program did not come back.",
                 "PoolLost");
  }
  const int64_t used = std::min<int64_t>(threads_, parts);
  const Share own = {task, context, 0, std::max<int64_t>(used, 1), parts};
  for (int64_t t = 1; t < used; ++t) {
    Slot& slot = core.slots[static_cast<size_t>(t - 1)];
    slot.share = own;
    slot.share.first = t;
    slot.phase.store(kPosted);
    if (slot.worker_sleeps.load() != 0) futex_wake(slot.phase);
  }
  run_share(own);
  for (int64_t t = 1; t < used; ++t) {
    Slot& slot = core.slots[static_cast<size_t>(t - 1)];
    uint32_t phase = kPosted;
    if (slot.phase.compare_exchange_strong(phase, kIdle)) run_share(slot.share);
  }
  for (int64_t t = 1; t < used; ++t) {
    if (core.wait_until_idle(core.slots[static_cast<size_t>(t - 1)], deadline)) continue;
    core.is_lost.store(true);
    return Error(ErrorCode::Timeout,
                 "Part " + std::to_string(t) + " of " + std::to_string(parts) +
                     " did not come back by the deadline; the CPU's threads are lost.",
                 "PoolLost");
  }
  return {};
}

}  // namespace ignis::cpu
