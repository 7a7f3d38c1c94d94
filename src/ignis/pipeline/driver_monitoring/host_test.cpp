#include "ignis/pipeline/driver_monitoring/host.h"

#include "ignis/pipeline/driver_monitoring/testing/test_host_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace ignis::pipeline {
namespace {

TEST(Host, AGoodFrameIsValidAndTellsItsAges) {
  HostRig rig;
  rig.start();
  rig.calibrate(/*age_ns=*/20 * kMillisecond);
  const FrameReport report = rig.process_next();
  expect_fresh(report, 1000);
  EXPECT_TRUE(report.has_state);
  EXPECT_TRUE(report.quality.reasons.is_empty());
  EXPECT_EQ(report.quality.frame_age_ns, 15 * kMillisecond);
  EXPECT_EQ(report.quality.receive_ns, 1 * kMillisecond);
  EXPECT_EQ(report.quality.calibration_age_ns, 70 * kMillisecond);
  EXPECT_EQ(report.quality.publish_time_ns, rig.now_ns);
  EXPECT_EQ(report.quality.upload_ns, 1000U);
  EXPECT_EQ(report.quality.warp_ns, 2000U);
  EXPECT_EQ(report.quality.model_ns, 3000U);
  EXPECT_EQ(report.quality.read_back_ns, 4000U);
  EXPECT_FLOAT_EQ(report.state.gpu_execution_time_s, 9e-6F);
  EXPECT_STREQ(report.quality.profile.data(), "fake");
  EXPECT_EQ(report.quality.profile_version, 3U);
  EXPECT_EQ(report.quality.warp_id, 0x70001U);  // warp 7, camera version 1
  EXPECT_EQ(report.quality.model_hash[0], std::byte{0xA5});
  EXPECT_EQ(report.quality.writer_id, 0xF00DU);
}

TEST(Host, TheBindIsDoneBeforeTheFirstFrameAndNeverPublished) {
  HostRig rig;
  rig.options.publishes_raw = true;
  rig.start();
  ASSERT_TRUE(rig.host->prepare(layout_a()));
  EXPECT_EQ(rig.script->binds_done(), 1);
  EXPECT_EQ(rig.script->runs_done(), 0);
  const FrameReport report = rig.process_next();
  expect_fresh(report, 1000);
  EXPECT_EQ(rig.script->binds_done(), 1) << "The first frame's producer is no new one.";
  const float raw[] = {1000, 1};
  ASSERT_EQ(report.state.raw_predictions.size(), sizeof(raw));
  EXPECT_TRUE(std::equal(std::begin(raw), std::end(raw),
                         reinterpret_cast<const float*>(report.state.raw_predictions.data())));
}

TEST(Host, PrepareTellsWhatIsWrong) {
  HostRig rig;
  rig.start();
  FrameLayout unknown = layout_a();
  unknown.height_px = 1200;
  const Status status = rig.host->prepare(unknown);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason(), "UnknownGeometry");

  Host none(nullptr, Reason::SliceWidth, rig.options);
  const Status no_model = none.prepare(layout_a());
  ASSERT_FALSE(no_model);
  EXPECT_EQ(no_model.error().reason(), "ModelUnavailable");

  rig.script->refuse_width(1344);
  const Status refused = rig.host->prepare(layout_b());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Unsupported);
  EXPECT_TRUE(rig.host->prepare(layout_a())) << "Another size is not refused for that.";
}

TEST(Host, ASlowBindGoesOnBesideTheFrames) {
  HostRig rig;
  rig.options.run_limit = std::chrono::milliseconds(20);
  rig.script->add_binds(FakeScript::Step::Hang);
  rig.start();
  for (uint32_t i = 0; i < 3; ++i) {
    const FrameReport report = rig.process_next();
    expect_empty(report, 1000 + i);
    EXPECT_TRUE(report.quality.reasons.has(Reason::LayoutChanged));
    EXPECT_EQ(rig.host->model(), nullptr) << "It is busy.";
  }
  while (rig.script->hanging() == 0) std::this_thread::yield();
  rig.script->release();
  while (rig.host->model() == nullptr) std::this_thread::yield();
  // Later runs have a limit of 20 ms too; a busy machine may miss one, which restarts the model.
  EXPECT_LT(rig.frames_until_valid(200), 200);
  EXPECT_EQ(rig.host->counters().rebinds, 0U) << "The first bind is no change.";
}

