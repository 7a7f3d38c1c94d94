#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::pipeline {

/// What is kept of one frame of a raw file.
struct RawFrameRecord {
  uint32_t id = 0;
  uint64_t sof_ns = 0, eof_ns = 0;  ///< of the clock of the machine that recorded; 0: not known
  bool valid = true;
  bool operator==(const RawFrameRecord&) const = default;
};

/// The file `F.json` beside a file `F` of raw frames: one JSON object. Only format, width and height must be there:
///
///     {"format": "nv12",        "i420" or "yuv420p" too
///      "width": 1928, "height": 1208,
///      "padding": "none",       or "ring": the strides and planes of nv12_layout
///      "y_stride": …, "uv_stride": …, "u_offset": …, "v_offset": …, "frame_bytes": …,   each overrides `padding`
///      "range": "limited",      or "full"
///      "sensor_id": 0, "stream_id": 1, "fps": 20,
///      "frames": [[id, sof_ns, eof_ns, valid], …]}   valid is 0 or 1; frames not listed count on from the last
struct RawIndex {
  FrameLayout layout;
  double fps = 20;  ///< in 0.1 to 1000
  uint32_t stream_id = 1;
  std::vector<RawFrameRecord> frames;
  bool operator==(const RawIndex&) const = default;
};

/// Reads an index. Unknown keys are ignored. Errors: InvalidArgument, reason "FrameIndex", naming the key.
Result<RawIndex> parse_raw_index(std::string_view json);
/// The text that parse_raw_index reads; every key is there.
std::string to_json(const RawIndex& index);

}  // namespace ignis::pipeline
