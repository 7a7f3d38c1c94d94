#include "ignis/pipeline/driver_monitoring/view_suspect.h"

#include "ignis/pipeline/driver_monitoring/validity.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace ignis::pipeline {
namespace {

/// How much better a level must be to end a fault than it was bad to begin it.
constexpr double kEaseShare = 0.02;
constexpr double kEaseFactor = 1.3;
constexpr uint64_t kLongestGapNs = 1'000'000'000;

/// The side a viewer would look at: the one with the surer face. Null when no side can tell a face's place.
const DriverData* surer_side(const Prediction& prediction) {
  const uint32_t needed = bit(DriverField::FaceProb) | bit(DriverField::FacePosition);
  const bool has_left = (prediction.known_left & needed) == needed;
  const bool has_right = (prediction.known_right & needed) == needed;
  if (has_left && (!has_right || prediction.left.face_prob >= prediction.right.face_prob))
    return &prediction.left;
  return has_right ? &prediction.right : nullptr;
}

}  // namespace

std::string_view to_string(ViewFault fault) {
  switch (fault) {
    case ViewFault::None: return "none";
    case ViewFault::Dark: return "dark";
    case ViewFault::Saturated: return "saturated";
    case ViewFault::Flat: return "flat";
    case ViewFault::Frozen: return "frozen";
    case ViewFault::FaceAtEdge: return "face at the edge";
    case ViewFault::NoFace: return "no face";
  }
  return "none";
}

void ViewMonitor::measure(const Frame& frame) {
  const FrameLayout& layout = frame.layout;
  const bool is_limited = layout.range == ColorRange::Limited;
  const double black = is_limited ? 16 : 0;
  const double span = is_limited ? 219 : 255;
  const double dark_below = black + 0.04 * span;
  const double saturated_from = black + 0.99 * span;

  const bool is_comparable = has_last_ && layout == last_layout_;
  int64_t sum = 0, sum_of_squares = 0, difference = 0;
  int dark = 0, saturated = 0;
  size_t sample = 0;
  for (int row = 0; row < kRows; ++row) {
    const int64_t y = (int64_t{2} * row + 1) * layout.height_px / (2 * kRows);
    for (int column = 0; column < kColumns; ++column, ++sample) {
      const int64_t x = (int64_t{2} * column + 1) * layout.width_px / (2 * kColumns);
      const int value =
          std::to_integer<int>(frame.bytes[static_cast<size_t>(y * layout.y_stride + x)]);
      sum += value;
      sum_of_squares += value * value;
      dark += value < dark_below ? 1 : 0;
      saturated += value >= saturated_from ? 1 : 0;
      difference += std::abs(value - samples_[sample]);
      samples_[sample] = static_cast<uint8_t>(value);
    }
  }
  const double count = kColumns * kRows;
  const double mean = static_cast<double>(sum) / count;
  const double variance = static_cast<double>(sum_of_squares) / count - mean * mean;
  statistics_.mean = (mean - black) / span;
  statistics_.deviation = std::sqrt(std::max(variance, 0.0)) / span;
  statistics_.dark_share = dark / count;
  statistics_.saturated_share = saturated / count;
  statistics_.has_change = is_comparable;
  statistics_.change = is_comparable ? static_cast<double>(difference) / count / span : 0;
  last_layout_ = layout;
  has_last_ = true;
}

ViewFault ViewMonitor::luma_fault() const {
  // While suspect the levels are those for leaving.
  const double ease_share = suspect_ ? kEaseShare : 0;
  const double ease_factor = suspect_ ? kEaseFactor : 1;
  if (statistics_.dark_share >= limits_.dark_share - ease_share) return ViewFault::Dark;
  if (statistics_.saturated_share >= limits_.saturated_share - ease_share)
    return ViewFault::Saturated;
  if (statistics_.deviation < limits_.flat_deviation * ease_factor) return ViewFault::Flat;
  if (statistics_.has_change && statistics_.change == 0) return ViewFault::Frozen;
  return ViewFault::None;
}

ViewFault ViewMonitor::face_fault(const Prediction* prediction, uint64_t time_ns) {
  if (!has_face_history_) {
    has_face_history_ = true;
    last_face_ns_ = last_centered_ns_ = time_ns;
  }
  const DriverData* side = prediction != nullptr ? surer_side(*prediction) : nullptr;
  if (side == nullptr) {
    // Nothing is known of this span: it counts for no fault.
    const uint64_t span_ns = time_ns - last_time_ns_;
    last_face_ns_ += span_ns;
    last_centered_ns_ += span_ns;
    return face_at_edge_ ? ViewFault::FaceAtEdge : ViewFault::None;
  }
  const bool has_face = side->face_prob >= kSureFaceProb;
  if (has_face) last_face_ns_ = time_ns;
  const double ease = face_at_edge_ ? kEaseShare : 0;
  const bool is_at_edge =
      has_face && std::max(std::abs(side->face_position[0]), std::abs(side->face_position[1])) >=
                      limits_.edge_position - ease;
  if (!is_at_edge) last_centered_ns_ = time_ns;
  face_at_edge_ = time_ns - last_centered_ns_ >= limits_.face_at_edge_ns;
  if (face_at_edge_) return ViewFault::FaceAtEdge;
  if (time_ns - last_face_ns_ >= limits_.no_face_ns) return ViewFault::NoFace;
  return ViewFault::None;
}

bool ViewMonitor::update(const Frame& frame, const Prediction* prediction) {
  const uint64_t time_ns = frame.info.timestamp_sof_ns;
  // After a jump of the clock or a gap nothing is known of the time between: all spans begin again.
  if (!has_last_ || time_ns < last_time_ns_ || time_ns - last_time_ns_ > kLongestGapNs) {
    has_face_history_ = false;
    is_changing_ = false;
    last_time_ns_ = time_ns;
  }
  measure(frame);
  const ViewFault by_face = face_fault(prediction, time_ns);  // always asked: it keeps its times
  ViewFault seen = luma_fault();
  if (seen == ViewFault::None) seen = by_face;
  last_time_ns_ = time_ns;

  const bool is_bad = seen != ViewFault::None;
  if (is_bad) fault_ = seen;
  if (is_bad == suspect_) {
    is_changing_ = false;
    return suspect_;
  }
  if (!is_changing_) {
    is_changing_ = true;
    changing_since_ns_ = time_ns;
  }
  const uint64_t needed_ns = is_bad ? limits_.enter_ns : limits_.leave_ns;
  if (time_ns - changing_since_ns_ >= needed_ns) {
    suspect_ = is_bad;
    is_changing_ = false;
  }
  return suspect_;
}

}  // namespace ignis::pipeline
