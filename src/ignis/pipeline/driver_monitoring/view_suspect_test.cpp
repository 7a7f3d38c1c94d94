#include "ignis/pipeline/driver_monitoring/view_suspect.h"

#include "ignis/pipeline/driver_monitoring/testing/test_host_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace ignis::pipeline {
namespace {

/// Luma at (x, y) of frame number `index`, as if the picture had 640x480 pixels.
using Scene = std::function<int(int x, int y, int index)>;

/// -3 … 3: what a sensor adds, another in each frame.
int noise(int x, int y, int index) {
  uint32_t h = static_cast<uint32_t>(x) * 73856093U ^ static_cast<uint32_t>(y) * 19349663U ^
               static_cast<uint32_t>(index) * 83492791U;
  h = (h ^ (h >> 13)) * 1274126177U;
  return static_cast<int>((h >> 16) % 7) - 3;
}

/// A dim cabin with a brighter seat and window.
int cabin(int x, int y, int index) {
  int value = 40 + y / 8;
  if (x > 420 && y < 160) value = 200;
  if (x > 200 && x < 360 && y > 120) value = 110;
  return value + noise(x, y, index);
}
/// Night: black but for a face lit by infrared, 3 % of the picture.
int night(int x, int y, int index) {
  const bool is_face = x > 250 && x < 350 && y > 150 && y < 242;
  return (is_face ? 120 : 18) + noise(x, y, index);
}
int dark(int x, int y, int index) { return std::max(16, 18 + noise(x, y, index)); }
int burnt_out(int x, int y, int index) { return x < 480 ? 240 : cabin(x, y, index); }
int hand(int x, int y, int index) { return 70 + noise(x, y, index); }
int frozen(int x, int y, int) { return cabin(x, y, 5); }

class View {
 public:
  ViewMonitor monitor;

  /// Frames of `scene` for `duration_ms` at 20 Hz. \return true when the view is suspect at the end.
  bool show(const Scene& scene, int duration_ms, const Prediction* prediction = nullptr) {
    bool is_suspect = monitor.fault() != ViewFault::None;
    for (int t = 0; t < duration_ms; t += 50) {
      for (int y = 0; y < kHeight; ++y) {
        for (int x = 0; x < kWidth; ++x) {
          bytes_[static_cast<size_t>(y * kStride + x)] =
              static_cast<std::byte>(std::clamp(scene(5 * x, 5 * y, index_), 0, 255));
        }
      }
      frame_.bytes = bytes_;
      frame_.info.timestamp_sof_ns =
          1 * kSecond + static_cast<uint64_t>(index_) * 50 * kMillisecond;
      ++index_;
      is_suspect = monitor.update(frame_, prediction);
    }
    return is_suspect;
  }
  void wait(int duration_ms) { index_ += duration_ms / 50; }

  View() {
    frame_.layout.width_px = kWidth;
    frame_.layout.height_px = kHeight;
    frame_.layout.y_stride = kStride;
    frame_.layout.size_bytes = kStride * kHeight;
  }

 private:
  static constexpr int kWidth = 128, kHeight = 96, kStride = 192;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kStride * kHeight, std::byte{255});
  Frame frame_;
  int index_ = 0;
};

Prediction face_at(float x, float y, float prob = 0.9F) {
  Prediction prediction = fake_prediction(0);
  prediction.left.face_position = {x, y};
  prediction.left.face_prob = prob;
  return prediction;
}

TEST(ViewMonitor, MeasuresWhatItSees) {
  View view;
  view.show([](int x, int, int) { return x < 320 ? 16 : 235; }, 50);
  const LumaStatistics& seen = view.monitor.statistics();
  EXPECT_NEAR(seen.mean, 0.5, 1e-9);
  EXPECT_NEAR(seen.deviation, 0.5, 1e-9);
  EXPECT_NEAR(seen.dark_share, 0.5, 1e-9);
  EXPECT_NEAR(seen.saturated_share, 0.5, 1e-9);
  EXPECT_FALSE(seen.has_change);
  view.show([](int, int, int) { return 235; }, 50);
  EXPECT_TRUE(seen.has_change);
  EXPECT_NEAR(seen.change, 0.5, 1e-9);
  EXPECT_NEAR(seen.deviation, 0, 1e-9);
}

TEST(ViewMonitor, GoodViewsAreNotSuspect) {
  for (const Scene& scene : {Scene(cabin), Scene(night)}) {
    View view;
    const Prediction face = face_at(0.2F, 0.1F);
    EXPECT_FALSE(view.show(scene, 5000, &face));
  }
}

struct Row {
  const char* name;
  Scene scene;
  ViewFault fault;
};
class ViewFaults : public testing::TestWithParam<Row> {};

