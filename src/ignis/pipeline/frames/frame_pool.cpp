#include "ignis/pipeline/frames/frame_pool.h"

#include "ignis/base/check.h"
#include "ignis/pipeline/frames/buffer_pool.h"
#include "ignis/pipeline/frames/layout.h"

#include <string>
#include <utility>

namespace ignis::pipeline {

FramePool::FramePool(uint32_t max_buffers)
    : max_buffers_(max_buffers), server_id_(next_generation()) {
  IGNIS_CHECK(max_buffers > 0);
}

Result<WritableFrame> FramePool::acquire(const FrameLayout& layout) {
  if (buffers_ == nullptr || !(layout == layout_)) {
    IGNIS_TRY(check_layout(layout, kMaxFrameBytes));
    layout_ = layout;
    buffers_ = BufferPool::create(layout.size_bytes, max_buffers_);
    generation_ = next_generation();
  }
  BufferPool::Buffer buffer = buffers_->take();
  if (buffer.memory == nullptr) {
    return Error(ErrorCode::OutOfMemory,
                 "All " + std::to_string(max_buffers_) +
                     " frames of this source are still held; drop one before asking for more.",
                 "FramesHeld");
  }
  WritableFrame result;
  result.bytes = buffer.bytes;
  result.frame.layout = layout;
  result.frame.bytes = result.bytes;
  result.frame.info.buffer_index = buffer.index;
  result.frame.info.generation = generation_;
  result.frame.info.server_id = server_id_;
  result.frame.memory = std::move(buffer.memory);
  return result;
}

void FramePool::renew() {
  buffers_.reset();
  server_id_ = next_generation();
}

}  // namespace ignis::pipeline
