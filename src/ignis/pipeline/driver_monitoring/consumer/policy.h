#pragma once

#include "ignis/pipeline/driver_monitoring/camera.h"
#include "ignis/pipeline/messages/driver_state.h"

#include <array>
#include <cstdint>
#include <optional>

namespace ignis::pipeline {

/// The numbers of section 8, in one place. Seconds, metres per second, radians unless the name says otherwise.
struct PolicySettings {
  double rate_hz = 20;

  // 8.1, the side of the wheel
  double wheel_learn_min_speed_mps = 11;
  double wheel_threshold = 0.5;
  double wheel_prior_mean = 0.03, wheel_prior_spread = 1.65e-4;
  int64_t wheel_prior_count = 2;
  int64_t wheel_ready_count = 300;  ///< 15 s
  int64_t store_period_frames = 6000;

  // 8.3, what is seen
  double face_threshold = 0.7;
  double eye_threshold = 0.65, sunglasses_threshold = 0.9, blink_threshold = 0.865;
  double phone_threshold = 0.5;
  double low_std_rad = 0.3;
  int64_t high_std_fallback_frames = 200;  ///< 10 s
  double uncertain_std_rad = 0.1;
  int64_t uncertain_frames = 1200, uncertain_reset_frames = 40;

  // 8.3, the pose
  double pitch_strict_rad = 0.3133, pitch_slack_rad = 0.3237, pitch_before_learning_rad = 0.449;
  double yaw_strict_rad = 0.4020, yaw_slack_rad = 0.5042;
  double natural_pitch_rad = 0.011, natural_yaw_rad = 0.075;
  double pitch_offset_min_rad = -0.0881, pitch_offset_max_rad = 0.124;
  double yaw_offset_min_rad = -0.0246, yaw_offset_max_rad = 0.289;
  double pose_learn_min_speed_mps = 13;
  int64_t pose_ready_count = 1200;   ///< 60 s
  int64_t pose_weight_limit = 7200;  ///< 360 s
  double steering_free_deg = 30, steering_factor = 0.15, steering_max_rad = 0.3927;

  // 8.3, time
  double filter_time_constant_s = 0.25;
  double distracted_above = 0.63, attentive_below = 0.37;
  double vision_alert_s[3] = {5, 8, 13};  ///< first notice, prompt, top
  double wheel_alert_s[3] = {5, 15, 25};
  double recovery_min = 1.25, recovery_max = 5;
  double min_alert_speed_mps = 2.8;
  int lockout_top_alerts = 2;
  double no_response_s = 5;
  double lockout_s[4] = {60, 300, 900, 1800};  ///< of the first, second, third and every later one
};

/// Pitch and yaw of the head against the car, in rad: pitch up and yaw to the car's right positive; on the right side
/// yaw is mirrored, so that towards the middle of the car is positive on both.
struct HeadPose {
  double pitch_rad = 0, yaw_rad = 0;
};

/// Section 8.2. `rpy_rad` are the calibration's roll, pitch and yaw. The conversion's focal length is the camera's
/// `pose_focal_px`, in the reference image of 1928x1208 that positions are a share of.
/// Nothing when the lists are empty or a value is not finite: then the pose is unknown.
std::optional<HeadPose> head_pose(const DriverData& driver, const std::array<float, 3>& rpy_rad,
                                  const Camera& camera, bool on_right);

/// Factors on the strict pose limits: the limits lie between slack (1.033, 1.254) and strict (1, 1).
struct Strictness {
  double pitch_factor = 1, yaw_factor = 1;
};
/// The more the road model expects braking, the stricter; at some speeds sooner.
Strictness strictness(const PolicySettings& settings, double speed_mps, double brake_prob);

/// How far the eyes may follow the wheel into a bend, in rad and with yaw's sign: a wheel turned to the left (positive
/// degrees) excuses looking to the left (negative yaw; mirrored on the right side).
double steering_allowance_rad(const PolicySettings& settings, double steering_angle_deg,
                              bool on_right);

/// |pose - offset| where it counts against the limits: pitch downward only; yaw both ways, less the allowance on the
/// steering side.
HeadPose pose_error(const HeadPose& pose, const HeadPose& offset, double steering_yaw_rad);

/// x += (value - x) * dt / (time constant + dt): the first-order filter of the distraction.
class FirstOrderFilter {
 public:
  FirstOrderFilter(double start, double time_constant_s, double dt_s)
      : value_(start), alpha_(dt_s / (time_constant_s + dt_s)) {}
  double step(double input) { return value_ += alpha_ * (input - value_); }
  double value() const { return value_; }

 private:
  double value_, alpha_;
};

}  // namespace ignis::pipeline
