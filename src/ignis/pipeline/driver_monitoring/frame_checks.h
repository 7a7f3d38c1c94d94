#pragma once

#include "ignis/pipeline/frames/frame.h"
#include "ignis/pipeline/messages/driver_state.h"

#include <cstdint>

namespace ignis::pipeline {

/// What a frame's metadata says about it, held against the frame before.
class FrameChecks {
 public:
  struct Outcome {
    Reasons reasons;  ///< FrameInvalidFlag, FrameIdGap, FrameIdBackwards, FrameRepeated, ClockJump
    uint32_t dropped = 0;  ///< frames missing between the last one and this
  };
  /// Checks one frame and remembers it. Ids are compared modulo 2^32. A producer that was started anew (another server
  /// id) counts from anywhere; its clock is still this machine's and may not go back.
  Outcome check(const FrameInfo& info, uint64_t now_ns);

 private:
  bool has_last_ = false;
  uint32_t last_id_ = 0;
  uint64_t last_server_id_ = 0;
  bool has_last_sof_ = false;
  uint64_t last_sof_ns_ = 0;
};

/// True when the luma plane that the layout tells lies inside the frame's bytes: it may be read.
bool holds_its_layout(const Frame& frame);

}  // namespace ignis::pipeline
