#pragma once

#include "ignis/base/result.h"
#include "ignis/runtime/clock.h"
#include "ignis/runtime/queued_device.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

namespace ignis::exec {

/// A part of a block of memory.
struct Placement {
  runtime::MemoryRef memory;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
};

/// Says when memory that a run uses may be used again.
class CompletionToken {
 public:
  virtual ~CompletionToken() = default;
  /// Whether nothing can touch the memory any more. Called from any thread; once true it stays true.
  virtual bool is_complete() const = 0;
  /// Whether nobody can say if it ever will be: a thread hangs.
  virtual bool is_stuck() const { return false; }
};

/// Memory for links that live for one run (queue spec 9): slots follow each other in one block and come around. A slot is
/// given again only when the token of its last user is complete.
class RunTimeRing {
 public:
  static constexpr uint64_t kSlotAlignment = 256;

  RunTimeRing(std::string name, runtime::MemoryRef block, runtime::Clock& clock)
      : name_(std::move(name)), block_(std::move(block)), clock_(clock) {}

  /// `size_bytes` bytes, zeroed by nobody. Waits within `limits` for slots that are in use.
  /// Errors: OutOfMemory with the reason RingTooSmall (no wait helps) or RingExhausted (at the deadline).
  Result<Placement> reserve(uint64_t size_bytes,
                            const std::shared_ptr<const CompletionToken>& token,
                            const runtime::WaitLimits& limits);

  const runtime::MemoryRef& block() const { return block_; }

 private:
  struct Slot {
    uint64_t begin_bytes, end_bytes;
    std::shared_ptr<const CompletionToken> token;
  };
  bool try_reserve(uint64_t size_bytes, const std::shared_ptr<const CompletionToken>& token,
                   uint64_t* offset_bytes);

  std::string name_;
  runtime::MemoryRef block_;
  runtime::Clock& clock_;
  std::mutex mutex_;
  uint64_t next_bytes_ = 0;
  std::deque<Slot> slots_;  ///< oldest first
};

}  // namespace ignis::exec
