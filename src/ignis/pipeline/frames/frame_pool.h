#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace ignis::pipeline {

class BufferPool;

/// A frame that its maker still fills. `frame.bytes` shows the same memory.
struct WritableFrame {
  Frame frame;
  std::span<std::byte> bytes;
};

/// Frames that a source of this process fills: a BufferPool that follows the layout. Used from one thread; its frames
/// may be dropped on any.
class FramePool {
 public:
  /// \param max_buffers  frames that may be held at once, > 0.
  explicit FramePool(uint32_t max_buffers = 16);

  /// A buffer of layout.size_bytes. Fills in layout, bytes, memory, and of `info`: buffer_index, generation (a new one
  /// whenever the layout differs from the last call's) and server_id. The bytes are what the buffer last held; zeros
  /// at first.
  /// Errors: check_layout's; OutOfMemory, reason "FramesHeld", when `max_buffers` frames are in use.
  Result<WritableFrame> acquire(const FrameLayout& layout);
  /// The next frame begins a new generation, whatever its layout; the producer was started anew.
  void renew();

 private:
  uint32_t max_buffers_;
  uint64_t server_id_;
  uint64_t generation_ = 0;
  FrameLayout layout_;
  std::shared_ptr<BufferPool> buffers_;  ///< of the current layout; held frames keep theirs
};

}  // namespace ignis::pipeline
