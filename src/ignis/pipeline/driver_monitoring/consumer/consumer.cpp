#include "ignis/pipeline/driver_monitoring/consumer/consumer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr uint32_t kFaceFields = bit(DriverField::FaceProb);
constexpr uint32_t kPoseFields = bit(DriverField::FaceOrientation) |
                                 bit(DriverField::FaceOrientationStd) |
                                 bit(DriverField::FacePosition) | bit(DriverField::FacePositionStd);
constexpr uint32_t kEyeFields = bit(DriverField::LeftEyeProb) | bit(DriverField::RightEyeProb) |
                                bit(DriverField::LeftBlinkProb) | bit(DriverField::RightBlinkProb) |
                                bit(DriverField::SunglassesProb);
constexpr uint32_t kPhoneFields = bit(DriverField::PhoneProb);

bool has_all(uint32_t known, uint32_t fields) { return (known & fields) == fields; }

Answer answer(bool yes) { return yes ? Answer::Yes : Answer::No; }

bool is_probability(float value) { return value >= 0.0f && value <= 1.0f; }  // false for NaN

std::string_view text_of(const std::array<char, 32>& zero_terminated) {
  const char* end = static_cast<const char*>(std::memchr(zero_terminated.data(), 0, 32));
  const size_t length = end == nullptr ? 32 : static_cast<size_t>(end - zero_terminated.data());
  return {zero_terminated.data(), length};
}

// The producer checks its values; a consumer that believes it without looking repeats weakness 2.
bool are_values_good(const DriverData& driver) {
  for (const float prob :
       {driver.face_prob, driver.left_eye_prob, driver.right_eye_prob, driver.left_blink_prob,
        driver.right_blink_prob, driver.sunglasses_prob, driver.phone_prob, driver.sleep_prob}) {
    if (!is_probability(prob)) return false;
  }
  if (!driver.has_lists) return true;
  for (const float value : driver.face_orientation) {
    if (!std::isfinite(value)) return false;
  }
  for (const float value : driver.face_position) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// A number that is not one would make every comparison false, and false reads as "attentive".
CarState checked(const CarState& car) {
  const bool is_good = std::isfinite(car.speed_mps) && std::isfinite(car.steering_angle_deg) &&
                       std::isfinite(car.brake_prob.value_or(0));
  return is_good ? car : CarState();
}

bool is_std_good(const DriverData& driver, uint32_t known) {
  if (!has_all(known, bit(DriverField::FaceOrientationStd))) return true;  // not looked at
  return driver.face_orientation_std[0] > 0 && driver.face_orientation_std[1] > 0 &&
         std::isfinite(driver.face_orientation_std[0]) &&
         std::isfinite(driver.face_orientation_std[1]);
}

}  // namespace

std::string_view to_string(Unknown unknown) {
  switch (unknown) {
    case Unknown::Nothing: return "Nothing";
    case Unknown::NoMessage: return "NoMessage";
    case Unknown::NoState: return "NoState";
    case Unknown::NoCompanion: return "NoCompanion";
    case Unknown::FrameMismatch: return "FrameMismatch";
    case Unknown::VersionMismatch: return "VersionMismatch";
    case Unknown::NotValid: return "NotValid";
    case Unknown::RepeatedFrame: return "RepeatedFrame";
    case Unknown::NotAlive: return "NotAlive";
    case Unknown::WrongRate: return "WrongRate";
    case Unknown::EmptyLists: return "EmptyLists";
    case Unknown::UnknownField: return "UnknownField";
    case Unknown::BadValue: return "BadValue";
    case Unknown::NoCalibration: return "NoCalibration";
  }
  return "?";
}

std::string_view to_string(Answer value) {
  switch (value) {
    case Answer::Unknown: return "unknown";
    case Answer::No: return "no";
    case Answer::Yes: return "yes";
  }
  return "?";
}

/// What one side of one message shows.
struct Consumer::Seen {
  bool is_usable = false;
  double largest_std_rad = 0;
  /// Everything the verdict "attentive" rests on was told.
  bool is_complete = false;
};

