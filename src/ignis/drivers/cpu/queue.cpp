#include "ignis/drivers/cpu/queue.h"

#include "ignis/base/log.h"
#include "ignis/drivers/cpu/memory.h"
#include "ignis/drivers/cpu/queue_encode.h"
#include "ignis/runtime/reasons.h"

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

namespace ignis::cpu {

using runtime::MemoryRef;
using runtime::QueueId;

namespace {

constexpr uint64_t kRingBytes = kRingWords * sizeof(uint64_t);

/// A loaded program. Nobody writes to it.
class ProgramMemory final : public runtime::Memory {
 public:
  explicit ProgramMemory(LoadedObject object) : object_(std::move(object)) {}
  const std::string& owner() const override {
    static const std::string name = "CPU";
    return name;
  }
  uint64_t size_bytes() const override { return object_.image().size(); }
  std::byte* host() const override {  // of the entry, which need not be the first byte
    return reinterpret_cast<std::byte*>(object_.entry());
  }

 private:
  LoadedObject object_;
};

bool is_ours(QueueId queue) { return queue == QueueId{}; }

}  // namespace

// A waiter on a second core looks long enough for a small model's whole run; it does not take a core from a run that has
// work for all of them.
int CpuQueue::QueueClock::spins() const {
  return events_.is_wide.load(std::memory_order_relaxed) ? 0 : 400;
}
// Waking a thread takes tens of microseconds: an eighth of a run of 200.
int64_t CpuQueue::QueueClock::spin_ns() const {
  return events_.is_wide.load(std::memory_order_relaxed) ? 0 : spin_ns_;
}

CpuQueue::CpuQueue(PoolSource pool_source, std::chrono::nanoseconds spin)
    : pool_source_(std::move(pool_source)),
      spin_(spin),
      clock_(*events_, 4 * std::min<int64_t>(spin.count(), 1'000'000'000)) {
  capabilities_.has_unified_memory = true;
  capabilities_.can_recover = true;
  timeline_.memory = make_memory(sizeof(uint64_t)).value();  // the smallest there is
  timeline_.reached = new (timeline_.memory->host()) std::atomic<uint64_t>(0);
  worker_ = std::make_shared<Worker>(pool_source_, spin_, events_, timeline_.memory);
}

CpuQueue::~CpuQueue() {
  constexpr std::chrono::seconds kLongest(10);
  worker_->stop(kLongest);
  if (!worker_->has_ended()) {
    IGNIS_LOG(Warning, "cpu") << "A program does not come back: the CPU's worker is left alone.";
  }
}

std::shared_ptr<Worker> CpuQueue::worker() const {
  const std::lock_guard lock(workers_mutex_);
  return worker_;
}

bool CpuQueue::try_lock_submission(int64_t deadline_ns) {
  // No timed mutex: thread sanitizers do not know it, and a submit takes less than a microsecond.
  constexpr int kYields = 50;
  constexpr int64_t kSleepNs = 20'000;
  for (int yields = 0; !submission_.try_lock();) {
    if (yields < kYields) {
      ++yields;
      std::this_thread::yield();
      continue;
    }
    const int64_t now_ns = clock_.now_ns();
    if (now_ns >= deadline_ns) return false;
    clock_.sleep_until(std::min(runtime::add_ns(now_ns, kSleepNs), deadline_ns));
  }
  return true;
}

Result<MemoryRef> CpuQueue::allocate(uint64_t size_bytes, runtime::Purpose /*purpose*/) {
  return make_memory(size_bytes);
}

Result<uint64_t> CpuQueue::map(const MemoryRef& memory) {
  if (memory->host() == nullptr) {
    return Error(ErrorCode::Unsupported,
                 "Memory of '" + memory->owner() + "' is not within the host's reach.",
                 std::string(runtime::reason::kNotMappable));
  }
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(memory->host()));
}

/// Host memory survives; what an old worker is still at may change.
bool CpuQueue::is_whole(const runtime::Memory& memory) const {
  if (memory.owner() != name_) return false;
  const std::lock_guard lock(workers_mutex_);
  return std::all_of(old_workers_.begin(), old_workers_.end(),
                     [](const auto& old) { return old.second->has_ended(); });
}

bool CpuQueue::is_quiet(uint64_t of_generation) const {
  const std::lock_guard lock(workers_mutex_);
  if (of_generation == life_.generation()) return worker_->has_ended();
  return std::none_of(old_workers_.begin(), old_workers_.end(), [&](const auto& old) {
    return old.first == of_generation && !old.second->has_ended();
  });
}

Result<MemoryRef> CpuQueue::load_image(const ProgramImage& image) {
  Result<LoadedObject> object = LoadedObject::load(image.object, image.name);
  if (!object) return std::move(object).error().with_context("program '" + image.name + "'");
  if (!object->is_executable()) {
    return Error(ErrorCode::Unsupported,
                 "Program '" + image.name + "' is for another architecture than this machine's.");
  }
  return MemoryRef(std::make_shared<ProgramMemory>(*std::move(object)));
}

Status CpuQueue::encode(const runtime::Command& command, const Encoding& encoding,
                        runtime::EncodedQueue& to) const {
  return encode_command(command, encoding, to);
}

uint64_t CpuQueue::free_bytes(QueueId queue) const {
  if (!is_ours(queue)) return 0;
  return worker()->free_words() * sizeof(uint64_t);
}

uint64_t CpuQueue::ring_bytes(QueueId queue) const { return is_ours(queue) ? kRingBytes : 0; }

Status CpuQueue::submit(QueueId queue, std::span<const std::byte> commands) {
  if (!is_ours(queue)) {
    return Error(ErrorCode::InvalidArgument, "The CPU has no queue " + queue.to_string() + ".");
  }
  if (!is_online()) return device_unavailable(name_, state());
  const std::shared_ptr<Worker> to = worker();
  if (to->was_left_behind()) {
    life_.lose("this process was forked, and its worker's thread is its parent's");
    return device_unavailable(name_, state());
  }
  const uint64_t free_bytes = to->free_words() * sizeof(uint64_t);
  if (commands.size() > free_bytes || commands.size() % sizeof(uint64_t) != 0) {
    const bool is_full = commands.size() <= kRingBytes && commands.size() % sizeof(uint64_t) == 0;
    return Error(
        is_full ? ErrorCode::OutOfMemory : ErrorCode::InvalidArgument,
        "The CPU's ring has room for " + std::to_string(free_bytes) + " of " +
            std::to_string(kRingBytes) + " bytes; the submit has " +
            std::to_string(commands.size()) + ".",
        std::string(is_full ? runtime::reason::kQueueFull : runtime::reason::kSubmitTooLarge));
  }
  if (!to->is_started()) IGNIS_TRY(Worker::start(to));
  to->submit(commands);
  return {};
}

std::string CpuQueue::report_hang(const std::string& what) {
  life_.stall(what);
  const std::shared_ptr<Worker> of = worker();
  std::string cause = what;
  if (of->is_started() && of->has_ended()) {
    cause += "; its worker's thread has ended";
  } else {
    cause += "; its worker has run " + std::to_string(of->executed()) + " entries and " +
             std::to_string(of->waiting_words()) + " words are left in the ring";
  }
  cause = life_.lose(std::move(cause));
  if (!is_online()) of->cut_off();
  events_->changed.add();
  return cause;
}

Status CpuQueue::reopen() {
  if (is_online()) return {};
  constexpr int64_t kLockNs = 1'000'000'000;
  if (!try_lock_submission(runtime::add_ns(clock_.now_ns(), kLockNs))) {
    return Error(ErrorCode::Timeout, "The CPU is busy with a submission.",
                 std::string(runtime::reason::kDeadlineExceeded));
  }
  const std::lock_guard submission(submission_, std::adopt_lock);
  const std::lock_guard lock(workers_mutex_);
  if (is_online()) return {};  // somebody else was faster
  worker_->cut_off();
  std::erase_if(old_workers_, [](const auto& old) { return old.second->has_ended(); });
  old_workers_.emplace_back(life_.generation(), std::move(worker_));
  worker_ = std::make_shared<Worker>(pool_source_, spin_, events_, timeline_.memory);
  events_->is_wide.store(false);
  timeline_.announced = 0;
  timeline_.reached->store(0);
  life_.reopen();
  return {};
}

void CpuQueue::kill_worker() { worker()->die(); }

}  // namespace ignis::cpu