TEST_P(ViewFaults, ComesAfterASecondAndGoesAfterASecond) {
  View view;
  EXPECT_FALSE(view.show(cabin, 2000));
  EXPECT_FALSE(view.show(GetParam().scene, 950)) << "A short one is nothing.";
  EXPECT_FALSE(view.show(cabin, 500));
  EXPECT_FALSE(view.show(GetParam().scene, 950)) << "It does not add up.";
  EXPECT_TRUE(view.show(GetParam().scene, 200));
  EXPECT_EQ(view.monitor.fault(), GetParam().fault);
  EXPECT_TRUE(view.show(cabin, 950)) << "Not trusted again at once.";
  EXPECT_TRUE(view.show(GetParam().scene, 100));
  EXPECT_FALSE(view.show(cabin, 1200));
  EXPECT_EQ(view.monitor.fault(), ViewFault::None);
}

INSTANTIATE_TEST_SUITE_P(Luma, ViewFaults,
                         testing::Values(Row{"Dark", dark, ViewFault::Dark},
                                         Row{"Saturated", burnt_out, ViewFault::Saturated},
                                         Row{"Flat", hand, ViewFault::Flat},
                                         Row{"Frozen", frozen, ViewFault::Frozen}),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(ViewMonitor, ALevelBetweenTheTwoLimitsKeepsWhatWas) {
  // Flat begins below 4 grey levels and ends above 5.2. A square wave of +-4.5 has a deviation of 4.5.
  const Scene between = [](int x, int, int index) {
    return 100 + (x / 80 % 2 == 0 ? 9 : 0) + index % 2;
  };
  View view;
  EXPECT_FALSE(view.show(between, 3000));
  EXPECT_NEAR(view.monitor.statistics().deviation * 219, 4.5, 0.2);
  EXPECT_TRUE(view.show(hand, 1500));
  EXPECT_TRUE(view.show(between, 3000));
  EXPECT_FALSE(view.show(cabin, 1500));
}

TEST(ViewMonitor, AFaceThatStaysAtTheEdgeIsAMisaimedCamera) {
  View view;
  const Prediction middle = face_at(0.1F, 0), edge = face_at(0.1F, -0.45F);
  EXPECT_FALSE(view.show(cabin, 1000, &middle));
  EXPECT_FALSE(view.show(cabin, 3000, &edge)) << "Somebody bends down.";
  EXPECT_FALSE(view.show(cabin, 1000, &middle));
  EXPECT_TRUE(view.show(cabin, 7000, &edge));
  EXPECT_EQ(view.monitor.fault(), ViewFault::FaceAtEdge);
  EXPECT_FALSE(view.show(cabin, 1500, &middle));
}

TEST(ViewMonitor, NoFaceForLongIsSuspect) {
  View view;
  const Prediction face = face_at(0, 0), none = face_at(0, 0, 0.1F);
  EXPECT_FALSE(view.show(cabin, 1000, &face));
  EXPECT_FALSE(view.show(cabin, 29000, &none));
  EXPECT_TRUE(view.show(cabin, 3000, &none));
  EXPECT_EQ(view.monitor.fault(), ViewFault::NoFace);
  EXPECT_FALSE(view.show(cabin, 1500, &face));
}

TEST(ViewMonitor, WhatIsNotKnownCountsForNoFaceFault) {
  View view;
  const Prediction none = face_at(0, 0, 0.1F);
  Prediction unknown = none;
  unknown.known_left = unknown.known_right = bit(DriverField::FaceProb);
  EXPECT_FALSE(view.show(cabin, 20000, &none));
  EXPECT_FALSE(view.show(cabin, 20000, nullptr)) << "No result for 20 s is not no face.";
  EXPECT_FALSE(view.show(cabin, 20000, &unknown));
  EXPECT_FALSE(view.show(cabin, 9000, &none));
  EXPECT_TRUE(view.show(cabin, 3000, &none));
}

TEST(ViewMonitor, AGapBeginsAnew) {
  View view;
  const Prediction none = face_at(0, 0, 0.1F);
  EXPECT_FALSE(view.show(cabin, 20000, &none));
  view.wait(60000);
  EXPECT_FALSE(view.show(cabin, 20000, &none));
  EXPECT_FALSE(view.show(dark, 500));
  view.wait(60000);
  EXPECT_FALSE(view.show(dark, 500));
}

TEST(ViewMonitor, InTheHostItInformsAndDoesNotBlock) {
  HostRig rig;  // its pictures are black
  rig.options.watches_view = true;
  rig.start();
  rig.calibrate();
  FrameReport report;
  for (int i = 0; i < 30; ++i) report = rig.process_next();
  expect_fresh(report, 1029);
  EXPECT_EQ(report.quality.reasons, Reasons(Reason::ViewSuspect));
  EXPECT_EQ(rig.host->view_fault(), "dark");
}

}  // namespace
}  // namespace ignis::pipeline