Consumer::Consumer(ConsumerOptions options)
    : options_(std::move(options)),
      health_(options_.policy.rate_hz),
      side_(options_.policy, options_.stored_side, options_.is_demo),
      pitch_(RunningStats(options_.policy.pose_weight_limit),
             RunningStats(options_.policy.pose_weight_limit)),
      yaw_(pitch_),
      distraction_(0, options_.policy.filter_time_constant_s, 1 / options_.policy.rate_hz),
      alerts_(options_.policy) {}

bool Consumer::is_pose_learned() const {
  return pitch_.filtered().count() >= options_.policy.pose_ready_count &&
         yaw_.filtered().count() >= options_.policy.pose_ready_count;
}

HeadPose Consumer::pose_offset() const {
  const PolicySettings& policy = options_.policy;
  if (!is_pose_learned()) return {policy.natural_pitch_rad, policy.natural_yaw_rad};
  return {std::clamp(pitch_.filtered().mean(), policy.pitch_offset_min_rad,
                     policy.pitch_offset_max_rad),
          std::clamp(yaw_.filtered().mean(), policy.yaw_offset_min_rad, policy.yaw_offset_max_rad)};
}

double Consumer::elapsed_s(uint64_t now_ns) {
  double seconds = 1 / options_.policy.rate_hz;
  if (last_step_ns_) {
    seconds = now_ns > *last_step_ns_ ? static_cast<double>(now_ns - *last_step_ns_) * 1e-9 : 0;
  }
  last_step_ns_ = now_ns;
  return seconds;
}

// The producer's warp and this side's pose conversion come from one camera profile (weakness 17).
bool Consumer::is_version_right(const DriverStateQuality& quality) const {
  return (options_.profile.empty() || text_of(quality.profile) == options_.profile) &&
         (options_.profile_version == 0 || quality.profile_version == options_.profile_version) &&
         (options_.warp_id == 0 || quality.warp_id == options_.warp_id) &&
         (quality.warp_id & kCameraVersionMask) == (options_.camera.version & kCameraVersionMask);
}

Unknown Consumer::check_message(const DriverMessage* message, uint64_t now_ns) {
  // Companions without a state say that frames stopped; they do not keep the state's topic alive.
  if (message != nullptr && message->state) health_.receive(now_ns);
  if (message == nullptr || (!message->state && !message->quality)) {
    return health_.is_alive(now_ns) ? Unknown::NoMessage : Unknown::NotAlive;
  }
  if (!message->state) return Unknown::NoState;
  if (!message->quality) return Unknown::NoCompanion;
  const DriverState& state = *message->state;
  const DriverStateQuality& quality = *message->quality;
  if (state.frame_id != quality.frame_id) return Unknown::FrameMismatch;
  const bool is_repeated = last_frame_id_ == state.frame_id;
  last_frame_id_ = state.frame_id;
  const Reasons blocking = quality.reasons & (kBlockingReasons | options_.also_blocking);
  if (!message->is_envelope_valid || !quality.valid || !blocking.is_empty()) {
    return Unknown::NotValid;
  }
  // After validity: an unbound producer has no warp, and says so in its reasons.
  if (!is_version_right(quality)) return Unknown::VersionMismatch;
  if (is_repeated) return Unknown::RepeatedFrame;
  if (!health_.is_rate_right()) return Unknown::WrongRate;
  if (!are_values_good(state.left) || !are_values_good(state.right) ||
      !is_probability(state.wheel_on_right_prob)) {
    return Unknown::BadValue;
  }
  return Unknown::Nothing;
}

Side Consumer::choose_side(const DriverMessage* message, bool is_usable, const CarState& car) {
  std::optional<Side> only;
  if (is_usable) {
    const DriverState& state = *message->state;
    const DriverStateQuality& quality = *message->quality;
    const bool has_left = has_all(quality.known_left, kFaceFields);
    const bool has_right = has_all(quality.known_right, kFaceFields);
    if (quality.known_wheel && car.is_known && (has_left || has_right)) {
      const float best_face = std::max(has_left ? state.left.face_prob : 0.0f,
                                       has_right ? state.right.face_prob : 0.0f);
      side_.learn(car.speed_mps, static_cast<double>(best_face),
                  static_cast<double>(state.wheel_on_right_prob));
    }
    if (!quality.known_wheel && has_left != has_right) only = has_left ? Side::Left : Side::Right;
  }
  return side_.choose(!car.is_known || car.is_engaged, only);
}

