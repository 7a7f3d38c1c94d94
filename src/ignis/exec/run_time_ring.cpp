#include "ignis/exec/run_time_ring.h"

#include "ignis/base/math.h"

#include <algorithm>
#include <utility>

namespace ignis::exec {
namespace {

constexpr int64_t kPollNs = 50'000;

}  // namespace

Result<Placement> RunTimeRing::reserve(uint64_t size_bytes,
                                       const std::shared_ptr<const CompletionToken>& token,
                                       const runtime::WaitLimits& limits) {
  if (size_bytes > block_->size_bytes()) {
    return Error(ErrorCode::OutOfMemory,
                 "A link needs " + std::to_string(size_bytes) + " bytes of the run-time ring of '" +
                     name_ + "', which has " + std::to_string(block_->size_bytes()) + " bytes.",
                 "RingTooSmall");
  }
  const int64_t begin_ns = clock_.now_ns();
  for (;;) {
    Placement placed;
    if (try_reserve(size_bytes, token, &placed.offset_bytes)) {
      placed.memory = block_;
      placed.size_bytes = size_bytes;
      return placed;
    }
    const int64_t now_ns = clock_.now_ns();
    const int64_t waited_ns = now_ns - begin_ns;
    if (waited_ns >= limits.deadline_ns) {
      return Error(ErrorCode::OutOfMemory,
                   "The run-time ring of '" + name_ + "' has no " + std::to_string(size_bytes) +
                       " free bytes of " + std::to_string(block_->size_bytes()) + " after " +
                       std::to_string(waited_ns / 1'000'000) +
                       " ms: runs that use it are under way.",
                   "RingExhausted");
    }
    clock_.sleep_until(now_ns + std::min(kPollNs, limits.deadline_ns - waited_ns));
  }
}

bool RunTimeRing::try_reserve(uint64_t size_bytes,
                              const std::shared_ptr<const CompletionToken>& token,
                              uint64_t* offset_bytes) {
  const std::lock_guard lock(mutex_);
  while (!slots_.empty() && slots_.front().token->is_complete()) slots_.pop_front();
  uint64_t begin = align_up(next_bytes_, kSlotAlignment);
  // A slot does not go around the end.
  if (!is_range_inside(begin, size_bytes, block_->size_bytes())) begin = 0;
  const uint64_t end = begin + size_bytes;
  const auto meets = [&](const Slot& slot) {
    return slot.begin_bytes < end && begin < slot.end_bytes;
  };
  for (const Slot& slot : slots_) {
    if (meets(slot) && !slot.token->is_complete()) return false;
  }
  std::erase_if(slots_, meets);
  slots_.push_back({begin, end, token});
  next_bytes_ = end;
  *offset_bytes = begin;
  return true;
}

}  // namespace ignis::exec
