#include "tools/ignis/dm/reason_text.h"

namespace ignis::tools {

std::string_view explain(pipeline::Reason reason) {
  using pipeline::Reason;
  switch (reason) {
    case Reason::FrameTimeout: return "No frame comes any more: the camera or its process stopped.";
    case Reason::FrameStale:
      return "The frame is too old to act on; the machine or the source lags.";
    case Reason::FrameOverwritten: return "The producer wrote into the frame while it was in use.";
    case Reason::FrameInvalidFlag: return "The producer itself marks this frame as not valid.";
    case Reason::UnknownGeometry:
      return "No known camera has this picture size; state its lens with --intrinsics.";
    case Reason::LayoutChanged: return "The picture's size or layout just changed.";
    case Reason::CalibMissing: return "No calibration was ever heard; zero angles are used.";
    case Reason::CalibStale: return "The last good calibration is too old.";
    case Reason::CalibShape:
      return "A calibration does not hold three angles; the last good one stays.";
    case Reason::OutputSize:
      return "The model gave another number of values than its profile says.";
    case Reason::SliceOutOfRange: return "The model's table names values beyond its output.";
    case Reason::NonFinite: return "The model gave NaN or infinity for a value that is used.";
    case Reason::RangeViolation: return "A probability or a deviation is outside of its range.";
    case Reason::RunFailed: return "The model's run failed; it is tried again a few times.";
    case Reason::RunTimeout: return "The model did not answer in time.";
    case Reason::ModelUnavailable: return "There is no usable model.";
    case Reason::ArtifactMismatch: return "The model file was made for another device or version.";
    case Reason::FrameIdGap: return "Frames between this and the last one are missing.";
    case Reason::FrameIdBackwards: return "The frame's number is lower than the last one's.";
    case Reason::LowConfidence: return "The face is uncertain, or its position or pose is.";
    case Reason::FrameRepeated: return "The same frame came twice.";
    case Reason::ClockJump: return "The frame's time went back, or lies in the future.";
    case Reason::DegenerateOutput:
      return "All values that are used are equal: the model is not working.";
    case Reason::SliceWidth: return "A slice of the model's table has the wrong width.";
    case Reason::SliceOverlap: return "Two slices of the model's table overlap.";
    case Reason::ViewSuspect: return "The view is blocked, dark or points somewhere else.";
  }
  return "";
}

std::string list_reasons(pipeline::Reasons reasons) {
  std::string text;
  for (int i = 0; i < pipeline::kReasonCount; ++i) {
    const auto reason = static_cast<pipeline::Reason>(i);
    if (!reasons.has(reason)) continue;
    text += (text.empty() ? "" : ", ") + std::string(pipeline::to_string(reason));
  }
  return text.empty() ? "none" : text;
}

}  // namespace ignis::tools