TEST(Host, ABindThatHangsIsGivenUpAndAnotherModelMade) {
  HostRig rig;
  rig.options.run_limit = std::chrono::milliseconds(50);
  rig.options.bind_limit = std::chrono::seconds(2);  // of the fake clock
  rig.script->add_binds(FakeScript::Step::Hang);
  rig.start();
  bool has_timed_out = false;
  int frames = 0;
  for (; frames < 400; ++frames) {
    const FrameReport report = rig.process_next();
    has_timed_out = has_timed_out || report.quality.reasons.has(Reason::RunTimeout);
    if (report.quality.valid) break;
  }
  EXPECT_TRUE(has_timed_out);
  EXPECT_LT(frames, 400);
  EXPECT_GE(rig.host->counters().restarts, 1U);
  rig.script->release();
}

TEST(Host, ARefusedLayoutIsUnknownGeometryWithoutRestarts) {
  HostRig rig;
  rig.script->refuse_width(1344);
  rig.start();
  rig.calibrate();
  expect_fresh(rig.process_next(), 1000);
  rig.layout = layout_b();
  for (uint32_t i = 1; i < 5; ++i) {
    const FrameReport report = rig.process_next();
    expect_empty(report, 1000 + i);
    EXPECT_EQ(report.quality.reasons, Reasons(Reason::UnknownGeometry));
  }
  EXPECT_EQ(rig.script->binds_done(), 2) << "Asked once.";
  EXPECT_EQ(rig.host->counters().restarts, 0U);
  rig.layout = layout_a();
  expect_fresh(rig.process_next(), 1005);
}

TEST(Host, OtherIntrinsicsBindAnew) {
  HostRig rig;
  rig.start();
  expect_fresh(rig.process_next(), 1000);
  Camera measured = known_cameras()[0];
  measured.version = 2;
  measured.center_x_px = 960;
  rig.host->set_cameras({measured});
  expect_fresh(rig.process_next(), 1001);
  EXPECT_EQ(rig.host->counters().rebinds, 1U);
  EXPECT_FLOAT_EQ(rig.script->last_matrix()[2], 240);  // 960 - 720
}

TEST(Host, RestartIsTheWayOutOfUnavailable) {
  HostRig rig;
  rig.script->add_runs(FakeScript::Step::Fail, 4);  // the first run and all three tries
  rig.start();
  for (int i = 0; i < 100; ++i) rig.process_next();
  EXPECT_EQ(rig.host->counters().restarts, 3U);
  FrameReport report = rig.process_next();
  EXPECT_TRUE(report.quality.reasons.has(Reason::ModelUnavailable));
  EXPECT_TRUE(report.quality.reasons.has(Reason::RunFailed)) << "It still says why.";
  EXPECT_EQ(rig.script->runs_done(), 4) << "Nothing tries it any more.";
  rig.host->restart();
  EXPECT_EQ(rig.frames_until_valid(5), 0);
}

TEST(Host, AModelThatFailsNowAndThenHasAllItsTriesEachTime) {
  HostRig rig;
  rig.start();
  for (int round = 0; round < 5; ++round) {
    rig.script->add_runs(FakeScript::Step::Fail);
    EXPECT_FALSE(rig.process_next().quality.valid);
    ASSERT_LE(rig.frames_until_valid(100), 21);  // 1 s of 50 ms
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(rig.process_next().quality.valid);
  }
}

TEST(Host, ARestartIsBoundAgainWhenNothingMakesAModel) {
  HostRig rig;
  rig.options.make_model = {};
  rig.start();
  expect_fresh(rig.process_next(), 1000);
  rig.script->add_runs(FakeScript::Step::DeviceLost);
  EXPECT_TRUE(rig.process_next().quality.reasons.has(Reason::RunFailed));
  EXPECT_EQ(rig.frames_until_valid(100), 19);  // those within 1 s after the failure
  EXPECT_EQ(rig.script->binds_done(), 2);
}

