// One test for each weakness of the studied system (section 9 of the contract), named after it, and one for each row of the
// negative tests (10.6). Each shows that the rule holds in the host; what lies in a folder of its own has more tests there.

#include "ignis/pipeline/driver_monitoring/consumer/consumer.h"
#include "ignis/pipeline/driver_monitoring/profile.h"
#include "ignis/pipeline/driver_monitoring/slices.h"
#include "ignis/pipeline/driver_monitoring/testing/test_host_rig.h"
#include "ignis/pipeline/messages/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace ignis::pipeline {
namespace {

using Step = FakeScript::Step;
using Bytes = std::vector<std::byte>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// The vector of section 10.3.
std::vector<float> good_output() {
  std::vector<float> output(553);
  for (int i = 0; i < 553; ++i)
    output[static_cast<size_t>(i)] = static_cast<float>((37 * i) % 101 - 50) / 25;
  return output;
}

Bytes state_bytes(const FrameReport& report) {
  EventWriter writer;
  const auto bytes =
      writer.driver_state(report.state, report.quality.valid, /*log_mono_time_ns=*/1);
  EXPECT_TRUE(bytes);
  return Bytes(bytes->begin(), bytes->end());
}
Bytes quality_bytes(const FrameReport& report) {
  EventWriter writer;
  const auto bytes = writer.quality(report.quality);
  EXPECT_TRUE(bytes);
  return Bytes(bytes->begin(), bytes->end());
}

Result<HeadTable> table_with(const std::string& name, int64_t start, int64_t stop) {
  std::vector<NamedSlice> slices = default_slices(553).value();
  for (NamedSlice& slice : slices) {
    if (slice.name != name) continue;
    slice.start = start;
    slice.stop = stop;
  }
  return make_head_table(slices, 553);
}

TEST(Weakness01, ValidIsNotAlwaysTrue) {
  HostRig rig;
  rig.start();
  EXPECT_TRUE(rig.process_next().quality.valid);
  rig.script->add_runs(Step::Fail);
  const FrameReport report = rig.process_next();
  EXPECT_FALSE(report.quality.valid);
  EXPECT_TRUE(report.quality.reasons.has(Reason::RunFailed));
  const auto event = decode_driver_state(state_bytes(report));
  ASSERT_TRUE(event);
  EXPECT_FALSE(event->valid) << "The envelope says so too.";
}

TEST(Weakness02, NonFiniteValuesDoNotPassTheDecode) {
  HostRig rig;
  rig.start();
  std::vector<float> output = good_output();
  output[40] = kNan;
  rig.script->set_output(output);
  const FrameReport report = rig.process_next();
  expect_empty(report, 1000);
  EXPECT_TRUE(report.quality.reasons.has(Reason::NonFinite));
  EXPECT_STREQ(report.quality.non_finite_head.data(), "wheel_on_right");

  // A decode that looks away is not trusted either.
  for (const float bad : {-0.1F, 1.1F, kNan}) {
    Decoded decoded;
    decoded.prediction = fake_prediction(0);
    decoded.prediction.right.phone_prob = bad;
    rig.script->set_decoded(decoded);
    EXPECT_FALSE(rig.process_next().quality.valid) << bad;
  }
  for (const float bad : {0.0F, -1.0F, kNan}) {
    Decoded decoded;
    decoded.prediction = fake_prediction(0);
    decoded.prediction.left.face_position_std[1] = bad;
    rig.script->set_decoded(decoded);
    EXPECT_FALSE(rig.process_next().quality.valid) << bad;
  }
}

TEST(Weakness03, ShortSlicesAndVectorsAreRefused) {
  const Result<HeadTable> table = table_with("face_descs_rhd", 20, 29);
  ASSERT_FALSE(table);
  EXPECT_TRUE(load_reasons(table.error()).has(Reason::SliceWidth));

  HostRig rig;
  rig.start();
  std::vector<float> output = good_output();
  output.pop_back();
  rig.script->set_output(output);
  const FrameReport report = rig.process_next();
  expect_empty(report, 1000);
  EXPECT_TRUE(report.quality.reasons.has(Reason::OutputSize));
}

TEST(Weakness04, TheStartOfTheFrameIsCarried) {
  HostRig rig;
  rig.start();
  Frame frame = rig.next_frame();
  const FrameReport report = rig.process(frame);
  const auto quality = decode_quality(quality_bytes(report));
  ASSERT_TRUE(quality);
  EXPECT_EQ(quality->timestamp_sof_ns, frame.info.timestamp_sof_ns);
  EXPECT_EQ(quality->timestamp_eof_ns, frame.info.timestamp_eof_ns);
  EXPECT_EQ(quality->receive_time_ns, frame.info.receive_time_ns);
  EXPECT_EQ(quality->publish_time_ns, rig.now_ns);
  EXPECT_EQ(quality->frame_age_ns, rig.now_ns - frame.info.timestamp_sof_ns);
}

TEST(Weakness05, ACameraIsNotChosenByItsWidth) {
  HostRig rig;
  Camera with_sensor = known_cameras()[0];
  with_sensor.sensor_id = 5;
  with_sensor.y_stride = 2048;
  rig.options.cameras = {with_sensor};
  rig.layout.sensor_id = 5;
  rig.start();
  EXPECT_TRUE(rig.process_next().quality.valid);
  const auto is_valid_with = [&](auto change) {
    rig.layout = layout_a();
    rig.layout.sensor_id = 5;
    change(rig.layout);
    const FrameReport report = rig.process_next();
    EXPECT_EQ(report.quality.valid, !report.quality.reasons.has(Reason::UnknownGeometry));
    return report.quality.valid;
  };
  EXPECT_TRUE(is_valid_with([](FrameLayout&) {}));
  EXPECT_FALSE(is_valid_with([](FrameLayout& layout) { layout.height_px = 1206; }));
  EXPECT_FALSE(is_valid_with([](FrameLayout& layout) { layout.width_px = 1926; }));
  EXPECT_FALSE(is_valid_with([](FrameLayout& layout) { layout.y_stride = 1928; }));
  EXPECT_FALSE(is_valid_with([](FrameLayout& layout) { layout.sensor_id = 6; }));
  EXPECT_NE(rig.host->last_error().find("1928"), std::string::npos) << rig.host->last_error();
}

TEST(Weakness06, TheMatrixIsNotKeptForEver) {
  HostRig rig;
  rig.start();
  rig.process_next();
  EXPECT_FLOAT_EQ(rig.script->last_matrix()[0], 1);
  EXPECT_FLOAT_EQ(rig.script->last_matrix()[2], 244);
  rig.layout = layout_b();
  expect_fresh(rig.process_next(), 1001);
  EXPECT_FLOAT_EQ(rig.script->last_matrix()[0], 0.75F);
  EXPECT_FLOAT_EQ(rig.script->last_matrix()[2], 132);
  EXPECT_EQ(rig.host->counters().rebinds, 1U);
  // Other intrinsics, another producer and a new mapping count too.
  Camera measured = known_cameras()[1];
  measured.version = 9;
  rig.host->set_cameras({measured});
  rig.process_next();
  EXPECT_EQ(rig.host->counters().rebinds, 2U);
  ++rig.next_info.server_id;
  rig.process_next();
  EXPECT_EQ(rig.host->counters().rebinds, 3U);
  ++rig.next_info.generation;
  expect_fresh(rig.process_next(), 1004);
  EXPECT_EQ(rig.host->counters().rebinds, 4U);
}

TEST(Weakness07, BuffersOfAnotherSizeAreNotReadWithTheOldMatrix) {
  HostRig rig;
  rig.options.run_limit = std::chrono::milliseconds(20);
  rig.start();
  ASSERT_TRUE(rig.host->prepare(layout_a()));
  // The new bind takes its time: until it is done, frames of the new size are not run at all.
  rig.script->add_binds(Step::Hang);
  rig.layout = layout_b();
  const int runs = rig.script->runs_done();
  for (uint32_t i = 0; i < 3; ++i) {
    const FrameReport report = rig.process_next();
    expect_empty(report, 1000 + i);
    EXPECT_TRUE(report.quality.reasons.has(Reason::LayoutChanged));
  }
  EXPECT_EQ(rig.script->runs_done(), runs);
  rig.script->release();
  // A frame that is shorter than its layout says is not run either.
  Frame torn = rig.next_frame();
  torn.bytes = torn.bytes.first(torn.bytes.size() - 1);
  EXPECT_TRUE(rig.process(torn).quality.reasons.has(Reason::LayoutChanged));
}

TEST(Weakness08, CalibrationIsNotTakenUnchecked) {
  HostRig rig;
  rig.start();
  rig.calibrate();
  Calibration wild;
  wild.rpy_rad = {3, 3, 3};
  wild.status = CalibrationStatus::Calibrated;
  wild.valid = true;
  wild.log_mono_time_ns = rig.now_ns;
  rig.host->calibrate(wild);
  EXPECT_TRUE(rig.process_next().quality.reasons.has(Reason::CalibShape));
  EXPECT_EQ(rig.script->last_rpy_rad(), (std::array{0.01F, 0.02F, 0.03F}));
}

TEST(Weakness09, CalibrationNeedsNoFrames) {
  HostRig rig;
  rig.start();
  for (int i = 0; i < 20; ++i) {  // 5 s without a frame
    rig.now_ns += 250 * kMillisecond;
    rig.calibrate();
  }
  const std::optional<FrameReport> report = rig.host->check_watchdog();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->quality.calibration_age_ns, 0U);
  EXPECT_EQ(report->quality.reasons, Reasons(Reason::FrameTimeout));
  EXPECT_TRUE(rig.process_next().quality.reasons.is_empty()) << "It is young at once.";
}

