#include "ignis/pipeline/driver_monitoring/consumer/policy.h"

#include <gtest/gtest.h>

#include <limits>
#include <numbers>

namespace ignis::pipeline {
namespace {

const PolicySettings kPolicy;

DriverData driver(float pitch, float yaw, float x, float y) {
  DriverData data;
  data.has_lists = true;
  data.face_orientation = {pitch, yaw, 0};
  data.face_position = {x, y};
  return data;
}

struct PoseRow {
  float orientation[2], position[2], rpy[2];
  double pitch, yaw;
};

// Section 10.5. Inputs are float32 on the wire, so the results agree to about 1e-7.
TEST(Pose, HasTheTablesValues) {
  const PoseRow rows[] = {
      {{0, 0}, {0, 0}, {0, 0}, 0, 0},
      {{0.1f, 0.2f}, {0.1f, -0.05f}, {0.02f, -0.01f}, -0.020661964, 0.121885765},
      {{-0.2f, -0.3f}, {-0.25f, 0.2f}, {-0.03f, 0.04f}, 0.213961390, -0.418400950},
      {{0, 0}, {0.5f, 0.5f}, {0, 0}, 0.790389802, 1.015560856},
  };
  const Camera camera = known_cameras()[0];
  for (const PoseRow& row : rows) {
    const DriverData data =
        driver(row.orientation[0], row.orientation[1], row.position[0], row.position[1]);
    const auto left = head_pose(data, {0, row.rpy[0], row.rpy[1]}, camera, false);
    ASSERT_TRUE(left);
    EXPECT_NEAR(left->pitch_rad, row.pitch, 1e-7);
    EXPECT_NEAR(left->yaw_rad, row.yaw, 1e-7);
    const auto right = head_pose(data, {0, row.rpy[0], row.rpy[1]}, camera, true);
    ASSERT_TRUE(right);
    EXPECT_NEAR(right->pitch_rad, row.pitch, 1e-7);
    EXPECT_NEAR(right->yaw_rad, -row.yaw, 1e-7);
  }
}

TEST(Pose, RollIsNotUsed) {
  const Camera camera = known_cameras()[0];
  DriverData data = driver(0.1f, 0.2f, 0, 0);
  const auto before = head_pose(data, {0, 0, 0}, camera, false);
  data.face_orientation[2] = 0.5f;
  const auto after = head_pose(data, {0.4f, 0, 0}, camera, false);
  EXPECT_EQ(before->pitch_rad, after->pitch_rad);
  EXPECT_EQ(before->yaw_rad, after->yaw_rad);
}

// Section 8.2: with 567 in the place of 598, a face at 10 % of the width is 0.0159 rad off.
TEST(Pose, TheFocalLengthIsTheCameras) {
  Camera camera = known_cameras()[0];
  const DriverData data = driver(0, 0, 0.1f, 0);
  const double with_598 = head_pose(data, {}, camera, false)->yaw_rad;
  camera.pose_focal_px = 567;
  const double with_567 = head_pose(data, {}, camera, false)->yaw_rad;
  EXPECT_NEAR(with_567 - with_598, 0.0159, 5e-5);
}

TEST(Pose, IsUnknownWithoutListsOrWithANumberThatIsNone) {
  const Camera camera = known_cameras()[0];
  DriverData data = driver(0, 0, 0, 0);
  data.has_lists = false;
  EXPECT_FALSE(head_pose(data, {}, camera, false));
  data.has_lists = true;
  data.face_orientation[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(head_pose(data, {}, camera, false));
  EXPECT_FALSE(
      head_pose(driver(0, 0, 0, 0), {0, std::numeric_limits<float>::infinity(), 0}, camera, false));
}

TEST(Strictness, HasTheTablesValues) {
  struct Row {
    double speed, brake, pitch, yaw;
  };
  for (const Row& row :
       {Row{20, 0, 1.033195, 1.254229}, Row{16, 0.1, 1.022130, 1.169486}, Row{16, 0.3, 1, 1}}) {
    const Strictness got = strictness(kPolicy, row.speed, row.brake);
    EXPECT_NEAR(got.pitch_factor, row.pitch, 5e-7) << row.speed;
    EXPECT_NEAR(got.yaw_factor, row.yaw, 5e-7) << row.speed;
  }
}

TEST(Strictness, FarFrom16TheCurveEndsAtAFifth) {
  // k = 0.2, b = 0.05 / 0.2 = 0.25: half way from slack to strict.
  const Strictness got = strictness(kPolicy, 60, 0.05);
  EXPECT_NEAR(got.yaw_factor, (1.254229 + 1) / 2, 1e-6);
  // A probability that is too large, or negative, is held at the ends.
  EXPECT_EQ(strictness(kPolicy, 60, 7).yaw_factor, 1);
  EXPECT_NEAR(strictness(kPolicy, 60, -7).yaw_factor, 1.254229, 1e-6);
}

TEST(Steering, AllowsALookIntoTheBend) {
  EXPECT_EQ(steering_allowance_rad(kPolicy, 0, false), 0);
  EXPECT_EQ(steering_allowance_rad(kPolicy, 30, false), 0);
  EXPECT_EQ(steering_allowance_rad(kPolicy, -29, false), 0);
  // 100 degrees to the left: 0.15 * radians(70)
  const double left = 0.15 * 70 * std::numbers::pi / 180;
  EXPECT_NEAR(steering_allowance_rad(kPolicy, 100, false), -left, 1e-12);
  EXPECT_NEAR(steering_allowance_rad(kPolicy, -100, false), left, 1e-12);
  EXPECT_NEAR(steering_allowance_rad(kPolicy, 100, true), left, 1e-12);
  EXPECT_NEAR(steering_allowance_rad(kPolicy, 700, false), -0.3927, 1e-12);
}

TEST(Steering, OnlyToTheSteeringSide) {
  const double left = -0.2;
  EXPECT_NEAR(pose_error({0, -0.5}, {}, left).yaw_rad, 0.3, 1e-12);
  EXPECT_NEAR(pose_error({0, 0.5}, {}, left).yaw_rad, 0.5, 1e-12);
  EXPECT_EQ(pose_error({0, -0.1}, {}, left).yaw_rad, 0);
}

TEST(PoseError, OnlyDownwardPitchCounts) {
  EXPECT_EQ(pose_error({0.4, 0}, {0.011, 0}, 0).pitch_rad, 0);
  EXPECT_NEAR(pose_error({-0.4, 0}, {0.011, 0}, 0).pitch_rad, 0.411, 1e-12);
  EXPECT_NEAR(pose_error({0, -0.3}, {0, 0.075}, 0).yaw_rad, 0.375, 1e-12);
  EXPECT_NEAR(pose_error({0, 0.3}, {0, 0.075}, 0).yaw_rad, 0.225, 1e-12);
}

// Section 10.5: alpha is 0.05 / 0.3 = 1/6.
TEST(DistractionFilter, CrossesAfterSixSteps) {
  FirstOrderFilter rising(0, kPolicy.filter_time_constant_s, 0.05);
  FirstOrderFilter falling(1, kPolicy.filter_time_constant_s, 0.05);
  for (int i = 0; i < 5; ++i) {
    EXPECT_LT(rising.step(1), kPolicy.distracted_above);
    EXPECT_GT(falling.step(0), kPolicy.attentive_below);
  }
  EXPECT_NEAR(rising.step(1), 0.6651, 5e-5);
  EXPECT_NEAR(falling.step(0), 0.3349, 5e-5);
}

// Every number of section 8.3, so that none changes unnoticed.
TEST(Policy, HasTheNumbersOfTheContract) {
  EXPECT_EQ(kPolicy.face_threshold, 0.7);
  EXPECT_EQ(kPolicy.eye_threshold, 0.65);
  EXPECT_EQ(kPolicy.sunglasses_threshold, 0.9);
  EXPECT_EQ(kPolicy.blink_threshold, 0.865);
  EXPECT_EQ(kPolicy.phone_threshold, 0.5);
  EXPECT_EQ(kPolicy.pitch_strict_rad, 0.3133);
  EXPECT_EQ(kPolicy.pitch_slack_rad, 0.3237);
  EXPECT_EQ(kPolicy.pitch_before_learning_rad, 0.449);
  EXPECT_EQ(kPolicy.yaw_strict_rad, 0.4020);
  EXPECT_EQ(kPolicy.yaw_slack_rad, 0.5042);
  EXPECT_EQ(kPolicy.natural_pitch_rad, 0.011);
  EXPECT_EQ(kPolicy.natural_yaw_rad, 0.075);
  EXPECT_EQ(kPolicy.pitch_offset_min_rad, -0.0881);
  EXPECT_EQ(kPolicy.pitch_offset_max_rad, 0.124);
  EXPECT_EQ(kPolicy.yaw_offset_min_rad, -0.0246);
  EXPECT_EQ(kPolicy.yaw_offset_max_rad, 0.289);
  EXPECT_EQ(kPolicy.pose_learn_min_speed_mps, 13);
  EXPECT_EQ(kPolicy.pose_ready_count, 1200);
  EXPECT_EQ(kPolicy.pose_weight_limit, 7200);
  EXPECT_EQ(kPolicy.steering_max_rad, 0.3927);
  EXPECT_EQ(kPolicy.low_std_rad, 0.3);
  EXPECT_EQ(kPolicy.high_std_fallback_frames, 200);
  EXPECT_EQ(kPolicy.uncertain_std_rad, 0.1);
  EXPECT_EQ(kPolicy.uncertain_frames, 1200);
  EXPECT_EQ(kPolicy.uncertain_reset_frames, 40);
  EXPECT_EQ(kPolicy.recovery_min, 1.25);
  EXPECT_EQ(kPolicy.recovery_max, 5);
  EXPECT_EQ(kPolicy.min_alert_speed_mps, 2.8);
}

}  // namespace
}  // namespace ignis::pipeline
