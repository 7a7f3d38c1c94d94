#pragma once

#include "ignis/pipeline/frames/frame.h"
#include "ignis/pipeline/frames/frame_pool.h"

#include <cstdint>
#include <string>

namespace ignis::examples {

/// A made-up road camera: sky, road, and lane marks that come nearer. Frames are made when asked for, without pacing.
class RoadScene : public pipeline::FrameSource {
 public:
  /// `late_ns`: how far its frames start after the other camera's.
  RoadScene(std::string name, const pipeline::FrameLayout& layout, uint32_t stream_id,
            uint64_t late_ns)
      : name_(std::move(name)), layout_(layout), stream_id_(stream_id), late_ns_(late_ns) {}

  Result<pipeline::Frame> receive(std::chrono::nanoseconds timeout) override;
  std::string describe() const override { return name_; }
  /// What a camera would have shown meanwhile and nobody fetched.
  void skip(uint32_t frames) { next_id_ += frames; }

 private:
  std::string name_;
  pipeline::FrameLayout layout_;
  uint32_t stream_id_;
  uint64_t late_ns_;
  uint32_t next_id_ = 0;
  pipeline::FramePool pool_{4};
};

}  // namespace ignis::examples