TEST(Weakness10, AnySizeWorksOnceItsCameraIsKnown) {
  HostRig rig;
  rig.layout = layout_a();
  rig.layout.width_px = 1280;
  rig.layout.height_px = 720;
  rig.layout.y_stride = 1280;
  rig.start();
  EXPECT_EQ(rig.process_next().quality.reasons & kBlockingReasons,
            Reasons(Reason::UnknownGeometry));
  rig.host->set_cameras({parse_camera("1280x720,focal=610").value()});
  expect_fresh(rig.process_next(), 1001);
  EXPECT_EQ(rig.script->bound_layout(), rig.layout);
  EXPECT_GT(rig.host->counters().last_bind_ns, 0U) << "What it cost is told.";
}

TEST(Weakness11, ARunErrorDoesNotEndTheHost) {
  HostRig rig;
  rig.script->add_runs(Step::Fail);
  rig.start();
  const FrameReport report = rig.process_next();
  expect_empty(report, 1000);
  EXPECT_TRUE(report.quality.reasons.has(Reason::RunFailed));
  EXPECT_EQ(rig.host->counters().run_failures, 1U);
  EXPECT_EQ(rig.frames_until_valid(30), 19) << "One try after a second, not one a frame.";
  EXPECT_EQ(rig.process_next().quality.restarts, 1U);
}

