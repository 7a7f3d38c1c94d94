#pragma once

#include "ignis/pipeline/frames/frame.h"
#include "ignis/pipeline/frames/layout.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ignis::pipeline {

/// Memory of a scripted frame. A test makes it "written over" while somebody holds it.
class ScriptedMemory final : public FrameMemory {
 public:
  explicit ScriptedMemory(std::vector<std::byte> the_bytes) : bytes(std::move(the_bytes)) {}
  bool is_intact() const override { return !is_overwritten.load(); }

  std::vector<std::byte> bytes;
  std::atomic<bool> is_overwritten{false};
};

/// A source that plays a list of frames and errors; for tests of faults. Only for tests.
///
///     ScriptedSource source(nv12_layout(1928, 1208).value());
///     source.add_frames(3);                          // ids 1, 2, 3; SOF 50 ms apart
///     source.add_silence();                          // the camera stops for one call
///     source.change_layout(nv12_layout(1344, 760).value());
///     source.add_frames(1);
///     source.repeat_last();                          // the same id and times again
///     source.jump_clock(-1'000'000'000);             // SOF goes back by 1 s from here on
///     source.add_overwritten();                      // is_intact() is false
///     source.add_error(Error(ErrorCode::DeviceLost, "The server is gone."));
///     source.restart();                              // another server id and generation, ids from 1
///
/// At the end of the script comes EndOfStream, or Timeout for ever after end_with_silence().
class ScriptedSource final : public FrameSource {
 public:
  /// Called with the bytes of each frame before it is played; fills in pixels.
  using Paint = std::function<void(const FrameLayout&, const FrameInfo&, std::byte*)>;

  explicit ScriptedSource(const FrameLayout& layout, uint64_t first_sof_ns = 1'000'000'000,
                          uint64_t period_ns = 50'000'000)
      : layout_(layout), next_sof_ns_(first_sof_ns), period_ns_(period_ns) {
    restart();
  }

  void set_paint(Paint paint) { paint_ = std::move(paint); }

  void add_frames(int count) {
    for (int i = 0; i < count; ++i) add_frame([](Frame&) {});
  }
  /// One frame, changed by `change` before it is stored; its bytes are memory of its own.
  void add_frame(const std::function<void(Frame&)>& change) {
    Frame frame;
    frame.layout = layout_;
    frame.info.frame_id = next_id_++;
    frame.info.server_id = server_id_;
    frame.info.generation = generation_;
    frame.info.buffer_index = frame.info.frame_id % 8;
    frame.info.timestamp_sof_ns = next_sof_ns_;
    frame.info.timestamp_eof_ns = next_sof_ns_ + 10'000'000;
    frame.info.receive_time_ns = next_sof_ns_ + 12'000'000;
    next_sof_ns_ += period_ns_;
    const auto memory = std::make_shared<ScriptedMemory>(
        std::vector<std::byte>(static_cast<size_t>(layout_.size_bytes)));
    if (paint_) paint_(frame.layout, frame.info, memory->bytes.data());
    frame.bytes = memory->bytes;
    frame.memory = memory;
    last_memory_ = memory;
    change(frame);
    last_frame_ = frame;
    steps_.push_back({std::move(frame), {}});
  }
  void repeat_last() { steps_.push_back({last_frame_, {}}); }
  /// A frame that the producer has already written into.
  void add_overwritten() {
    add_frame([](Frame&) {});
    last_memory_->is_overwritten = true;
  }
  /// The memory of the frame added last: set is_overwritten while it is being used.
  std::shared_ptr<ScriptedMemory> last_memory() const { return last_memory_; }
  void add_error(Error error) {
    steps_.push_back({Frame{}, std::make_shared<Error>(std::move(error))});
  }
  /// The camera gives nothing for `calls` calls of receive().
  void add_silence(int calls = 1) {
    for (int i = 0; i < calls; ++i)
      add_error(Error(ErrorCode::Timeout, "No frame came from the scripted source."));
  }
  /// What a source says of a frame that is shorter than its layout.
  void add_torn() {
    add_error(Error(ErrorCode::InvalidArgument,
                    "Frame " + std::to_string(next_id_++) + " has 1000 bytes; its layout needs " +
                        std::to_string(layout_.size_bytes) + ".",
                    "TornFrame"));
    next_sof_ns_ += period_ns_;
  }
  void skip_ids(uint32_t count) { next_id_ += count; }
  void jump_clock(int64_t by_ns) { next_sof_ns_ += static_cast<uint64_t>(by_ns); }
  void change_layout(const FrameLayout& layout) {
    layout_ = layout;
    generation_ = next_generation();
  }
  /// The producer starts anew: other server id and generation, ids from 1.
  void restart() {
    server_id_ = 0x1000 + next_generation();
    generation_ = next_generation();
    next_id_ = 1;
  }
  void end_with_silence() { ends_with_silence_ = true; }
  uint64_t next_sof_ns() const { return next_sof_ns_; }
  size_t steps_left() const { return steps_.size(); }

  Result<Frame> receive(std::chrono::nanoseconds) override {
    if (steps_.empty()) {
      if (ends_with_silence_) return Error(ErrorCode::Timeout, "The script is over.");
      return Error(ErrorCode::NotFound, "The script is over.", "EndOfStream");
    }
    Step step = std::move(steps_.front());
    steps_.pop_front();
    if (step.error != nullptr) return Error(*step.error);
    return std::move(step.frame);
  }
  uint64_t dropped_count() const override { return dropped; }
  std::string describe() const override { return "scripted source"; }

  uint64_t dropped = 0;  ///< what dropped_count() says

 private:
  struct Step {
    Frame frame;
    std::shared_ptr<Error> error;
  };

  FrameLayout layout_;
  uint64_t next_sof_ns_;
  uint64_t period_ns_;
  uint64_t server_id_ = 0;
  uint64_t generation_ = 0;
  uint32_t next_id_ = 1;
  bool ends_with_silence_ = false;
  Paint paint_;
  Frame last_frame_;
  std::shared_ptr<ScriptedMemory> last_memory_;
  std::deque<Step> steps_;
};

}  // namespace ignis::pipeline