TEST(Host, AHungModelThatNothingReplacesIsTakenBackWhenItReturns) {
  HostRig rig;
  rig.options.make_model = {};
  rig.options.run_limit = std::chrono::milliseconds(50);
  rig.start();
  rig.script->add_runs(FakeScript::Step::Hang);
  int frames = 0;
  while (rig.script->hanging() == 0 && frames++ < 400) rig.process_next();
  ASSERT_EQ(rig.script->hanging(), 1);
  EXPECT_EQ(rig.host->model(), nullptr);
  rig.script->release();
  while (rig.script->hanging() != 0 || rig.host->model() == nullptr) std::this_thread::yield();
  EXPECT_LT(rig.frames_until_valid(400), 400);
}

TEST(Host, ARemadeModelOfOtherContentIsRefused) {
  HostRig rig;
  rig.options.make_model = [s = rig.script]() -> Result<std::unique_ptr<Model>> {
    auto other = std::make_unique<FakeModel>(s);
    other->identity().hash[0] = std::byte{0x5A};
    return std::unique_ptr<Model>(std::move(other));
  };
  rig.start();
  rig.script->add_runs(FakeScript::Step::Fail);
  rig.process_next();
  FrameReport report;
  for (int i = 0; i < 100; ++i) report = rig.process_next();
  EXPECT_TRUE(report.quality.reasons.has(Reason::ArtifactMismatch));
  EXPECT_TRUE(report.quality.reasons.has(Reason::ModelUnavailable));
}

TEST(Host, AnAlsoBlockingReasonBlocks) {
  HostRig rig;
  rig.options.also_blocking = Reason::CalibMissing;
  rig.start();
  expect_empty(rig.process_next(), 1000);
  rig.calibrate();
  expect_fresh(rig.process_next(), 1001);
}

TEST(Host, FixedAnglesNeverGrowOld) {
  HostRig rig;
  rig.options.fixed_rpy_rad = {0.0F, 0.1F, -0.1F};
  rig.start();
  rig.now_ns += 100 * kSecond;
  rig.calibrate();
  const FrameReport report = rig.process_next();
  EXPECT_TRUE(report.quality.reasons.is_empty());
  EXPECT_EQ(report.quality.calibration_age_ns, 0U);
  EXPECT_EQ(rig.script->last_rpy_rad(), (std::array{0.0F, 0.1F, -0.1F}));
}

TEST(Host, WhatTheProfileCannotKnowIsZeroAndUnknown) {
  HostRig rig;
  Decoded decoded;
  decoded.prediction = fake_prediction(1000);
  decoded.prediction.known_left = bit(DriverField::FaceProb) | bit(DriverField::FacePosition) |
                                  bit(DriverField::FaceOrientation);
  decoded.prediction.known_right = 0;
  decoded.prediction.known_wheel = false;
  rig.script->set_decoded(decoded);
  rig.start();
  const FrameReport report = rig.process_next();
  EXPECT_TRUE(report.quality.valid);
  EXPECT_EQ(report.state.right, DriverData());
  EXPECT_EQ(report.state.wheel_on_right_prob, 0);
  EXPECT_FLOAT_EQ(report.state.left.face_prob, 0.9F);
  EXPECT_EQ(report.state.left.left_eye_prob, 0);
  EXPECT_EQ(report.state.left.face_orientation_std, (std::array{0.0F, 0.0F, 0.0F}));
  EXPECT_TRUE(report.state.left.has_lists);
  EXPECT_EQ(report.quality.known_left, decoded.prediction.known_left);
}

TEST(Host, LowConfidenceIsThatOfTheSurerSide) {
  struct Row {
    float left_prob, right_prob, left_pitch_std, left_yaw_std, left_roll_std;
    bool is_low;
  };
  const Row rows[] = {
      {0.9F, 0.1F, 0.1F, 0.1F, 0.1F, false}, {0.69F, 0.1F, 0.1F, 0.1F, 0.1F, true},
      {0.9F, 0.1F, 0.31F, 0.1F, 0.1F, true}, {0.9F, 0.1F, 0.1F, 0.31F, 0.1F, true},
      {0.9F, 0.1F, 0.1F, 0.1F, 0.9F, false},  // roll is not used
      {0.9F, 0.95F, 0.1F, 0.1F, 0.1F, true},  // the right side is surer, its stds are 5
  };
  for (const Row& row : rows) {
    HostRig rig;
    Decoded decoded;
    decoded.prediction = fake_prediction(1000);
    decoded.prediction.left.face_prob = row.left_prob;
    decoded.prediction.right.face_prob = row.right_prob;
    decoded.prediction.left.face_orientation_std = {row.left_pitch_std, row.left_yaw_std,
                                                    row.left_roll_std};
    rig.script->set_decoded(decoded);
    rig.start();
    const FrameReport report = rig.process_next();
    EXPECT_TRUE(report.quality.valid);
    EXPECT_EQ(report.quality.reasons.has(Reason::LowConfidence), row.is_low)
        << row.left_prob << " " << row.left_pitch_std;
  }
}