TEST(Weakness12, AnOldAddressIsNotAnOldBuffer) {
  HostRig rig;
  rig.start();
  const Frame before = rig.next_frame();
  rig.process(before);
  const int binds = rig.script->binds_done();
  ++rig.next_info.generation;
  const Frame after = rig.next_frame();
  ASSERT_EQ(before.bytes.data(), after.bytes.data());
  ASSERT_EQ(before.layout, after.layout);
  expect_fresh(rig.process(after), 1001);
  EXPECT_EQ(rig.script->binds_done(), binds + 1);
}

TEST(Weakness13, SilenceIsReported) {
  HostRig rig;
  rig.start();
  rig.process_next();
  int reports = 0;
  for (int i = 0; i < 100; ++i) {  // 10 s
    rig.now_ns += 100 * kMillisecond;
    if (const std::optional<FrameReport> report = rig.host->check_watchdog()) {
      ++reports;
      EXPECT_TRUE(report->quality.reasons.has(Reason::FrameTimeout));
      EXPECT_FALSE(report->has_state);
    }
  }
  EXPECT_EQ(reports, 20);  // 2 Hz
}

TEST(Weakness14, TheFirstFrameFindsAllReady) {
  HostRig rig;
  rig.start();
  ASSERT_TRUE(rig.host->prepare(layout_a()));
  const int binds = rig.script->binds_done();
  EXPECT_EQ(binds, 1);
  expect_fresh(rig.process_next(), 1000);  // and nothing of the dry run
  EXPECT_EQ(rig.script->binds_done(), binds);
}

TEST(Weakness15, DeviceTimesAreKeptApart) {
  HostRig rig;
  rig.start();
  const auto quality = decode_quality(quality_bytes(rig.process_next()));
  ASSERT_TRUE(quality);
  EXPECT_EQ(quality->queue_ns, 5000U);
  EXPECT_EQ(quality->device_ns, 6000U);
  EXPECT_EQ(quality->read_back_ns, 4000U);
}

