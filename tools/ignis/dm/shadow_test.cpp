#include "tools/ignis/dm/shadow.h"

#include "ignis/pipeline/driver_monitoring/testing/test_fake_model.h"
#include "ignis/pipeline/frames/layout.h"

#include <gtest/gtest.h>

namespace ignis::tools {
namespace {

using pipeline::FrameReport;

constexpr uint64_t kTurnNs = 50'000'000;

/// Turns of 50 ms, on a clock of its own.
class ShadowTest : public ::testing::Test {
 protected:
  /// A valid report of a driver who looks at the camera, from the middle of the car.
  FrameReport report() {
    FrameReport r;
    pipeline::Prediction p = pipeline::fake_prediction(0);
    p.left.face_position = {0, 0};
    p.left.face_orientation = {0, 0, 0};
    p.left.left_blink_prob = p.left.right_blink_prob = blink_;
    r.state.frame_id = r.quality.frame_id = ++id_;
    r.state.left = p.left;
    r.state.right = p.right;
    r.state.wheel_on_right_prob = p.wheel_on_right_prob;
    r.quality.valid = true;
    r.quality.known_left = r.quality.known_right = pipeline::kAllDriverFields;
    r.quality.known_wheel = true;
    r.quality.writer_id = 7;
    r.quality.warp_id = (3u << 16) | 1;  // of a camera of version 1, as the policy's own
    r.quality.publish_time_ns = now_ns_;
    r.quality.timestamp_sof_ns = now_ns_ - 10'000'000;
    return r;
  }
  void run(int turns, bool has_frames = true) {
    for (int i = 0; i < turns; ++i) {
      now_ns_ += kTurnNs;
      const FrameReport r = report();
      view_ = shadow_.step(has_frames ? &r : nullptr, layout_, std::array<float, 3>{}, now_ns_);
    }
  }

  uint64_t now_ns_ = 1'000'000'000;
  uint32_t id_ = 0;
  float blink_ = 0;
  pipeline::FrameLayout layout_ = pipeline::nv12_layout(1928, 1208).value();
  Shadow shadow_{pipeline::known_cameras(), pipeline::Side::Left, now_ns_};
  AttentionView view_;
};

TEST_F(ShadowTest, AsksToLeaveControlUntilItHasSeenEnough) {
  run(1);
  EXPECT_EQ(view_.gate, "leave control");
  EXPECT_FALSE(view_.gate_cause.empty());
  run(50);
  EXPECT_EQ(view_.gate, "");
  EXPECT_EQ(view_.state, "attentive");
  EXPECT_TRUE(view_.is_known);
  EXPECT_TRUE(view_.has_pose);
}

TEST_F(ShadowTest, ClosedEyesAreToldWithTheirCause) {
  run(50);
  blink_ = 0.95f;
  run(10);
  EXPECT_EQ(view_.state, "distracted");
  EXPECT_EQ(view_.cause, "eyes closed");
  EXPECT_GT(view_.filter, 0.63f);
}

TEST_F(ShadowTest, WithoutFramesNobodyIsAttentive) {
  run(50);
  run(30, /*has_frames=*/false);
  EXPECT_EQ(view_.state, "unknown");
  EXPECT_FALSE(view_.is_known);
  EXPECT_EQ(view_.gate, "leave control");
}

}  // namespace
}  // namespace ignis::tools
