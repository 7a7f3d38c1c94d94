#include "ignis/pipeline/driver_monitoring/validity.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace ignis::pipeline {
namespace {

constexpr uint32_t kListFields = bit(DriverField::FaceOrientation) |
                                 bit(DriverField::FaceOrientationStd) |
                                 bit(DriverField::FacePosition) | bit(DriverField::FacePositionStd);

struct ProbField {
  DriverField field;
  float DriverData::* value;
};
constexpr ProbField kProbFields[] = {
    {DriverField::FaceProb, &DriverData::face_prob},
    {DriverField::LeftEyeProb, &DriverData::left_eye_prob},
    {DriverField::RightEyeProb, &DriverData::right_eye_prob},
    {DriverField::LeftBlinkProb, &DriverData::left_blink_prob},
    {DriverField::RightBlinkProb, &DriverData::right_blink_prob},
    {DriverField::SunglassesProb, &DriverData::sunglasses_prob},
    {DriverField::PhoneProb, &DriverData::phone_prob},
    {DriverField::SleepProb, &DriverData::sleep_prob},
};

Reasons check_prob(float value) {
  if (!std::isfinite(value)) return Reason::NonFinite;
  return value >= 0 && value <= 1 ? Reasons() : Reason::RangeViolation;
}

Reasons check_means(std::span<const float> values) {
  const bool all_finite =
      std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  return all_finite ? Reasons() : Reason::NonFinite;
}

Reasons check_stds(std::span<const float> values) {
  Reasons reasons = check_means(values);
  for (const float value : values) {
    if (value <= 0) reasons |= Reason::RangeViolation;
  }
  return reasons;
}

Reasons check_side(const DriverData& side, uint32_t known) {
  Reasons reasons;
  for (const auto& [field, value] : kProbFields) {
    if ((known & bit(field)) != 0) reasons |= check_prob(side.*value);
  }
  if ((known & kListFields) != 0 && !side.has_lists) reasons |= Reason::RangeViolation;
  if ((known & bit(DriverField::FaceOrientation)) != 0)
    reasons |= check_means(side.face_orientation);
  if ((known & bit(DriverField::FacePosition)) != 0) reasons |= check_means(side.face_position);
  if ((known & bit(DriverField::FaceOrientationStd)) != 0)
    reasons |= check_stds(side.face_orientation_std);
  if ((known & bit(DriverField::FacePositionStd)) != 0)
    reasons |= check_stds(side.face_position_std);
  return reasons;
}

void clear_unknown_of_side(DriverData& side, uint32_t known) {
  for (const auto& [field, value] : kProbFields) {
    if ((known & bit(field)) == 0) side.*value = 0;
  }
  if ((known & kListFields) == 0) side.has_lists = false;
  if ((known & bit(DriverField::FaceOrientation)) == 0) side.face_orientation = {};
  if ((known & bit(DriverField::FaceOrientationStd)) == 0) side.face_orientation_std = {};
  if ((known & bit(DriverField::FacePosition)) == 0) side.face_position = {};
  if ((known & bit(DriverField::FacePositionStd)) == 0) side.face_position_std = {};
}

}  // namespace

Reasons check_values(const Prediction& prediction) {
  Reasons reasons = check_side(prediction.left, prediction.known_left) |
                    check_side(prediction.right, prediction.known_right);
  if (prediction.known_wheel) reasons |= check_prob(prediction.wheel_on_right_prob);
  return reasons;
}

Reasons check_confidence(const Prediction& prediction) {
  const uint32_t face = bit(DriverField::FaceProb);
  const bool has_left = (prediction.known_left & face) != 0;
  const bool has_right = (prediction.known_right & face) != 0;
  if (!has_left && !has_right) return Reasons();
  const bool is_left =
      has_left && (!has_right || prediction.left.face_prob >= prediction.right.face_prob);
  const DriverData& side = is_left ? prediction.left : prediction.right;
  const uint32_t known = is_left ? prediction.known_left : prediction.known_right;
  const bool is_unsure_face = side.face_prob < kSureFaceProb;
  const bool is_unsure_pose =
      (known & bit(DriverField::FaceOrientationStd)) != 0 &&
      std::max(side.face_orientation_std[0], side.face_orientation_std[1]) > kSureFaceStd;
  return is_unsure_face || is_unsure_pose ? Reason::LowConfidence : Reasons();
}

void clear_unknown(Prediction& prediction) {
  clear_unknown_of_side(prediction.left, prediction.known_left);
  clear_unknown_of_side(prediction.right, prediction.known_right);
  if (!prediction.known_wheel) prediction.wheel_on_right_prob = 0;
}

}  // namespace ignis::pipeline