TEST(Weakness16, RawPredictionsNeedAYes) {
  for (const char* off : {"", "0", "false", "No", "off"}) {
    const Result<bool> is_on = parse_switch(off);
    ASSERT_TRUE(is_on) << off;
    EXPECT_FALSE(*is_on) << off;
  }
  for (const char* on : {"1", "true", "YES"}) EXPECT_TRUE(parse_switch(on).value()) << on;
  EXPECT_FALSE(parse_switch("perhaps"));

  EXPECT_FALSE(HostOptions().publishes_raw);
  for (const bool is_on : {false, true}) {
    HostRig rig;
    rig.options.publishes_raw = is_on;
    rig.script->set_output(good_output());
    rig.start();
    EXPECT_EQ(rig.process_next().state.raw_predictions.size(), is_on ? 553 * sizeof(float) : 0);
    rig.script->add_runs(Step::Fail);
    EXPECT_TRUE(rig.process_next().state.raw_predictions.empty()) << "Those of another frame.";
  }
}

TEST(Weakness17, LensAndPoseConstantsHaveOneVersion) {
  HostRig rig;
  rig.start();
  const uint32_t before = rig.process_next().quality.warp_id;
  Camera changed = known_cameras()[0];
  changed.pose_focal_px = 600;
  ++changed.version;
  rig.host->set_cameras({changed});
  const FrameReport report = rig.process_next();
  EXPECT_EQ(rig.host->counters().rebinds, 1U);
  EXPECT_NE(report.quality.warp_id, before) << "A consumer with the old constants can tell.";
  EXPECT_EQ(report.quality.warp_id, published_warp_id(7, changed));
}

TEST(Weakness18, AbsentDataIsUnknownAndNeverAttentive) {
  HostRig rig;
  rig.start();
  rig.calibrate();
  ConsumerOptions options;
  options.camera = known_cameras()[0];
  Consumer consumer(options);
  CarState car;
  car.is_known = true;
  car.speed_mps = 20;
  Verdict verdict;
  const auto turn = [&] {
    const FrameReport report = rig.process_next();
    DriverMessage message;
    message.state = report.state;
    message.quality = report.quality;
    message.is_envelope_valid = report.quality.valid;
    verdict = consumer.step(&message, car, std::array{0.0F, 0.0F, 0.0F}, rig.now_ns);
  };
  for (int i = 0; i < 40; ++i) {
    rig.calibrate();
    turn();
  }
  EXPECT_EQ(verdict.unknown, Unknown::Nothing);
  EXPECT_EQ(verdict.face_seen, Answer::Yes);
  rig.script->add_runs(Step::Fail, 4);
  turn();
  EXPECT_EQ(verdict.attention, Attention::Unknown);
  EXPECT_EQ(verdict.face_seen, Answer::Unknown);
  EXPECT_NE(verdict.unknown, Unknown::Nothing);
}

// ---- 10.6 -------------------------------------------------------------------------------------------------------------

TEST(NegativeTests, ASliceThatEndsAt560Of553) {
  const Result<HeadTable> table = table_with("wheel_on_right", 40, 560);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().reason(), "SliceOutOfRange");
  HostRig rig;
  rig.host = std::make_unique<Host>(nullptr, load_reasons(table.error()), rig.options);
  const FrameReport report = rig.process_next();
  expect_empty(report, 1000);
  EXPECT_TRUE(report.quality.reasons.has(Reason::SliceOutOfRange));
  EXPECT_TRUE(report.quality.reasons.has(Reason::ModelUnavailable));
}

TEST(NegativeTests, ADescriptorOfNine) {
  const Result<HeadTable> table = table_with("face_descs_lhd", 0, 9);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().reason(), "SliceWidth");
  EXPECT_TRUE(load_reasons(table.error()).has(Reason::SliceWidth));
}

TEST(NegativeTests, NaNAtIndex3) {
  HostRig rig;
  rig.start();
  std::vector<float> output = good_output();
  output[3] = kNan;
  rig.script->set_output(output);
  const FrameReport report = rig.process_next();
  expect_empty(report, 1000);
  EXPECT_EQ(report.quality.reasons & kBlockingReasons, Reasons(Reason::NonFinite));
  EXPECT_STREQ(report.quality.non_finite_head.data(), "face_descs_lhd");
}

TEST(NegativeTests, NaNAtIndex100) {
  HostRig rig;
  rig.start();
  std::vector<float> output = good_output();
  output[100] = kNan;
  rig.script->set_output(output);
  const FrameReport report = rig.process_next();
  EXPECT_TRUE(report.quality.valid) << report.quality.reasons.bits();
  EXPECT_EQ(rig.host->counters().unused_non_finite, 1U);
  // The values of section 10.3.
  EXPECT_NEAR(report.state.left.face_prob, 0.4013123, 1e-6);
  EXPECT_NEAR(report.state.right.sleep_prob, 0.3015348, 1e-6);
  EXPECT_NEAR(report.state.wheel_on_right_prob, 0.6547535, 1e-6);
}

