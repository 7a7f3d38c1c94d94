#include "ignis/pipeline/driver_monitoring/decode.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace ignis::pipeline {
namespace {

// Every probability field beside its bit, in the order of Head.
constexpr std::array<std::pair<float DriverData::*, DriverField>, kHeadCount> kProbabilities = {{
    {&DriverData::face_prob, DriverField::FaceProb},
    {&DriverData::left_eye_prob, DriverField::LeftEyeProb},
    {&DriverData::right_eye_prob, DriverField::RightEyeProb},
    {&DriverData::left_blink_prob, DriverField::LeftBlinkProb},
    {&DriverData::right_blink_prob, DriverField::RightBlinkProb},
    {&DriverData::sunglasses_prob, DriverField::SunglassesProb},
    {&DriverData::phone_prob, DriverField::PhoneProb},
    {&DriverData::sleep_prob, DriverField::SleepProb},
}};

constexpr uint32_t kListFields = bit(DriverField::FaceOrientation) |
                                 bit(DriverField::FaceOrientationStd) |
                                 bit(DriverField::FacePosition) | bit(DriverField::FacePositionStd);

/// A named range of used values; two of them belong to the descriptor of the one-sided model.
struct UsedRange {
  std::string_view name;
  int64_t start = 0, stop = 0;
};

// Scans the whole vector once: finiteness of used and unused values, and whether the used ones differ at all.
class Scan {
 public:
  explicit Scan(std::span<const float> output) : output_(output) {}

  void take(const UsedRange& range) {  // by ascending start
    count_unused(range.start);
    next_ = range.stop;
    for (int64_t i = range.start; i < range.stop; ++i) {
      const float value = output_[static_cast<size_t>(i)];
      if (!has_first_) first_ = value;
      has_first_ = true;
      is_degenerate_ = is_degenerate_ && value == first_;
      if (std::isfinite(value)) continue;
      reasons_ |= Reason::NonFinite;
      if (head_.empty()) head_ = range.name;
    }
  }
  void finish(Decoded& decoded) {
    count_unused(static_cast<int64_t>(output_.size()));
    if (has_first_ && is_degenerate_) reasons_ |= Reason::DegenerateOutput;
    decoded.reasons |= reasons_;
    decoded.head = head_;
    decoded.unused_non_finite = unused_non_finite_;
  }

 private:
  void count_unused(int64_t stop) {
    for (int64_t i = next_; i < stop; ++i) {
      if (!std::isfinite(output_[static_cast<size_t>(i)])) ++unused_non_finite_;
    }
  }
  std::span<const float> output_;
  int64_t next_ = 0;
  float first_ = 0;
  bool has_first_ = false, is_degenerate_ = true;
  Reasons reasons_;
  std::string_view head_;
  uint64_t unused_non_finite_ = 0;
};

void blame(Decoded& decoded, Reason reason, std::string_view head) {
  decoded.reasons |= reason;
  if (decoded.head.empty()) decoded.head = head;
}

// Not written as `value < 0 || …`: NaN is out of range too.
void check_probability(Decoded& decoded, float value, std::string_view head) {
  if (!(value >= 0 && value <= 1)) blame(decoded, Reason::RangeViolation, head);
}
void check_std(Decoded& decoded, float value, std::string_view head) {
  if (!(value > 0)) blame(decoded, Reason::RangeViolation, head);
}

Decoded refuse_size() {
  Decoded decoded;
  decoded.reasons = Reason::OutputSize;
  return decoded;
}

// Nothing of a vector with a fault is handed on.
void drop_if_faulty(Decoded& decoded) {
  if (!decoded.reasons.is_empty()) decoded.prediction = Prediction();
}

uint32_t decode_side(const HeadTable::Side& side, std::span<const float> output, DriverData& data,
                     Decoded& decoded) {
  const auto at = [&](const Slice& slice, int64_t i) {
    return output[static_cast<size_t>(slice.start + i)];
  };
  // Means are all values before the last six: three of orientation, then x, y and an unused one; so are the log-stds.
  data.has_lists = true;
  for (int64_t i = 0; i < 3; ++i) {
    const auto k = static_cast<size_t>(i);
    data.face_orientation[k] = at(side.descriptor, i);
    data.face_orientation_std[k] = safe_exp(at(side.descriptor, 6 + i));
    check_std(decoded, data.face_orientation_std[k], side.descriptor.name);
    if (i == 2) break;
    data.face_position[k] = at(side.descriptor, 3 + i);
    data.face_position_std[k] = safe_exp(at(side.descriptor, 9 + i));
    check_std(decoded, data.face_position_std[k], side.descriptor.name);
  }
  uint32_t known = kListFields;
  for (size_t i = 0; i < kProbabilities.size(); ++i) {
    if (!side.has(static_cast<Head>(i))) continue;
    const float value = probability_of_logit(at(side.heads[i], 0));
    check_probability(decoded, value, side.heads[i].name);
    data.*kProbabilities[i].first = value;
    known |= bit(kProbabilities[i].second);
  }
  return known;
}

// Indices of the one-sided model; 5 and 11 are the unused third value of position and of its std, 13..20 and 22..29 eye
// geometry, 34..37 heads without a field in the message.
constexpr std::array<UsedRange, 7> kOneSidedRanges = {{{"face_descs", 0, 5},
                                                       {"face_descs", 6, 11},
                                                       {"face_prob", 12, 13},
                                                       {"left_eye_prob", 21, 22},
                                                       {"right_eye_prob", 30, 31},
                                                       {"blink_probs", 31, 33},
                                                       {"sunglasses_prob", 33, 34}}};

constexpr double kReferenceWidthPx = 1928, kReferenceHeightPx = 1208;

}  // namespace

