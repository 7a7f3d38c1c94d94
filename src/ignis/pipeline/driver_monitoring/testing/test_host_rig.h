#pragma once

#include "ignis/pipeline/driver_monitoring/host.h"
#include "ignis/pipeline/driver_monitoring/testing/test_fake_model.h"
#include "ignis/pipeline/frames/frame.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ignis::pipeline {

inline constexpr uint64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;

/// The layout of section 2.1 for the two cabin cameras; the numbers are the table's.
inline FrameLayout layout_a() {
  FrameLayout layout;
  layout.width_px = 1928;
  layout.height_px = 1208;
  layout.y_stride = layout.uv_stride = 2048;
  layout.u_offset = 2490368;
  layout.v_offset = 2490369;
  layout.size_bytes = 4804608;
  return layout;
}
inline FrameLayout layout_b() {
  FrameLayout layout;
  layout.width_px = 1344;
  layout.height_px = 760;
  layout.y_stride = layout.uv_stride = 1408;
  layout.u_offset = 1081344;
  layout.v_offset = 1081345;
  layout.size_bytes = 2428928;
  return layout;
}

/// A frame's memory that a test can make "written over", now or after some looks at it.
class FakeMemory final : public FrameMemory {
 public:
  bool is_intact() const override { return looks_left_.fetch_sub(1) > 0; }
  void overwrite_after(int looks) { looks_left_ = looks; }

 private:
  mutable std::atomic<int> looks_left_{1'000'000'000};
};

/// A host with a fake model, a fake clock and a camera that makes a frame of its own every 50 ms.
class HostRig {
 public:
  std::shared_ptr<FakeScript> script = std::make_shared<FakeScript>();
  uint64_t now_ns = 100 * kSecond;
  HostOptions options;
  FrameLayout layout = layout_a();
  FrameInfo next_info;  ///< of the next frame; a test changes what it likes
  std::unique_ptr<Host> host;

  HostRig() {
    options.watches_view = false;
    options.writer_id = 0xF00D;
    options.run_limit = std::chrono::seconds(10);  // of the real clock: slow machines are no hangs
    options.now_ns = [this] { return now_ns; };
    options.make_model = [s = script]() -> Result<std::unique_ptr<Model>> {
      IGNIS_TRY(s->next_make());
      return std::unique_ptr<Model>(std::make_unique<FakeModel>(s));
    };
    next_info.frame_id = 1000;
    next_info.server_id = 11;
    next_info.generation = 1;
  }
  /// After the options are set.
  void start() {
    host = std::make_unique<Host>(std::make_unique<FakeModel>(script), Reasons(), options);
  }
  void calibrate(uint64_t age_ns = 0) {
    Calibration calibration;
    calibration.rpy_rad = {0.01F, 0.02F, 0.03F};
    calibration.status = CalibrationStatus::Calibrated;
    calibration.valid = true;
    calibration.log_mono_time_ns = now_ns - age_ns;
    host->calibrate(calibration);
  }

  /// 50 ms later: the camera's next frame, 15 ms old.
  Frame next_frame() {
    now_ns += 50 * kMillisecond;
    Frame frame;
    frame.layout = layout;
    frame.info = next_info;
    frame.info.timestamp_sof_ns = now_ns - 15 * kMillisecond;
    frame.info.timestamp_eof_ns = now_ns - 5 * kMillisecond;
    frame.info.receive_time_ns = now_ns - 1 * kMillisecond;
    frame.bytes = pixels();
    memory = std::make_shared<FakeMemory>();
    frame.memory = memory;
    ++next_info.frame_id;
    return frame;
  }
  FrameReport process(const Frame& frame) { return host->process(frame); }
  FrameReport process_next() { return host->process(next_frame()); }
  /// Frames until a report is valid, at most `limit`. \return how many were not.
  int frames_until_valid(int limit) {
    for (int i = 0; i < limit; ++i) {
      if (process_next().quality.valid) return i;
    }
    return limit;
  }

  std::shared_ptr<FakeMemory> memory;  ///< of the last frame

 private:
  std::span<const std::byte> pixels() const {
    static const std::vector<std::byte> bytes(4804608);
    return std::span(bytes).first(static_cast<size_t>(layout.size_bytes));
  }
};

/// Holds a report that is not valid to section 9.2: the right frame id, empty lists, zeros, nothing known, no raw bytes.
inline void expect_empty(const FrameReport& report, uint32_t frame_id) {
  EXPECT_FALSE(report.quality.valid);
  EXPECT_EQ(report.state.frame_id, frame_id);
  EXPECT_EQ(report.quality.frame_id, frame_id);
  EXPECT_EQ(report.state.left, DriverData());
  EXPECT_EQ(report.state.right, DriverData());
  EXPECT_EQ(report.state.wheel_on_right_prob, 0);
  EXPECT_TRUE(report.state.raw_predictions.empty());
  EXPECT_EQ(report.quality.known_left, 0U);
  EXPECT_EQ(report.quality.known_right, 0U);
  EXPECT_FALSE(report.quality.known_wheel);
  EXPECT_EQ(report.prediction.left, DriverData());
}

/// Holds a report to what the fake model says of just this frame.
inline void expect_fresh(const FrameReport& report, uint32_t frame_id) {
  EXPECT_TRUE(report.quality.valid) << "reasons " << report.quality.reasons.bits();
  EXPECT_TRUE((report.quality.reasons & kBlockingReasons).is_empty());
  EXPECT_EQ(report.state.frame_id, frame_id);
  EXPECT_EQ(report.quality.frame_id, frame_id);
  const Prediction expected = fake_prediction(frame_id);
  EXPECT_EQ(report.state.left, expected.left);
  EXPECT_EQ(report.state.right, expected.right);
  EXPECT_EQ(report.state.wheel_on_right_prob, expected.wheel_on_right_prob);
  EXPECT_EQ(report.quality.known_left, kAllDriverFields);
}

}  // namespace ignis::pipeline