TEST(NegativeTests, SameWidthHeight1200) {
  HostRig rig;
  rig.layout.height_px = 1200;
  rig.start();
  const FrameReport report = rig.process_next();
  expect_empty(report, 1000);
  EXPECT_TRUE(report.quality.reasons.has(Reason::UnknownGeometry));
  EXPECT_EQ(rig.script->binds_done(), 0);
}

TEST(NegativeTests, WidthChangesFrom1928To1344) {
  HostRig rig;
  rig.start();
  for (uint32_t i = 0; i < 3; ++i) expect_fresh(rig.process_next(), 1000 + i);
  rig.layout = layout_b();
  ++rig.next_info.generation;
  for (uint32_t i = 3; i < 6; ++i) {
    const FrameReport report = rig.process_next();
    expect_fresh(report, 1000 + i);
    EXPECT_EQ(rig.script->bound_layout(), layout_b());
    EXPECT_EQ(rig.script->last_matrix(),
              (std::array{0.75F, 0.0F, 132.0F, 0.0F, 0.75F, 113.0F, 0.0F, 0.0F, 1.0F}));
  }
  EXPECT_EQ(rig.host->counters().rebinds, 1U);
}

TEST(NegativeTests, CalibrationOfTwoValues) {
  HostRig rig;
  rig.start();
  rig.calibrate();
  Calibration bad;
  bad.rpy_rad = {0.1F, 0.1F};
  bad.status = CalibrationStatus::Calibrated;
  bad.valid = true;
  bad.log_mono_time_ns = rig.now_ns;
  rig.host->calibrate(bad);
  const FrameReport report = rig.process_next();
  expect_fresh(report, 1000);
  EXPECT_EQ(report.quality.reasons, Reasons(Reason::CalibShape));
  EXPECT_EQ(rig.script->last_rpy_rad(), (std::array{0.01F, 0.02F, 0.03F}));
}

TEST(NegativeTests, CalibrationThatIsNotValid) {
  HostRig rig;
  rig.start();
  rig.calibrate();
  const uint64_t good_ns = rig.now_ns;
  while (rig.now_ns < good_ns + 2600 * kMillisecond) {
    Calibration bad;
    bad.rpy_rad = {0.1F, 0.1F, 0.1F};
    bad.status = CalibrationStatus::Calibrated;
    bad.valid = false;
    bad.log_mono_time_ns = rig.now_ns;
    rig.host->calibrate(bad);
    const FrameReport report = rig.process_next();
    EXPECT_TRUE(report.quality.valid);
    EXPECT_EQ(report.quality.reasons.has(Reason::CalibStale),
              rig.now_ns - good_ns > 2500 * kMillisecond);
    EXPECT_EQ(rig.script->last_rpy_rad()[0], 0.01F);
  }
}

TEST(NegativeTests, SofChangedOnly) {
  Bytes states[2], companions[2];
  for (size_t i = 0; i < 2; ++i) {
    HostRig rig;
    rig.start();
    Frame frame = rig.next_frame();
    frame.info.timestamp_sof_ns -= i * 10 * kMillisecond;
    const FrameReport report = rig.process(frame);
    EXPECT_TRUE(report.quality.valid);
    states[i] = state_bytes(report);
    companions[i] = quality_bytes(report);
  }
  EXPECT_EQ(states[0], states[1]);
  EXPECT_NE(companions[0], companions[1]);
}

TEST(NegativeTests, RawOptionZero) {
  HostRig rig;
  rig.options.publishes_raw = parse_switch("0").value();
  rig.start();
  const auto event = decode_driver_state(state_bytes(rig.process_next()));
  ASSERT_TRUE(event);
  EXPECT_TRUE(event->raw_predictions.empty());
}

TEST(NegativeTests, ServerRestartWithTheSameAddresses) {
  HostRig rig;
  rig.start();
  const Frame before = rig.next_frame();
  rig.process(before);
  ++rig.next_info.server_id;
  rig.next_info.frame_id = 1;
  const Frame after = rig.next_frame();
  ASSERT_EQ(before.bytes.data(), after.bytes.data());
  const int binds = rig.script->binds_done();
  expect_fresh(rig.process(after), 1);
  EXPECT_EQ(rig.script->binds_done(), binds + 1);
}

}  // namespace
}  // namespace ignis::pipeline
