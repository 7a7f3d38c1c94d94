#include "ignis/pipeline/driver_monitoring/face_pose.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace ignis::pipeline {
namespace {

using Landmarks = std::array<std::array<float, 2>, 5>;

// The generic face seen from afar, written down with matrices: x' = s R X + t, R = Rz(roll) Ry(yaw) Rx(pitch).
Landmarks landmarks_of(double pitch, double yaw, double roll, double scale, double x, double y) {
  Landmarks points{};
  for (size_t i = 0; i < points.size(); ++i) {
    const auto& p = kGenericFace[i];
    const double ax = p[0];
    const double ay = std::cos(pitch) * p[1] + std::sin(pitch) * p[2];
    const double az = -std::sin(pitch) * p[1] + std::cos(pitch) * p[2];
    const double bx = std::cos(yaw) * ax - std::sin(yaw) * az;
    points[i][0] = static_cast<float>(x + scale * (std::cos(roll) * bx - std::sin(roll) * ay));
    points[i][1] = static_cast<float>(y + scale * (std::sin(roll) * bx + std::cos(roll) * ay));
  }
  return points;
}

TEST(FacePose, FindsThePoseOfTheGenericFace) {
  for (const double pitch : {-0.6, -0.2, 0.0, 0.3, 0.6}) {
    for (const double yaw : {-0.9, -0.4, 0.0, 0.25, 0.9}) {
      for (const double roll : {-0.5, 0.0, 0.4}) {
        SCOPED_TRACE(testing::Message() << pitch << ", " << yaw << ", " << roll);
        const HeadPose pose = fit_head_pose(landmarks_of(pitch, yaw, roll, 1.7, 900, 400));
        EXPECT_TRUE(pose.has_converged);
        EXPECT_NEAR(pose.pitch_rad, pitch, 1e-3);
        EXPECT_NEAR(pose.yaw_rad, yaw, 1e-3);
        EXPECT_NEAR(pose.roll_rad, roll, 1e-3);
        EXPECT_NEAR(pose.scale_px_per_mm, 1.7, 1e-3);
        EXPECT_LT(pose.residual_px, 1e-2);
      }
    }
  }
}

// What a person sees in a picture, without the formulas.
TEST(FacePose, SignsAreThoseOfThePicture) {
  const Landmarks frontal = {{{468, 367}, {532, 367}, {500, 400}, {474, 430}, {526, 430}}};
  EXPECT_NEAR(fit_head_pose(frontal).yaw_rad, 0, 0.01);
  Landmarks turned = frontal;
  turned[2][0] += 12;  // the nose points to the right of the picture
  EXPECT_GT(fit_head_pose(turned).yaw_rad, 0.2);
  turned[2][0] -= 24;
  EXPECT_LT(fit_head_pose(turned).yaw_rad, -0.2);
  Landmarks raised = frontal;
  raised[2][1] -= 12;  // up
  EXPECT_GT(fit_head_pose(raised).pitch_rad, fit_head_pose(frontal).pitch_rad + 0.2);
  // Turned clockwise: the right eye is lower.
  EXPECT_NEAR(fit_head_pose(landmarks_of(0, 0, 0.3, 1, 0, 0)).roll_rad, 0.3, 1e-3);
  const Landmarks leaning = {{{470, 357}, {530, 377}, {489, 400}, {460, 424}, {509, 441}}};
  EXPECT_GT(fit_head_pose(leaning).roll_rad, 0.2);
}

// Landmarks of a detector wander by a few hundredths of the eyes' distance; the stated deviation covers it.
TEST(FacePose, StdCoversTheErrorOfNoisyLandmarks) {
  std::mt19937 rng(5);
  std::normal_distribution<double> noise(0, 0.03 * 64);
  int inside = 0;
  const int rounds = 300;
  for (int i = 0; i < rounds; ++i) {
    Landmarks points = landmarks_of(0.1, -0.3, 0.05, 1, 300, 300);
    for (auto& point : points) {
      for (float& value : point) value += static_cast<float>(noise(rng));
    }
    const HeadPose pose = fit_head_pose(points);
    ASSERT_TRUE(pose.has_converged) << i;
    EXPECT_LT(std::abs(pose.yaw_rad + 0.3), 0.6);
    if (std::abs(pose.yaw_rad + 0.3) < 2 * pose.std_rad[1]) ++inside;
    EXPECT_GT(pose.std_rad[0], 0.01);
    EXPECT_LT(pose.std_rad[0], 1.0);
  }
  EXPECT_GT(inside, rounds * 3 / 4);
}

TEST(FacePose, NonsenseDoesNotConvergeAndDoesNotCrash) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(fit_head_pose(Landmarks{}).has_converged);
  Landmarks points = landmarks_of(0, 0, 0, 1, 0, 0);
  for (const float value : {nan, inf, -inf}) {
    Landmarks bad = points;
    for (auto& point : bad) point[0] = value;
    EXPECT_FALSE(fit_head_pose(bad).has_converged);
    bad = points;
    bad[2][1] = value;
    const HeadPose pose = fit_head_pose(bad);
    EXPECT_FALSE(pose.has_converged);
    EXPECT_TRUE(std::isfinite(pose.pitch_rad));
  }
  std::mt19937 rng(6);
  for (int i = 0; i < 2000; ++i) {
    for (auto& point : points) {
      for (float& value : point) value = static_cast<float>(rng() % 2000);
    }
    const HeadPose pose = fit_head_pose(points);
    EXPECT_TRUE(std::isfinite(pose.yaw_rad + pose.pitch_rad + pose.roll_rad));
  }
}

}  // namespace
}  // namespace ignis::pipeline
