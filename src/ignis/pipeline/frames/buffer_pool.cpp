#include "ignis/pipeline/frames/buffer_pool.h"

#include "ignis/base/check.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ignis::pipeline {
namespace {
constexpr size_t kPageBytes = 4096;
/// Room for a lease with the shared_ptr's counters.
constexpr size_t kControlBytes = 128;
}  // namespace

struct BufferPool::Slot {
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte[], Free> bytes;
  std::atomic<bool> is_taken{false};
  alignas(std::max_align_t) std::byte control[kControlBytes];
};

/// Puts the shared_ptr's counters into the slot. They go last of all, when no weak owner is left either, so that is the
/// moment when the slot is free again.
template <typename T>
struct BufferPool::SlotAllocator {
  using value_type = T;

  SlotAllocator(std::shared_ptr<BufferPool> the_pool, Slot* the_slot)
      : pool(std::move(the_pool)), slot(the_slot) {}
  template <typename U>
  SlotAllocator(const SlotAllocator<U>& other)  // NOLINT: allocators convert
      : pool(other.pool), slot(other.slot) {}

  T* allocate(size_t count) {
    static_assert(sizeof(T) <= kControlBytes && alignof(T) <= alignof(std::max_align_t));
    IGNIS_CHECK(count == 1);
    return reinterpret_cast<T*>(slot->control);
  }
  void deallocate(T*, size_t) { slot->is_taken.store(false, std::memory_order_release); }
  template <typename U>
  bool operator==(const SlotAllocator<U>& other) const {
    return slot == other.slot;
  }

  std::shared_ptr<BufferPool> pool;  ///< keeps the buffers as long as a frame lives
  Slot* slot;
};

/// All there is to say of a buffer of this process: nobody writes into it while a frame has it.
class BufferPool::Lease : public FrameMemory {};

std::shared_ptr<BufferPool> BufferPool::create(int64_t size_bytes, uint32_t limit) {
  IGNIS_CHECK(size_bytes > 0 && limit > 0);
  return std::shared_ptr<BufferPool>(new BufferPool(size_bytes, limit));
}

BufferPool::BufferPool(int64_t size_bytes, uint32_t limit)
    : size_bytes_(size_bytes), limit_(limit), last_(limit), slots_(new Slot[limit]) {}

BufferPool::~BufferPool() = default;

BufferPool::Buffer BufferPool::try_take(uint32_t index) {
  Slot& slot = slots_[index];
  if (slot.is_taken.load(std::memory_order_acquire)) return {};
  if (slot.bytes == nullptr) {
    const size_t rounded =
        (static_cast<size_t>(size_bytes_) + kPageBytes - 1) / kPageBytes * kPageBytes;
    slot.bytes.reset(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, rounded)));
    if (slot.bytes == nullptr) return {};
    std::memset(slot.bytes.get(), 0, rounded);
  }
  slot.is_taken.store(true, std::memory_order_relaxed);
  Buffer buffer;
  buffer.memory = std::allocate_shared<Lease>(SlotAllocator<Lease>(shared_from_this(), &slot));
  buffer.bytes = {slot.bytes.get(), static_cast<size_t>(size_bytes_)};
  buffer.index = index;
  return buffer;
}

BufferPool::Buffer BufferPool::take() {
  // From the lowest, so that no more buffers come into use than are needed at one time; but if possible not the one that
  // was just handed out, so that whoever kept a bare pointer into the last frame does not read the next one's rows.
  for (uint32_t index = 0; index < limit_; ++index) {
    if (index == last_) continue;
    Buffer buffer = try_take(index);
    if (buffer.memory == nullptr) continue;
    last_ = index;
    return buffer;
  }
  return last_ < limit_ ? try_take(last_) : Buffer{};
}

}  // namespace ignis::pipeline