TEST(Host, TheFrameIsLetGoWhenItsReportIsMade) {
  HostRig rig;
  rig.start();
  std::weak_ptr<FakeMemory> memory;
  {
    const Frame frame = rig.next_frame();
    memory = rig.memory;
    rig.memory.reset();
    rig.process(frame);
  }
  EXPECT_TRUE(memory.expired()) << "A ring's slot would stay pinned.";
}

TEST(Host, ItEndsWhileAModelHangs) {
  auto rig = std::make_unique<HostRig>();
  const std::shared_ptr<FakeScript> script = rig->script;
  rig->options.run_limit = std::chrono::milliseconds(50);
  rig->start();
  script->add_runs(FakeScript::Step::Hang);
  for (int i = 0; i < 400 && script->hanging() == 0; ++i) rig->process_next();
  ASSERT_EQ(script->hanging(), 1);
  rig.reset();  // does not wait for it
  EXPECT_EQ(script->hanging(), 1);
  script->release();
  while (script.use_count() > 1) std::this_thread::yield();  // the thread frees what it held
}

TEST(Reasons, EachIsExplained) {
  std::ifstream file(std::string(IGNIS_SOURCE_DIR) + "/docs/driver-monitoring.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (int i = 0; i < kReasonCount; ++i) {
    const auto reason = static_cast<Reason>(i);
    const std::string row = "| " + std::to_string(i) + " | `" + std::string(to_string(reason)) +
                            "` | " + (kBlockingReasons.has(reason) ? "yes" : "no") + " |";
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(Watchdog, SpeaksOfTheLastFrameTwiceASecond) {
  HostRig rig;
  rig.start();
  rig.calibrate();
  expect_fresh(rig.process_next(), 1000);
  const uint64_t frame_ns = rig.now_ns;
  std::vector<uint64_t> at_ms;
  while (rig.now_ns < frame_ns + 2 * kSecond) {
    rig.now_ns += 10 * kMillisecond;
    const std::optional<FrameReport> report = rig.host->check_watchdog();
    if (!report) continue;
    const uint64_t since_ns = rig.now_ns - frame_ns;
    at_ms.push_back(since_ns / kMillisecond);
    EXPECT_FALSE(report->has_state) << "Only the companion is published.";
    EXPECT_FALSE(report->quality.valid);
    EXPECT_EQ(report->quality.reasons, Reasons(Reason::FrameTimeout));
    EXPECT_EQ(report->quality.frame_id, 1000U);
    EXPECT_EQ(report->quality.frame_age_ns, since_ns + 15 * kMillisecond);
    EXPECT_EQ(report->quality.calibration_age_ns, since_ns + 50 * kMillisecond);
  }
  EXPECT_EQ(at_ms, (std::vector<uint64_t>{260, 760, 1260, 1760}));
  expect_fresh(rig.process_next(), 1001);
  rig.now_ns += 260 * kMillisecond;
  EXPECT_TRUE(rig.host->check_watchdog()) << "The second stop is told as soon as the first.";
}

TEST(Watchdog, SpeaksBeforeTheFirstFrame) {
  HostRig rig;
  rig.start();
  EXPECT_FALSE(rig.host->check_watchdog());
  rig.now_ns += 251 * kMillisecond;
  const std::optional<FrameReport> report = rig.host->check_watchdog();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->quality.frame_age_ns, kUnknownAge);
  EXPECT_EQ(report->quality.calibration_age_ns, kUnknownAge);
  EXPECT_TRUE(report->quality.reasons.has(Reason::FrameTimeout));
  EXPECT_TRUE(report->quality.reasons.has(Reason::CalibMissing));
}

}  // namespace
}  // namespace ignis::pipeline
