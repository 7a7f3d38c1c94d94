#pragma once

#include "ignis/base/result.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ignis::pipeline {

enum class PixelFormat : uint8_t { Nv12 = 1, I420 = 2 };
enum class ColorRange : uint8_t { Limited = 0, Full = 1 };  ///< of BT.601 luma and chroma

/// Where a frame's planes lie in its buffer. Offsets and strides in bytes, extents in pixels; width and height are even.
struct FrameLayout {
  PixelFormat format = PixelFormat::Nv12;
  ColorRange range = ColorRange::Limited;
  uint32_t sensor_id = 0;  ///< which sensor or camera profile the source says it is; 0: not stated
  int width_px = 0, height_px = 0;
  int64_t y_stride = 0;   ///< luma sample (x, y) is byte y * y_stride + x
  int64_t uv_stride = 0;  ///< of the interleaved plane (Nv12) or of each chroma plane (I420)
  int64_t u_offset = 0;   ///< Nv12: of the interleaved plane, U first
  int64_t v_offset = 0;   ///< I420: of the V plane; Nv12: u_offset + 1
  int64_t size_bytes = 0;

  bool operator==(const FrameLayout&) const = default;
};

/// What is known of one frame beside its pixels. Times are nanoseconds of CLOCK_MONOTONIC on this machine.
struct FrameInfo {
  uint32_t frame_id = 0;
  uint32_t stream_id = 1;         ///< 0 narrow road, 1 cabin, 2 wide road
  uint32_t buffer_index = 0;      ///< slot of a ring
  uint64_t server_id = 0;         ///< changes when the producer is started anew
  uint64_t generation = 0;        ///< of the mapping; rises on reconnect and layout change
  uint64_t timestamp_sof_ns = 0;  ///< start of exposure of the first row
  uint64_t timestamp_eof_ns = 0;
  uint64_t receive_time_ns = 0;  ///< when the source handed it over
  bool valid = true;             ///< the producer's own flag
};

/// The memory of one frame in use: while an owner lives, the bytes stay mapped and a ring's slot stays pinned.
class FrameMemory {
 public:
  virtual ~FrameMemory() = default;
  /// False once the producer has written into the bytes since they were handed over.
  virtual bool is_intact() const { return true; }
};

/// One frame: cheap to copy, keeps its memory.
struct Frame {
  FrameLayout layout;
  FrameInfo info;
  std::span<const std::byte> bytes;  ///< layout.size_bytes of them
  std::shared_ptr<const FrameMemory> memory;
};

/// Where frames come from: a ring of another process, a camera, a file, a synthetic scene. Used from one thread.
class FrameSource {
 public:
  virtual ~FrameSource() = default;
  /// The next frame, or an error within about `timeout`: Timeout when none came; NotFound with reason "EndOfStream" when
  /// none will come any more; DeviceLost when the producer is gone (a later call tries to connect again);
  /// InvalidArgument for a frame or record that cannot be right. An error never ends the source, except EndOfStream.
  virtual Result<Frame> receive(std::chrono::nanoseconds timeout) = 0;
  /// Frames that the producer made and this source did not hand over, since it was opened.
  virtual uint64_t dropped_count() const { return 0; }
  /// "ring:cabin", "clip.nv12 (1928x1208, 20 Hz)"; for people.
  virtual std::string describe() const = 0;
};

/// Nanoseconds of CLOCK_MONOTONIC.
uint64_t monotonic_ns();
/// A number that no mapping of this process has had: sources draw FrameInfo::generation here, so that a key made of
/// (server, stream, buffer, generation) never means two mappings, even of two sources.
uint64_t next_generation();

}  // namespace ignis::pipeline
