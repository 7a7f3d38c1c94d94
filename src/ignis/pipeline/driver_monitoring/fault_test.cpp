// The list of bad input as one suite: each row puts a fault into a running pipeline, looks for the typed reason, for values
// that are either this frame's or none at all, and for a valid report once the cause has ended. What needs a publisher or
// a log is in tests/pipeline.

#include "ignis/pipeline/driver_monitoring/profile.h"
#include "ignis/pipeline/driver_monitoring/slices.h"
#include "ignis/pipeline/driver_monitoring/testing/test_host_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ignis::pipeline {
namespace {

using Step = FakeScript::Step;
using Reports = std::vector<FrameReport>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// The vector of section 10.3.
std::vector<float> good_output() {
  std::vector<float> output(553);
  for (int i = 0; i < 553; ++i)
    output[static_cast<size_t>(i)] = static_cast<float>((37 * i) % 101 - 50) / 25;
  return output;
}
std::vector<float> output_with(size_t index, float value) {
  std::vector<float> output = good_output();
  output[index] = value;
  return output;
}

struct Fault {
  const char* name;
  Reasons expected;
  bool blocks;
  /// Brings the fault about and returns the reports made while it lasts.
  std::function<Reports(HostRig&)> inject;
  /// Ends the cause.
  std::function<void(HostRig&)> end = [](HostRig&) {};
  /// Frames that may pass after the end before one is valid.
  int frames_to_recover = 0;
  std::function<void(HostRig&)> prepare = [](HostRig&) {};
};

std::ostream& operator<<(std::ostream& out, const Fault& fault) { return out << fault.name; }

/// One frame, changed on its way.
std::function<Reports(HostRig&)> frame_with(const std::function<void(HostRig&, Frame&)>& change) {
  return [change](HostRig& rig) {
    Frame frame = rig.next_frame();
    change(rig, frame);
    return Reports{rig.process(frame)};
  };
}

Reports frames(HostRig& rig, int count) {
  Reports reports;
  for (int i = 0; i < count; ++i) reports.push_back(rig.process_next());
  return reports;
}

/// A calibration message comes in place of the good ones, then frames until the good one is `age_ns` old.
std::function<Reports(HostRig&)> calibration_of(
    std::vector<float> rpy_rad, uint64_t for_ns = 0,
    const std::function<void(Calibration&)>& change = {}) {
  return [=](HostRig& rig) {
    Calibration bad;
    bad.rpy_rad = rpy_rad;
    bad.status = CalibrationStatus::Calibrated;
    bad.valid = true;
    bad.log_mono_time_ns = rig.now_ns;
    if (change) change(bad);
    rig.host->calibrate(bad);
    rig.now_ns += for_ns;
    Reports reports = frames(rig, 1);
    EXPECT_EQ(rig.script->last_rpy_rad(), (std::array{0.01F, 0.02F, 0.03F})) << "last good kept";
    return reports;
  };
}
void calibrate_again(HostRig& rig) { rig.calibrate(); }

/// The model is refused when it is loaded: the slices are `change`d from good ones.
std::function<Reports(HostRig&)> slices_with(
    const std::function<void(std::vector<NamedSlice>&)>& change) {
  return [change](HostRig& rig) {
    std::vector<NamedSlice> slices = default_slices(553).value();
    change(slices);
    const Result<HeadTable> table = make_head_table(slices, 553);
    EXPECT_FALSE(table);
    const Reasons reasons = table ? Reasons() : load_reasons(table.error());
    EXPECT_TRUE(reasons.has(Reason::ModelUnavailable));
    rig.host = std::make_unique<Host>(nullptr, reasons, rig.options);
    rig.calibrate();
    return frames(rig, 3);
  };
}
NamedSlice& find_slice(std::vector<NamedSlice>& slices, const std::string& name) {
  const auto found = std::find_if(slices.begin(), slices.end(),
                                  [&](const NamedSlice& slice) { return slice.name == name; });
  EXPECT_NE(found, slices.end()) << name;
  return found != slices.end() ? *found : slices.front();
}
void load_good_model(HostRig& rig) {
  rig.start();
  rig.calibrate();
}

std::function<Reports(HostRig&)> output_of(const std::vector<float>& output) {
  return [output](HostRig& rig) {
    rig.script->set_output(output);
    return frames(rig, 2);
  };
}
void good_decode_again(HostRig& rig) { rig.script->set_output({}); }

std::function<Reports(HostRig&)> run_that(Step step, int count = 1) {
  return [step, count](HostRig& rig) {
    rig.script->add_runs(step, count);
    return frames(rig, 1);
  };
}
// One second of frames passes before a restart.
constexpr int kRestartFrames = 20;

std::vector<Fault> faults() {
  return {
      // ---- camera
      {"CameraStops", Reason::FrameTimeout, true,
       [](HostRig& rig) {
         Reports reports;
         for (int i = 0; i < 100; ++i) {
           rig.now_ns += 20 * kMillisecond;
           if (auto report = rig.host->check_watchdog()) reports.push_back(*report);
         }
         rig.calibrate();
         return reports;
       }},
      {"CameraRestartsWithAnotherSize",
       {},
       false,
       [](HostRig& rig) {
         rig.layout = layout_b();
         rig.next_info.frame_id = 1;
         ++rig.next_info.server_id;
         ++rig.next_info.generation;
         Reports reports = frames(rig, 3);
         EXPECT_EQ(rig.host->counters().rebinds, 1U);
         EXPECT_FLOAT_EQ(rig.script->last_matrix()[0], 0.75F);
         return reports;
       }},
      {"CameraRestartsWithAnUnknownSize", Reason::UnknownGeometry, true,
       [](HostRig& rig) {
         rig.layout.height_px = 1200;
         ++rig.next_info.server_id;
         return frames(rig, 3);
       },
       [](HostRig& rig) { rig.layout = layout_a(); }},
      {"RepeatedFrame", Reason::FrameRepeated, true,
       [](HostRig& rig) {
         const Frame frame = rig.next_frame();
         expect_fresh(rig.process(frame), frame.info.frame_id);
         return Reports{rig.process(frame), rig.process(frame)};
       }},
      {"FramesMissing", Reason::FrameIdGap, false,
       [](HostRig& rig) {
         rig.next_info.frame_id += 4;
         Reports reports = frames(rig, 1);
         EXPECT_EQ(reports[0].quality.dropped_frames, 4U);
         return reports;
       }},
      {"FrameIdGoesBack", Reason::FrameIdBackwards, true,
       [](HostRig& rig) {
         rig.next_info.frame_id -= 10;
         return frames(rig, 1);
       }},
      {"TimeJumpsBack", Reason::ClockJump, true, frame_with([](HostRig&, Frame& frame) {
         frame.info.timestamp_sof_ns -= 60 * kMillisecond;
       })},
      {"TimeJumpsAhead", Reason::ClockJump, true,
       frame_with([](HostRig&, Frame& frame) { frame.info.timestamp_sof_ns += kSecond; })},
      {"FrameIsOld", Reason::FrameStale, true,
       frame_with([](HostRig& rig, Frame&) { rig.now_ns += 140 * kMillisecond; })},
      {"FrameIsDisowned", Reason::FrameInvalidFlag, true,
       frame_with([](HostRig&, Frame& frame) { frame.info.valid = false; })},
      {"TornFrame", Reason::LayoutChanged, true,
       frame_with([](HostRig&, Frame& frame) { frame.bytes = frame.bytes.first(100'000); })},
      {"FrameWithoutBytes", Reason::LayoutChanged, true,
       frame_with([](HostRig&, Frame& frame) { frame.bytes = {}; })},
      {"FrameOfAnImpossibleLayout", Reason::LayoutChanged, true,
       frame_with([](HostRig&, Frame& frame) { frame.layout.y_stride = int64_t{1} << 60; })},
      {"FrameOverwrittenBeforeTheRun", Reason::FrameOverwritten, true,
       frame_with([](HostRig& rig, Frame&) { rig.memory->overwrite_after(0); })},
      {"FrameOverwrittenDuringTheRun", Reason::FrameOverwritten, true,
       frame_with([](HostRig& rig, Frame&) { rig.memory->overwrite_after(1); })},
      // ---- calibration
      {"CalibrationOfTwoValues", Reason::CalibShape, false, calibration_of({0.3F, 0.3F}),
       calibrate_again},
      {"CalibrationOfFourValues", Reason::CalibShape, false,
       calibration_of({0.3F, 0.3F, 0.3F, 0.3F}), calibrate_again},
      {"CalibrationNaN", Reason::CalibShape, false, calibration_of({0.3F, kNan, 0.3F}),
       calibrate_again},
      {"CalibrationOutOfRange", Reason::CalibShape, false, calibration_of({0.3F, 0.3F, 3.0F}),
       calibrate_again},
      {"CalibrationStops", Reason::CalibStale, false,
       calibration_of({0.3F, 0.3F, 0.3F}, 2600 * kMillisecond,
                      [](Calibration& c) { c.log_mono_time_ns -= 3 * kSecond; }),
       calibrate_again},
      {"CalibrationIsNotValid", Reason::CalibStale, false,
       calibration_of({0.3F, 0.3F, 0.3F}, 2600 * kMillisecond,
                      [](Calibration& c) { c.valid = false; }),
       calibrate_again},
      {"CalibrationIsNotDone", Reason::CalibStale, false,
       calibration_of({0.3F, 0.3F, 0.3F}, 2600 * kMillisecond,
                      [](Calibration& c) { c.status = CalibrationStatus::Recalibrating; }),
       calibrate_again},
      // ---- slices, found when the model is loaded
      {"SliceTooLong", Reasons(Reason::SliceOutOfRange) | Reason::ModelUnavailable, true,
       slices_with([](auto& slices) { find_slice(slices, "wheel_on_right").stop = 560; }),
       load_good_model},
      {"SliceShort", Reasons(Reason::SliceWidth) | Reason::ModelUnavailable, true,
       slices_with([](auto& slices) {
         NamedSlice& slice = find_slice(slices, "face_descs_lhd");
         slice.stop = *slice.start + 9;
       }),
       load_good_model},
      {"SlicesOverlap", Reasons(Reason::SliceOverlap) | Reason::ModelUnavailable, true,
       slices_with([](auto& slices) {
         NamedSlice& slice = find_slice(slices, "face_prob_lhd");
         slice.start = 3;
         slice.stop = 4;
       }),
       load_good_model},
      // ---- outputs
      {"OutputTooShort", Reason::OutputSize, true, output_of(std::vector<float>(552, 0.5F)),
       good_decode_again},
      {"OutputTooLong", Reason::OutputSize, true, output_of(std::vector<float>(554, 0.5F)),
       good_decode_again},
      {"OutputNaN", Reason::NonFinite, true, output_of(output_with(3, kNan)), good_decode_again},
      {"OutputInf", Reason::NonFinite, true, output_of(output_with(12, kInf)), good_decode_again},
      {"OutputAllZero", Reason::DegenerateOutput, true, output_of(std::vector<float>(553)),
       good_decode_again},
      {"OutputAllEqual", Reason::DegenerateOutput, true, output_of(std::vector<float>(553, 1.5F)),
       good_decode_again},
      {"OutputProbabilityAboveOne", Reason::RangeViolation, true,
       [](HostRig& rig) {
         Decoded decoded;
         decoded.prediction = fake_prediction(0);
         decoded.prediction.left.face_prob = 1.5F;
         rig.script->set_decoded(decoded);
         return frames(rig, 2);
       },
       [](HostRig& rig) { rig.script->set_decoded(std::nullopt); }},
      // ---- runs
      {"RunFails", Reason::RunFailed, true, run_that(Step::Fail), {}, kRestartFrames},
      {"DeviceIsLost", Reason::RunFailed, true, run_that(Step::DeviceLost), {}, kRestartFrames},
      {"RunThrows", Reason::RunFailed, true, run_that(Step::Throw), {}, kRestartFrames},
      {"RunIsLate", Reason::RunTimeout, true, run_that(Step::Timeout), {}, kRestartFrames},
      {"RunHangs",
       Reason::RunTimeout,
       true,
       [](HostRig& rig) {
         rig.script->add_runs(Step::Hang);
         Reports reports = frames(rig, 5);  // reports go on while it hangs
         EXPECT_EQ(rig.script->hanging(), 1);
         return reports;
       },
       {},
       kRestartFrames,
       [](HostRig& rig) { rig.options.run_limit = std::chrono::seconds(1); }},
      {"RunFailsAndTwoRestartsToo",
       Reason::RunFailed,
       true,
       [](HostRig& rig) {
         rig.script->add_runs(Step::Fail);
         rig.script->add_binds(Step::Fail, 2);
         return frames(rig, 1);
       },
       {},
       3 * (kRestartFrames + 1)},
      {"RunFailsAndNoModelCanBeMade", Reasons(Reason::RunFailed) | Reason::ModelUnavailable, true,
       [](HostRig& rig) {
         rig.script->add_runs(Step::Fail);
         rig.script->add_makes(Step::Fail, 3);
         frames(rig, 4 * (kRestartFrames + 1));
         rig.calibrate();
         return frames(rig, 40);
       },
       [](HostRig& rig) { rig.host->restart(); }},
      {"RunFailsAndNoRestartHelps", Reasons(Reason::RunFailed) | Reason::ModelUnavailable, true,
       [](HostRig& rig) {
         rig.script->add_runs(Step::Fail, 4);
         frames(rig, 4 * (kRestartFrames + 1));
         EXPECT_EQ(rig.host->counters().restarts, 3U) << "Three tries, then no more.";
         rig.calibrate();
         return frames(rig, 40);
       },
       [](HostRig& rig) { rig.host->restart(); }},
  };
}

class Faults : public testing::TestWithParam<Fault> {
 protected:
  void TearDown() override { rig.script->release(); }
  HostRig rig;
};

TEST_P(Faults, HasAReasonSellsNothingOldAndEnds) {
  const Fault& fault = GetParam();
  fault.prepare(rig);
  rig.start();
  rig.calibrate();
  for (int i = 0; i < 5; ++i) {
    const uint32_t id = rig.next_info.frame_id;
    const FrameReport report = rig.process_next();
    expect_fresh(report, id);
    EXPECT_TRUE(report.quality.reasons.is_empty());
  }

  const Reports reports = fault.inject(rig);
  ASSERT_FALSE(reports.empty());
  for (const FrameReport& report : reports) {
    ASSERT_EQ(report.quality.reasons, fault.expected)
        << "got bits " << report.quality.reasons.bits() << ", expected " << fault.expected.bits();
    EXPECT_EQ(report.quality.valid, !fault.blocks);
    if (report.quality.valid) {
      expect_fresh(report, report.quality.frame_id);
    } else {
      expect_empty(report, report.quality.frame_id);
    }
  }
  EXPECT_EQ((fault.expected & kBlockingReasons).is_empty(), !fault.blocks) << "row of the table";

  if (fault.end) fault.end(rig);
  EXPECT_LE(rig.frames_until_valid(fault.frames_to_recover + 1), fault.frames_to_recover);
  rig.calibrate();
  for (int i = 0; i < 3; ++i) {
    const uint32_t id = rig.next_info.frame_id;
    const FrameReport report = rig.process_next();
    expect_fresh(report, id);
    EXPECT_TRUE(report.quality.reasons.is_empty());
  }
}

INSTANTIATE_TEST_SUITE_P(BadInput, Faults, testing::ValuesIn(faults()),
                         [](const auto& row) { return std::string(row.param.name); });

// The same faults one behind the other in one host: none leaves anything behind for the next.
TEST(FaultsTogether, OneHostComesThroughAll) {
  HostRig rig;
  rig.options.run_limit = std::chrono::seconds(1);
  rig.start();
  for (const Fault& fault : faults()) {
    SCOPED_TRACE(fault.name);
    rig.calibrate();
    ASSERT_LE(rig.frames_until_valid(100), 30);
    // Forgiven, so that the row has all its tries.
    for (int i = 0; i < 110; ++i) {
      rig.calibrate();
      ASSERT_TRUE(rig.process_next().quality.valid);
    }
    const uint64_t restarts = rig.host->counters().restarts;
    if (std::string(fault.name) == "RunFailsAndNoRestartHelps" ||
        std::string(fault.name) == "RunFailsAndNoModelCanBeMade" ||
        std::string(fault.name) == "CameraRestartsWithAnotherSize") {
      continue;  // they count from the start of their host
    }
    for (const FrameReport& report : fault.inject(rig)) {
      EXPECT_EQ(report.quality.valid, !fault.blocks);
      if (!report.quality.valid) expect_empty(report, report.quality.frame_id);
    }
    if (fault.end) fault.end(rig);
    EXPECT_LE(rig.frames_until_valid(100), fault.frames_to_recover);
    EXPECT_LE(rig.host->counters().restarts, restarts + 3);
  }
  rig.script->release();
}

/// Anything in any order: whatever is valid is this frame's and has no blocking reason, all else is empty.
TEST(FaultsTogether, AnythingInAnyOrderKeepsTheRule) {
  uint64_t seed = std::random_device{}();
  if (const char* given = std::getenv("IGNIS_TEST_SEED")) seed = std::strtoull(given, nullptr, 10);
  SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 rng(seed);
  const auto chance = [&](int one_in) { return rng() % static_cast<uint64_t>(one_in) == 0; };
  HostRig rig;
  rig.start();
  int valid = 0, not_valid = 0;
  std::optional<Frame> last;
  for (int i = 0; i < 5000; ++i) {
    if (chance(5)) rig.calibrate(rng() % (4 * kSecond));
    if (chance(60)) rig.layout = chance(2) ? layout_a() : layout_b();
    if (chance(80)) ++rig.next_info.generation;
    if (chance(80)) ++rig.next_info.server_id;
    if (chance(30)) rig.next_info.frame_id += static_cast<uint32_t>(rng() % 100) - 50;
    if (chance(250)) rig.script->add_runs(static_cast<Step>(rng() % 5));
    if (chance(400)) rig.script->add_binds(static_cast<Step>(rng() % 5));
    if (chance(20)) rig.host->restart();
    if (chance(40)) rig.now_ns += rng() % kSecond;
    if (chance(50)) {
      rig.script->set_output(chance(2) ? output_with(rng() % 553, kNan) : std::vector<float>(552));
    } else {
      rig.script->set_output({});
    }
    Frame frame = rig.next_frame();
    if (chance(40)) frame.info.timestamp_sof_ns += rng() % kSecond;
    if (chance(40)) frame.info.timestamp_sof_ns -= rng() % kSecond;
    if (chance(40)) frame.info.valid = false;
    if (chance(40)) frame.bytes = frame.bytes.first(rng() % frame.bytes.size());
    if (chance(40)) rig.memory->overwrite_after(static_cast<int>(rng() % 3));
    if (chance(40)) frame.layout.height_px += 2;
    if (chance(40) && last) frame = *last;
    const FrameReport report = rig.process(frame);
    last = frame;
    const bool is_blocked = !(report.quality.reasons & kBlockingReasons).is_empty();
    ASSERT_EQ(report.quality.valid, !is_blocked);
    if (is_blocked) {
      ++not_valid;
      expect_empty(report, frame.info.frame_id);
    } else {
      ++valid;
      // A NaN among the values nobody uses is no fault; the answer is then that of the vector.
      if (report.quality.known_left == kAllDriverFields && report.state.left.face_prob == 0.9F)
        expect_fresh(report, frame.info.frame_id);
    }
    if (::testing::Test::HasFailure()) break;
    if (chance(30)) {
      rig.now_ns += 300 * kMillisecond;
      const std::optional<FrameReport> silent = rig.host->check_watchdog();
      ASSERT_TRUE(silent);
      expect_empty(*silent, frame.info.frame_id);
    }
  }
  EXPECT_GT(valid, 500);
  EXPECT_GT(not_valid, 500);
}

}  // namespace
}  // namespace ignis::pipeline