Consumer::Seen Consumer::look(const DriverData& driver, uint32_t known,
                              const std::optional<std::array<float, 3>>& rpy_rad,
                              const CarState& car, Verdict* verdict) const {
  const PolicySettings& policy = options_.policy;
  const auto value = [](float x) { return static_cast<double>(x); };
  Seen seen;
  if (!has_all(known, kFaceFields)) {
    verdict->unknown = Unknown::UnknownField;
    return seen;
  }
  if (!driver.has_lists && (known & kPoseFields) != 0) {
    verdict->unknown = Unknown::EmptyLists;  // a side with probabilities alone is a broken packet
    return seen;
  }
  if (!is_std_good(driver, known)) {
    verdict->unknown = Unknown::BadValue;
    return seen;
  }
  seen.is_usable = true;
  verdict->face_seen = answer(value(driver.face_prob) > policy.face_threshold);

  const bool has_pose = has_all(known, kPoseFields & ~bit(DriverField::FacePositionStd));
  if (has_pose) {
    seen.largest_std_rad =
        value(std::max(driver.face_orientation_std[0], driver.face_orientation_std[1]));
    verdict->low_std = answer(seen.largest_std_rad < policy.low_std_rad);
  }
  if (has_pose && rpy_rad) {
    verdict->pose = head_pose(driver, *rpy_rad, options_.camera, verdict->side == Side::Right);
  }
  if (verdict->pose) {
    const double allowance = car.is_known ? steering_allowance_rad(policy, car.steering_angle_deg,
                                                                   verdict->side == Side::Right)
                                          : 0;
    const HeadPose error = pose_error(*verdict->pose, verdict->pose_offset, allowance);
    verdict->pose_distracted = answer(error.pitch_rad > verdict->pose_limit.pitch_rad ||
                                      error.yaw_rad > verdict->pose_limit.yaw_rad);
  }

  const bool can_tell_eyes = has_all(known, kEyeFields);
  if (can_tell_eyes && value(driver.sunglasses_prob) < policy.sunglasses_threshold) {
    double blink = 0;
    int eyes = 0;
    if (value(driver.left_eye_prob) > policy.eye_threshold) {
      blink += value(driver.left_blink_prob);
      ++eyes;
    }
    if (value(driver.right_eye_prob) > policy.eye_threshold) {
      blink += value(driver.right_blink_prob);
      ++eyes;
    }
    if (eyes > 0) verdict->eyes_closed = answer(blink / eyes > policy.blink_threshold);
  }
  if (has_all(known, kPhoneFields)) {
    verdict->phone_used = answer(value(driver.phone_prob) > policy.phone_threshold);
  }

  // Eyes behind dark glasses were looked for and not found: there the pose decides. Eyes that the model cannot tell at
  // all are a gap in what is known.
  const uint32_t waived = options_.waived_fields;
  const bool has_eyes = can_tell_eyes || has_all(waived | known, kEyeFields);
  const bool has_phone = has_all(waived | known, kPhoneFields);
  seen.is_complete = verdict->pose.has_value() && has_eyes && has_phone;
  if (!has_pose || !has_eyes || !has_phone) {
    verdict->unknown = Unknown::UnknownField;
  } else if (!verdict->pose) {
    verdict->unknown = rpy_rad ? Unknown::BadValue : Unknown::NoCalibration;
  }
  return seen;
}

void Consumer::count_std(const Seen& seen, const Verdict& verdict) {
  const PolicySettings& policy = options_.policy;
  if (verdict.low_std == Answer::Unknown || verdict.face_seen != Answer::Yes) return;
  high_std_frames_ = verdict.low_std == Answer::Yes ? 0 : high_std_frames_ + 1;
  if (seen.largest_std_rad > policy.uncertain_std_rad) {
    ++uncertain_frames_;
    good_frames_ = 0;
  } else if (++good_frames_ >= policy.uncertain_reset_frames) {
    uncertain_frames_ = 0;
    is_camera_uncertain_ = false;
  }
  if (uncertain_frames_ >= policy.uncertain_frames) is_camera_uncertain_ = true;
}

