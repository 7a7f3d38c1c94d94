#pragma once

#include "ignis/pipeline/frames/frame.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace ignis::pipeline {

/// A fixed number of equal buffers that frames are made in. A buffer returns by itself when the last owner of its frame
/// lets go, from whichever thread. After the first use of each buffer nothing is allocated.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  /// `size_bytes` > 0 for each buffer, aligned to a page; `limit` > 0 of them at most, made when first needed.
  static std::shared_ptr<BufferPool> create(int64_t size_bytes, uint32_t limit);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  struct Buffer {
    std::shared_ptr<const FrameMemory> memory;  ///< null: all buffers are in use
    std::span<std::byte> bytes;                 ///< contents of an earlier frame, or zeros
    uint32_t index = 0;                         ///< the same index is the same address
  };
  /// From one thread at a time.
  Buffer take();

 private:
  struct Slot;
  class Lease;
  template <typename T>
  struct SlotAllocator;

  BufferPool(int64_t size_bytes, uint32_t limit);
  Buffer try_take(uint32_t index);

  int64_t size_bytes_;
  uint32_t limit_;
  uint32_t last_;  ///< the buffer handed out last; limit_: none yet
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace ignis::pipeline
