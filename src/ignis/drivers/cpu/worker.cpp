#include "ignis/drivers/cpu/worker.h"

#include "ignis/base/log.h"
#include "ignis/drivers/cpu/denormals.h"
#include "ignis/drivers/cpu/memory.h"
#include "ignis/drivers/cpu/parts.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace ignis::cpu {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

namespace {

struct Call {
  Entry entry;
  void* const* buffers;
};

void call_part(void* context, int64_t part, int64_t parts) {
  const auto* call = static_cast<const Call*>(context);
  call->entry(call->buffers, part, parts);
}

template <typename T>
T* pointer(uint64_t address) {
  return reinterpret_cast<T*>(static_cast<uintptr_t>(address));  // a host address out of the words
}

bool is_well_formed(const EntryHeader& header, uint64_t left_words) {
  if (header.words > left_words) return false;
  switch (header.opcode) {
    case Opcode::Begin:
    case Opcode::Timestamp: return header.words == 2;
    case Opcode::Exec:
      return header.arguments <= kMostInline && header.words == kExecWords + header.arguments;
    case Opcode::ExecTable: return header.words == kExecWords + 1;
    case Opcode::Copy: return header.words == 4;
    case Opcode::Wait:
    case Opcode::Store:
    case Opcode::Finish: return header.words == 3;
  }
  return false;
}

std::atomic<uint32_t> forks{0};  // that led to this process

}  // namespace

uint32_t Worker::count_forks() { return forks.load(std::memory_order_relaxed); }

Worker::Worker(PoolSource pool_source, nanoseconds spin, std::shared_ptr<QueueEvents> events,
               runtime::MemoryRef timeline_memory)
    : pool_source_(std::move(pool_source)),
      spin_(spin),
      events_(std::move(events)),
      timeline_memory_(std::move(timeline_memory)),
      ring_(reinterpret_cast<uint64_t*>(map_bytes(kRingWords * sizeof(uint64_t)))) {}

Worker::~Worker() {
  if (ring_ != nullptr) {
    unmap_bytes(reinterpret_cast<std::byte*>(ring_), kRingWords * sizeof(uint64_t));
  }
}

Status Worker::start(const std::shared_ptr<Worker>& self) {
  if (self->ring_ == nullptr) {
    return Error(ErrorCode::OutOfMemory, "The host has no room for the ring of its worker.");
  }
  if (self->pool_ == nullptr) {
    IGNIS_TRY_ASSIGN(self->pool_, self->pool_source_());
  }
  static const int known = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  (void)known;
  self->forks_ = count_forks();
  auto held = std::make_unique<std::shared_ptr<Worker>>(self);
  // Signals belong to the application's threads.
  sigset_t all, former;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &former);
  pthread_t thread;
  self->is_started_.store(true);
  const int error = pthread_create(&thread, nullptr, thread_main, held.get());
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  if (error != 0) {
    self->is_started_.store(false);
    return Error(ErrorCode::OutOfMemory, "The host's worker thread cannot be started (error " +
                                             std::to_string(error) + ").");
  }
  held.release();  // the thread owns it now
  pthread_setname_np(thread, "ignis-cpu");
  pthread_detach(thread);  // it may never end
  return {};
}

void* Worker::thread_main(void* argument) {
  const std::unique_ptr<std::shared_ptr<Worker>> self(
      static_cast<std::shared_ptr<Worker>*>(argument));
  {
    const FlushDenormals flush;
    (*self)->work();
  }
  (*self)->lease_.reset();
  std::shared_ptr<Pool> pool;  // may be the last owner, who waits for the pool's threads
  {
    const std::lock_guard lock((*self)->pool_mutex_);
    pool.swap((*self)->pool_);
  }
  pool.reset();
  (*self)->has_ended_.store(true);
  (*self)->ended_.add();
  return nullptr;
}

void Worker::wake() { submitted_.add(); }

void Worker::submit(std::span<const std::byte> words) {
  const uint64_t count = words.size() / sizeof(uint64_t);
  const uint64_t at = write_.load(std::memory_order_relaxed);
  if (at == read_.load(std::memory_order_acquire)) origin_ = at;
  const uint64_t place = (at - origin_) % kRingWords;
  const uint64_t until_end = std::min(count, kRingWords - place);
  std::memcpy(ring_ + place, words.data(), until_end * sizeof(uint64_t));
  if (count > until_end) {
    std::memcpy(ring_, words.data() + until_end * sizeof(uint64_t),
                (count - until_end) * sizeof(uint64_t));
  }
  write_.store(at + count);
  wake();
}

void Worker::cut_off() {
  {
    const std::lock_guard lock(stores_);
    is_cut_off_.store(true);
  }
  if (is_in_pool_.load()) {  // a part may never come back: nobody else is given these threads
    const std::lock_guard lock(pool_mutex_);
    if (pool_ != nullptr) pool_->lose();
  }
  wake();
}

void Worker::stop(nanoseconds timeout) {
  is_cut_off_.store(true);
  wake();
  const Clock::time_point end = Clock::now() + timeout;
  for (;;) {
    const uint32_t count = ended_.count();
    if (has_ended()) return;
    const auto left = std::chrono::duration_cast<nanoseconds>(end - Clock::now()).count();
    if (left <= 0) return;
    ended_.sleep_while(count, left);
  }
}