void Consumer::judge(const Seen& seen, Verdict* verdict) {
  const PolicySettings& policy = options_.policy;
  const bool can_judge =
      seen.is_usable && verdict->face_seen == Answer::Yes && verdict->low_std == Answer::Yes;
  const bool is_distracted =
      can_judge && (verdict->pose_distracted == Answer::Yes ||
                    verdict->eyes_closed == Answer::Yes || verdict->phone_used == Answer::Yes);
  // The filter moves on what was seen only: a frame that tells nothing does not wash a distraction away.
  if (is_distracted) distraction_.step(1);
  else if (can_judge && seen.is_complete) distraction_.step(0);
  verdict->distraction = distraction_.value();
  if (is_distracted) {
    verdict->attention = distraction_.value() > policy.distracted_above ? Attention::Distracted
                                                                        : Attention::Undecided;
  } else if (can_judge && seen.is_complete) {
    verdict->attention =
        distraction_.value() < policy.attentive_below ? Attention::Attentive : Attention::Undecided;
  }
  // High std with a face is borne for 10 s; everything else that is not known falls back to the wheel at once.
  const bool is_std_borne = seen.is_usable && verdict->face_seen == Answer::Yes &&
                            verdict->low_std == Answer::No &&
                            high_std_frames_ < policy.high_std_fallback_frames;
  verdict->watches_wheel = verdict->attention == Attention::Unknown && !is_std_borne;
}

void Consumer::learn_pose(const Verdict& verdict, const CarState& car) {
  if (!car.is_known || !(car.speed_mps > options_.policy.pose_learn_min_speed_mps)) return;
  if (!verdict.pose || verdict.face_seen != Answer::Yes || verdict.low_std != Answer::Yes) return;
  const bool is_distracted = verdict.pose_distracted == Answer::Yes ||
                             verdict.eyes_closed == Answer::Yes ||
                             verdict.phone_used == Answer::Yes;
  if (car.is_engaged && is_distracted) return;
  pitch_.push(verdict.pose->pitch_rad);
  yaw_.push(verdict.pose->yaw_rad);
}

Verdict Consumer::step(const DriverMessage* message, const CarState& given_car,
                       const std::optional<std::array<float, 3>>& rpy_rad, uint64_t now_ns) {
  const CarState car = checked(given_car);
  const PolicySettings& policy = options_.policy;
  const double elapsed = elapsed_s(now_ns);
  Verdict verdict;
  verdict.unknown = check_message(message, now_ns);
  verdict.is_valid = verdict.unknown == Unknown::Nothing;
  verdict.side = choose_side(message, verdict.is_valid, car);
  verdict.is_side_ready = side_.is_ready();
  verdict.is_pose_learned = is_pose_learned();
  verdict.pose_offset = pose_offset();
  // Without the car's speed or the road model's word the limits are the strict ones.
  const Strictness factors = car.is_known && car.brake_prob
                                 ? strictness(policy, car.speed_mps, *car.brake_prob)
                                 : Strictness();
  verdict.pose_limit = {verdict.is_pose_learned ? policy.pitch_strict_rad * factors.pitch_factor
                                                : policy.pitch_before_learning_rad,
                        policy.yaw_strict_rad * factors.yaw_factor};

  Seen seen;
  if (verdict.is_valid) {
    const bool is_right = verdict.side == Side::Right;
    seen = look(is_right ? message->state->right : message->state->left,
                is_right ? message->quality->known_right : message->quality->known_left, rpy_rad,
                car, &verdict);
    if (seen.is_usable) count_std(seen, verdict);
  }
  judge(seen, &verdict);
  learn_pose(verdict, car);
  verdict.is_camera_uncertain = is_camera_uncertain_;

  AlertInput input;
  input.attention = verdict.attention;
  input.watches_wheel = verdict.watches_wheel;
  input.is_touched = car.is_known && car.is_touched;
  input.is_engaged = !car.is_known || car.is_engaged;
  input.is_slow = car.is_known && (car.is_standstill || car.speed_mps < policy.min_alert_speed_mps);
  input.elapsed_s = elapsed;
  // One message speaks for one period; a pause before it was not watched.
  input.seen_s = std::min(elapsed, 2 / policy.rate_hz);
  alerts_.step(input);
  verdict.alert = alerts_.level();
  verdict.vision_s = alerts_.vision_s();
  verdict.wheel_s = alerts_.wheel_s();
  verdict.lockouts = alerts_.lockouts();
  verdict.lockout_s = alerts_.lockout_s();
  return verdict;
}

}  // namespace ignis::pipeline