float safe_exp(float x) {
  // std::min(x, 11) returns its first argument for NaN.
  return static_cast<float>(std::exp(std::min(static_cast<double>(x), 11.0)));
}

float probability_of_logit(float x) {
  return static_cast<float>(1.0 / (1.0 + std::exp(std::min(-static_cast<double>(x), 11.0))));
}

float softplus(float x) {
  const auto value = static_cast<double>(x);
  return static_cast<float>(value > 0 ? value + std::log1p(std::exp(-value))
                                      : std::log1p(std::exp(value)));
}

Decoded decode_two_sided(const HeadTable& table, std::span<const float> output) {
  if (static_cast<int64_t>(output.size()) != table.output_count) return refuse_size();
  Decoded decoded;
  Scan scan(output);
  for (const Slice& slice : table.used) scan.take({slice.name, slice.start, slice.stop});
  scan.finish(decoded);
  Prediction& prediction = decoded.prediction;
  prediction.known_left = decode_side(table.left, output, prediction.left, decoded);
  prediction.known_right = decode_side(table.right, output, prediction.right, decoded);
  prediction.wheel_on_right_prob =
      probability_of_logit(output[static_cast<size_t>(table.wheel_on_right.start)]);
  prediction.known_wheel = true;
  check_probability(decoded, prediction.wheel_on_right_prob, table.wheel_on_right.name);
  drop_if_faulty(decoded);
  return decoded;
}

CropWindow crop_window(DriverSide side) {
  // Height 502, half as wide, and where a driver's head is; the other side is read mirrored.
  const bool is_left = side == DriverSide::Left;
  return {is_left ? 1079.0 : 630.0, 157, 251, 502, !is_left};
}

Decoded decode_one_sided(DriverSide side, std::span<const float> output) {
  if (static_cast<int64_t>(output.size()) != kOneSidedOutputCount) return refuse_size();
  Decoded decoded;
  Scan scan(output);
  for (const UsedRange& range : kOneSidedRanges) scan.take(range);
  scan.finish(decoded);

  DriverData data;
  data.has_lists = true;
  for (size_t i = 0; i < 3; ++i) {
    data.face_orientation[i] = output[i];
    data.face_orientation_std[i] = softplus(output[6 + i]);
    check_std(decoded, data.face_orientation_std[i], "face_descs");
  }
  const CropWindow window = crop_window(side);
  // From a share of the window, 0 in its middle, to one of the whole picture. A mirrored window runs from right to left.
  const double direction = window.is_mirrored ? -1.0 : 1.0;
  const double x_px = window.left_px + (0.5 + direction * output[3]) * window.width_px;
  const double y_px = window.top_px + (0.5 + static_cast<double>(output[4])) * window.height_px;
  data.face_position = {static_cast<float>(x_px / kReferenceWidthPx - 0.5),
                        static_cast<float>(y_px / kReferenceHeightPx - 0.5)};
  data.face_position_std = {
      static_cast<float>(softplus(output[9]) * window.width_px / kReferenceWidthPx),
      static_cast<float>(softplus(output[10]) * window.height_px / kReferenceHeightPx)};
  for (const float std : data.face_position_std) check_std(decoded, std, "face_descs");
  data.face_prob = output[12];
  data.left_eye_prob = output[21];
  data.right_eye_prob = output[30];
  data.left_blink_prob = output[31];
  data.right_blink_prob = output[32];
  data.sunglasses_prob = output[33];
  check_probability(decoded, data.face_prob, "face_prob");
  check_probability(decoded, data.left_eye_prob, "left_eye_prob");
  check_probability(decoded, data.right_eye_prob, "right_eye_prob");
  check_probability(decoded, data.left_blink_prob, "blink_probs");
  check_probability(decoded, data.right_blink_prob, "blink_probs");
  check_probability(decoded, data.sunglasses_prob, "sunglasses_prob");
  if (window.is_mirrored) {
    data.face_orientation[1] = -data.face_orientation[1];
    data.face_orientation[2] = -data.face_orientation[2];
    std::swap(data.left_eye_prob, data.right_eye_prob);
    std::swap(data.left_blink_prob, data.right_blink_prob);
  }

  const uint32_t known =
      kAllDriverFields & ~(bit(DriverField::PhoneProb) | bit(DriverField::SleepProb));
  Prediction& prediction = decoded.prediction;
  (side == DriverSide::Left ? prediction.left : prediction.right) = data;
  (side == DriverSide::Left ? prediction.known_left : prediction.known_right) = known;
  drop_if_faulty(decoded);
  return decoded;
}

}  // namespace ignis::pipeline