/// Whether there are words. Spins for a while, in which the pool's threads stay awake too, and then sleeps.
bool Worker::wait_for_words() {
  const uint64_t at = read_.load(std::memory_order_relaxed);
  Clock::time_point spin_end;  // read late: a submit that is there costs no look at the clock
  for (int turn = 0;; ++turn) {
    if (ends()) return false;
    if (write_.load(std::memory_order_acquire) != at) return true;
    if (spin_.count() > 0) {
      if (turn == 0) spin_end = Clock::now() + spin_;
      if (turn % 32 != 31 || Clock::now() < spin_end) {
        pause_cpu();
        continue;
      }
    }
    lease_.reset();
    const uint32_t count = submitted_.count();
    if (write_.load() == at && !ends()) {
      submitted_.sleep_while(count, nanoseconds(std::chrono::hours(1)).count());
    }
    turn = -1;
  }
}

void Worker::work() {
  while (wait_for_words()) {
    const uint64_t end = write_.load(std::memory_order_acquire);
    for (uint64_t at = read_.load(std::memory_order_relaxed); at != end;) {
      if (ends()) return;
      const EntryHeader header = unpack_header(ring_[(at - origin_) % kRingWords]);
      if (!is_well_formed(header, end - at)) {
        IGNIS_LOG(Error, "cpu") << "The worker ends: there is no entry at word " << at << ".";
        return;
      }
      const uint64_t* const entry = contiguous(at, header.words);
      if (header.opcode == Opcode::Finish) {
        // Whoever sees the timeline finds the ring as empty as it is: the words are free before the store.
        const uint64_t address = entry[1], value = entry[2];
        at += header.words;
        read_.store(at, std::memory_order_release);
        if (store(address, value, true) == Next::End) return;
        continue;
      }
      if (run_entry(entry, header) == Next::End) return;
      executed_.store(executed_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      at += header.words;
      read_.store(at, std::memory_order_release);
    }
  }
}

const uint64_t* Worker::contiguous(uint64_t at, uint32_t words) {
  const uint64_t place = (at - origin_) % kRingWords;
  if (place + words <= kRingWords) return ring_ + place;
  const uint64_t until_end = kRingWords - place;
  std::copy_n(ring_ + place, until_end, straddling_);
  std::copy_n(ring_, words - until_end, straddling_ + until_end);
  return straddling_;
}

Worker::Next Worker::run_entry(const uint64_t* entry, const EntryHeader& header) {
  switch (header.opcode) {
    case Opcode::Begin:
      is_short_ = is_short_run(entry[1]);
      if (is_short_) lease_.reset();
      return Next::GoOn;
    case Opcode::Exec:
    case Opcode::ExecTable: {
      const void* table =
          header.opcode == Opcode::Exec ? entry + kExecWords : pointer<void>(entry[kExecWords]);
      run_program(reinterpret_cast<Entry>(static_cast<uintptr_t>(entry[1])),
                  static_cast<void* const*>(table), entry[2], entry[3]);
      return Next::GoOn;
    }
    case Opcode::Copy:
      if (entry[3] > 0) std::memmove(pointer<void>(entry[1]), pointer<void>(entry[2]), entry[3]);
      return Next::GoOn;
    case Opcode::Wait: return wait_for_word(*pointer<std::atomic<uint64_t>>(entry[1]), entry[2]);
    case Opcode::Store: return store(entry[1], entry[2], false);
    case Opcode::Finish: break;  // work() does it
    case Opcode::Timestamp: {
      const nanoseconds now = Clock::now().time_since_epoch();
      return store(entry[1] + sizeof(uint64_t), static_cast<uint64_t>(now.count()), false);
    }
  }
  return Next::End;
}

void Worker::run_program(Entry program, void* const* buffers, uint64_t max_parts,
                         uint64_t work_ns) {
  Call call{program, buffers};
  const int threads = is_short_ ? 1 : pool_->threads();
  const int64_t parts = choose_parts(static_cast<int64_t>(std::min<uint64_t>(max_parts, INT32_MAX)),
                                     work_ns, threads);
  if (parts > 1 && !lease_) {
    if (pool_->is_lost()) {  // somebody else hung on these threads
      if (Result<std::shared_ptr<Pool>> pool = pool_source_()) {
        const std::lock_guard lock(pool_mutex_);
        pool_ = *std::move(pool);
      }
    }
    Result<Pool::Lease> lease = pool_->begin();
    if (lease) lease_.emplace(*std::move(lease));
  }
  if (parts > 1 && lease_) {
    events_->is_wide.store(true, std::memory_order_relaxed);
    // Without a deadline: who waits for the batch has one, and cuts this thread off.
    is_in_pool_.store(true);
    const Status status = lease_->run(call_part, &call, parts, Clock::time_point::max());
    is_in_pool_.store(false);
    if (status) return;
    lease_.reset();
  }
  for (int64_t part = 0; part < parts; ++part) program(buffers, part, parts);
}

/// Of another device's word. It has no limit of its own: who waits for the batch has.
Worker::Next Worker::wait_for_word(const std::atomic<uint64_t>& word, uint64_t value) {
  constexpr timespec kNap = {0, 20'000};
  for (int turn = 0; word.load(std::memory_order_acquire) < value; ++turn) {
    if (ends()) return Next::End;
    if (turn < 1000) {
      pause_cpu();
    } else {
      nanosleep(&kNap, nullptr);
    }
  }
  return Next::GoOn;
}

Worker::Next Worker::store(uint64_t address, uint64_t value, bool ends_batch) {
  {
    const std::lock_guard lock(stores_);
    if (is_cut_off_.load(std::memory_order_relaxed)) return Next::End;
    pointer<std::atomic<uint64_t>>(address)->store(value);
  }
  if (ends_batch) {
    events_->is_wide.store(false, std::memory_order_relaxed);
    events_->changed.add();
  }
  return Next::GoOn;
}

}  // namespace ignis::cpu
