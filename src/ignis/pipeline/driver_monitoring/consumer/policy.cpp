#include "ignis/pipeline/driver_monitoring/consumer/policy.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ignis::pipeline {
namespace {

// The reference image of section 4; every camera's positions are a share of it.
constexpr double kReferenceWidthPx = 1928, kReferenceHeightPx = 1208;
constexpr double kReferenceCenterXPx = 964, kReferenceCenterYPx = 604;

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

}  // namespace

std::optional<HeadPose> head_pose(const DriverData& driver, const std::array<float, 3>& rpy_rad,
                                  const Camera& camera, bool on_right) {
  if (!driver.has_lists) return std::nullopt;
  const double focal_px = camera.pose_focal_px;
  const double x_px = (static_cast<double>(driver.face_position[0]) + 0.5) * kReferenceWidthPx;
  const double y_px = (static_cast<double>(driver.face_position[1]) + 0.5) * kReferenceHeightPx;
  const double face_yaw = std::atan2(x_px - kReferenceCenterXPx, focal_px);
  const double face_pitch = std::atan2(y_px - kReferenceCenterYPx, focal_px);
  HeadPose pose;
  pose.pitch_rad = static_cast<double>(driver.face_orientation[0]) + face_pitch -
                   static_cast<double>(rpy_rad[1]);
  pose.yaw_rad =
      -static_cast<double>(driver.face_orientation[1]) + face_yaw - static_cast<double>(rpy_rad[2]);
  if (on_right) pose.yaw_rad = -pose.yaw_rad;
  if (!std::isfinite(pose.pitch_rad) || !std::isfinite(pose.yaw_rad)) return std::nullopt;
  return pose;
}

Strictness strictness(const PolicySettings& settings, double speed_mps, double brake_prob) {
  // Full strictness at half the scaled probability; the curve's numbers are section 8.3's.
  const double from_16 = speed_mps - 16;
  const double k = std::max(-0.00156 * from_16 * from_16 + 0.6, 0.2);
  const double share = std::clamp(brake_prob / k, 0.0, 0.5) / 0.5;
  const auto factor = [share](double slack, double strict) {
    return slack / strict + (1 - slack / strict) * share;
  };
  return {factor(settings.pitch_slack_rad, settings.pitch_strict_rad),
          factor(settings.yaw_slack_rad, settings.yaw_strict_rad)};
}

double steering_allowance_rad(const PolicySettings& settings, double steering_angle_deg,
                              bool on_right) {
  const double beyond_deg =
      std::max(std::abs(steering_angle_deg) - settings.steering_free_deg, 0.0);
  const double allowance = std::min(settings.steering_factor * beyond_deg * std::numbers::pi / 180,
                                    settings.steering_max_rad);
  return -sign(steering_angle_deg) * allowance * (on_right ? -1 : 1);
}

HeadPose pose_error(const HeadPose& pose, const HeadPose& offset, double steering_yaw_rad) {
  const double pitch = pose.pitch_rad - offset.pitch_rad;
  const double yaw = pose.yaw_rad - offset.yaw_rad;
  const bool is_excused = yaw * steering_yaw_rad > 0;
  return {pitch < 0 ? -pitch : 0,
          std::max(std::abs(yaw) - (is_excused ? std::abs(steering_yaw_rad) : 0), 0.0)};
}

}  // namespace ignis::pipeline
