#include "ignis/pipeline/driver_monitoring/frame_checks.h"

#include "ignis/base/math.h"

namespace ignis::pipeline {

FrameChecks::Outcome FrameChecks::check(const FrameInfo& info, uint64_t now_ns) {
  Outcome outcome;
  if (!info.valid) outcome.reasons |= Reason::FrameInvalidFlag;

  if (has_last_ && info.server_id == last_server_id_) {
    // The difference as a signed number: a counter that wraps goes on, it does not go back.
    const int32_t step = static_cast<int32_t>(info.frame_id - last_id_);
    if (step == 0) {
      outcome.reasons |= Reason::FrameRepeated;
    } else if (step < 0) {
      outcome.reasons |= Reason::FrameIdBackwards;
    } else if (step > 1) {
      outcome.reasons |= Reason::FrameIdGap;
      outcome.dropped = static_cast<uint32_t>(step) - 1;
    }
  }
  // Each frame is the measure of the next, also a bad one: a counter that starts again is one bad frame, not thousands.
  has_last_ = true;
  last_id_ = info.frame_id;
  last_server_id_ = info.server_id;

  const bool is_ahead = info.timestamp_sof_ns > now_ns;
  const bool is_back = has_last_sof_ && info.timestamp_sof_ns < last_sof_ns_;
  if (is_ahead || is_back) outcome.reasons |= Reason::ClockJump;
  // A time from the future or of a frame that its producer disowns would make every good frame after it go back.
  if (!is_ahead && info.valid) {
    has_last_sof_ = true;
    last_sof_ns_ = info.timestamp_sof_ns;
  }
  return outcome;
}

bool holds_its_layout(const Frame& frame) {
  const FrameLayout& layout = frame.layout;
  if (layout.width_px <= 0 || layout.height_px <= 0 || layout.y_stride < layout.width_px)
    return false;
  if (layout.size_bytes <= 0 || static_cast<uint64_t>(layout.size_bytes) > frame.bytes.size())
    return false;
  const auto luma_bytes = checked_mul<int64_t>(layout.y_stride, layout.height_px);
  return luma_bytes && *luma_bytes <= layout.size_bytes;
}

}  // namespace ignis::pipeline
