// The loop, with a scripted camera and a model that says what it is told.
#include "tools/ignis/dm/loop.h"

#include "ignis/pipeline/driver_monitoring/testing/test_fake_model.h"
#include "ignis/pipeline/frames/file_source.h"
#include "ignis/pipeline/frames/test_scripted_source.h"

#include "tools/ignis/dm/dm_report.h"
#include "tools/ignis/dm/replay.h"
#include "tools/ignis/dm/status_line.h"
#include "tools/ignis/exit_code.h"
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

namespace ignis::tools {
namespace {

using namespace pipeline;  // NOLINT: a test of their names
using std::chrono::milliseconds;

/// A folder that goes away with the object.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/ignis-dm-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Frames as new as can be, whatever the script says of their times.
class FreshSource : public FrameSource {
 public:
  explicit FreshSource(ScriptedSource& script) : script_(script) {}
  Result<Frame> receive(std::chrono::nanoseconds timeout) override {
    auto frame = script_.receive(timeout);
    if (frame) {
      frame->info.timestamp_sof_ns = frame->info.timestamp_eof_ns = frame->info.receive_time_ns =
          std::max(monotonic_ns(), last_ns_ + 1);
      last_ns_ = frame->info.timestamp_sof_ns;
    }
    return frame;
  }
  uint64_t dropped_count() const override { return script_.dropped_count(); }
  std::string describe() const override { return script_.describe(); }

 private:
  ScriptedSource& script_;
  uint64_t last_ns_ = 0;
};

FrameLayout layout_a() { return nv12_layout(1928, 1208).value(); }

struct Rig {
  std::shared_ptr<FakeScript> script = std::make_shared<FakeScript>();
  ScriptedSource frames{layout_a()};
  FreshSource source{frames};
  Host host{std::make_unique<FakeModel>(script), {}, {}};
  LiveFeed feed;
  LoopSinks sinks;
  LoopOptions options;
  std::atomic<bool> stop{false};

  Rig() {
    sinks.feed = &feed;
    EXPECT_TRUE(host.prepare(layout_a()));
  }
  LoopSummary run(CalibrationReceiver* calibration = nullptr) {
    return run_loop(source, host, calibration, sinks, options, stop);
  }
};

CalibrationReceiver fixed_calibration() {
  return CalibrationReceiver::open(parse_calibration("0.01,0.02,-0.03").value()).value();
}

TEST(Loop, CountsFramesReasonsAndTimes) {
  Rig rig;
  rig.frames.add_frames(30);
  rig.frames.skip_ids(2);
  rig.frames.add_frames(1);
  const LoopSummary s = rig.run();
  EXPECT_EQ(s.end, EndCause::EndOfStream);
  EXPECT_EQ(s.frames, 31u);
  EXPECT_EQ(s.valid, 31u);
  EXPECT_EQ(s.reasons[static_cast<size_t>(Reason::CalibMissing)], 31u);
  EXPECT_EQ(s.reasons[static_cast<size_t>(Reason::FrameIdGap)], 1u);
  const auto stage = [&](Stage st) { return s.times.stages[static_cast<size_t>(st)]; };
  EXPECT_EQ(stage(Stage::Model).count(), 31u);
  EXPECT_EQ(stage(Stage::Model).max_ns(), 3000u);  // the fake model says so
  EXPECT_EQ(stage(Stage::Warp).max_ns(), 2000u);
  EXPECT_GT(stage(Stage::Total).max_ns(), 0u);
  std::vector<Snapshot> seen;
  rig.feed.read_after(0, milliseconds(0), 100, seen);
  ASSERT_EQ(seen.size(), 31u);
  EXPECT_EQ(seen.back().quality.frame_id, 33u);
  EXPECT_FLOAT_EQ(seen.back().state.left.face_prob, 0.9f);
  EXPECT_TRUE(check_summary(s, {}));
}

TEST(Loop, WithoutFramesOnlyTheWatchdogSpeaks) {
  Rig rig;
  rig.frames.add_frames(2);
  rig.frames.end_with_silence();
  rig.options.seconds = 1.2;
  const LoopSummary s = rig.run();
  EXPECT_EQ(s.end, EndCause::TimeOver);
  EXPECT_EQ(s.frames, 2u);
  EXPECT_GE(s.timeouts, 1u);
  EXPECT_LE(s.timeouts, 3u);
  std::vector<Snapshot> seen;
  rig.feed.read_after(2, milliseconds(0), 100, seen);
  ASSERT_EQ(seen.size(), s.timeouts);
  EXPECT_FALSE(seen[0].has_frame);
  EXPECT_TRUE(seen[0].quality.reasons.has(Reason::FrameTimeout));
  EXPECT_FALSE(seen[0].quality.valid);
  EXPECT_EQ(seen[0].quality.frame_id, 2u);
}

TEST(Loop, SourceErrorsAreCountedAndSurvived) {
  Rig rig;
  rig.frames.add_frames(1);
  rig.frames.add_torn();
  rig.frames.add_error(Error(ErrorCode::DeviceLost, "The server is gone."));
  rig.frames.add_frames(1);
  const LoopSummary s = rig.run();
  EXPECT_EQ(s.frames, 2u);
  EXPECT_EQ(s.source_errors.at("TornFrame"), 1u);
  EXPECT_EQ(s.source_errors.at("DeviceLost"), 1u);
  EXPECT_EQ(s.last_source_error, "The server is gone.");
}

TEST(Loop, StopEndsIt) {
  Rig rig;
  rig.frames.end_with_silence();
  rig.stop.store(true);
  EXPECT_EQ(rig.run().end, EndCause::Stopped);
}

TEST(Loop, CalibrationIsReadWithoutFrames) {
  Rig rig;
  rig.frames.end_with_silence();
  rig.options.seconds = 0.7;
  CalibrationReceiver calibration = fixed_calibration();
  const LoopSummary s = rig.run(&calibration);
  EXPECT_EQ(s.frames, 0u);
  EXPECT_GE(s.calibrations, 2u);
}

TEST(Loop, ARunOfNothingIsAFailure) {
  LoopSummary none;
  none.end = EndCause::EndOfStream;
  EXPECT_EQ(exit_code(check_summary(none, {}).error()), Exit::File);
  none.end = EndCause::TimeOver;
  EXPECT_EQ(exit_code(check_summary(none, {}).error()), Exit::Device);
  none.end = EndCause::Stopped;
  EXPECT_TRUE(check_summary(none, {}));
  const auto with = [](Reason reason) {
    LoopSummary s;
    s.end = EndCause::EndOfStream;
    s.frames = 10;
    s.reasons[static_cast<size_t>(Reason::CalibMissing)] = 10;
    s.reasons[static_cast<size_t>(reason)] = 9;
    return exit_code(check_summary(s, {}).error());
  };
  EXPECT_EQ(with(Reason::UnknownGeometry), Exit::Usage);
  EXPECT_EQ(with(Reason::NonFinite), Exit::Model);
  EXPECT_EQ(with(Reason::RunTimeout), Exit::Device);
  EXPECT_EQ(with(Reason::FrameStale), Exit::Device);
  EXPECT_EQ(with(Reason::FrameInvalidFlag), Exit::File);
}

TEST(Loop, AFullDiskIsCountedAndThePipelineGoesOn) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "No /dev/full here.";
  Rig rig;
  Folder folder;
  std::filesystem::create_symlink("/dev/full", folder.path("log.quality"));
  auto log = LogWriter::open(folder.path("log"));
  if (!log) GTEST_SKIP() << "The log refuses devices: " << log.error().message();
  rig.sinks.log = &*log;
  rig.frames.add_frames(20);
  const LoopSummary s = rig.run();
  EXPECT_EQ(s.frames, 20u);
  EXPECT_EQ(s.valid, 20u);
  EXPECT_GT(s.sinks.log.lost, 0u);
  EXPECT_STRNE(s.sinks.log.last_error.data(), "");
}

// Log and replay: the same frames and the same model give the same states.
class Replay : public ::testing::Test {
 protected:
  /// A run over some frames with a calibration, logged; the frames again for a replay.
  void record(const std::function<void(Rig&)>& script) {
    Rig rig;
    auto log = LogWriter::open(path());
    ASSERT_TRUE(log) << log.error().to_string();
    rig.sinks.log = &*log;
    CalibrationReceiver calibration = fixed_calibration();
    script(rig);
    summary_ = rig.run(&calibration);
    ASSERT_TRUE(log->close());
  }
  std::string path() const { return folder_.path("drive.log"); }

  ReplayResult replay(const std::function<void(ScriptedSource&, FakeScript&)>& script,
                      double tolerance = 1e-4) {
    auto log = read_replay_log(path());
    EXPECT_TRUE(log) << log.error().to_string();
    auto fake = std::make_shared<FakeScript>();
    ScriptedSource frames(layout_a());
    script(frames, *fake);
    const auto clock = std::make_shared<std::atomic<uint64_t>>(0);
    HostOptions options;
    options.now_ns = [clock] { return clock->load(); };
    Host host(std::make_unique<FakeModel>(fake), {}, std::move(options));
    EXPECT_TRUE(host.prepare(layout_a()));
    ReplayOptions replay_options;
    replay_options.tolerance = tolerance;
    const std::atomic<bool> stop{false};
    auto result = run_replay(frames, host, *log, clock, replay_options, stop);
    EXPECT_TRUE(result) << result.error().to_string();
    return *result;
  }

  Folder folder_;
  LoopSummary summary_;
};

TEST_F(Replay, SameFramesAreTheSame) {
  record([](Rig& rig) { rig.frames.add_frames(12); });
  const ReplayResult r = replay([](ScriptedSource& s, FakeScript&) { s.add_frames(12); });
  EXPECT_EQ(r.compared, 12u);
  EXPECT_EQ(r.different, 0u) << (r.differences.empty() ? "" : r.differences[0].to_string());
  EXPECT_TRUE(r.has_passed());
}

TEST_F(Replay, AnotherAnswerIsNamedWithFrameFieldAndBothValues) {
  record([](Rig& rig) { rig.frames.add_frames(3); });
  const auto other = [](ScriptedSource& s, FakeScript& fake) {
    s.add_frames(3);
    Decoded decoded;
    decoded.prediction = fake_prediction(1);
    decoded.prediction.left.face_prob = 0.875f;
    fake.set_decoded(decoded);
  };
  const ReplayResult r = replay(other);
  EXPECT_EQ(r.compared, 3u);
  EXPECT_EQ(r.different, 3u);
  EXPECT_FALSE(r.has_passed());
  ASSERT_FALSE(r.differences.empty());
  EXPECT_EQ(r.differences[0].to_string(),
            "frame 1: leftDriverData.faceProb is 0.875, the log has 0.9");
  // Frame 1 differs in that field by 0.025 only; the others in what is their own as well.
  EXPECT_EQ(replay(other, 0.026).different, 0u);
}

TEST_F(Replay, WhatWasLateIsLateAgain) {
  record([](Rig& rig) {
    rig.frames.add_frames(2);
    rig.frames.skip_ids(3);
    rig.frames.add_frame([](Frame& f) { f.info.valid = false; });
    rig.frames.add_frames(2);
  });
  EXPECT_EQ(summary_.valid, 4u);
  const ReplayResult r = replay([](ScriptedSource& s, FakeScript&) {
    s.add_frames(2);
    s.skip_ids(3);
    s.add_frame([](Frame& f) { f.info.valid = false; });
    s.add_frames(2);
  });
  EXPECT_EQ(r.compared, 5u);
  EXPECT_TRUE(r.has_passed()) << (r.differences.empty() ? "" : r.differences[0].to_string());
}

TEST_F(Replay, FramesThatWereDroppedAtTheTimeAreLeftOut) {
  record([](Rig& rig) {
    rig.frames.add_frames(2);
    rig.frames.skip_ids(2);  // 3 and 4 were dropped
    rig.frames.add_frames(2);
  });
  const ReplayResult r = replay([](ScriptedSource& s, FakeScript&) { s.add_frames(6); });
  EXPECT_EQ(r.compared, 4u);
  EXPECT_EQ(r.unlogged, 2u);
  EXPECT_TRUE(r.has_passed()) << (r.differences.empty() ? "" : r.differences[0].to_string());
}

TEST_F(Replay, FailedRunsCannotBeRepeated) {
  record([](Rig& rig) {
    rig.frames.add_frames(2);
    rig.script->add_runs(FakeScript::Step::Fail);
  });
  const ReplayResult r = replay([](ScriptedSource& s, FakeScript&) { s.add_frames(2); });
  EXPECT_GE(r.not_comparable, 1u);
  EXPECT_EQ(r.different, 0u);
}

TEST_F(Replay, NothingComparedIsNotPassed) {
  record([](Rig& rig) { rig.frames.add_frames(3); });
  const ReplayResult none = replay([](ScriptedSource&, FakeScript&) {});
  EXPECT_EQ(none.compared, 0u);
  EXPECT_EQ(none.missing, 3u);
  EXPECT_FALSE(none.has_passed());
  const ReplayResult others = replay([](ScriptedSource& s, FakeScript&) {
    s.skip_ids(100);
    s.add_frames(3);
  });
  EXPECT_EQ(others.compared, 0u);
  EXPECT_EQ(others.unlogged, 3u);
  EXPECT_FALSE(others.has_passed());
  const ReplayResult less = replay([](ScriptedSource& s, FakeScript&) { s.add_frames(2); });
  EXPECT_EQ(less.compared, 2u);
  EXPECT_EQ(less.missing, 1u);
  EXPECT_FALSE(less.has_passed());
}

/// The same picture for ever, with rising ids.
class EndlessSource : public FrameSource {
 public:
  explicit EndlessSource(Frame frame) : frame_(std::move(frame)) {}
  Result<Frame> receive(std::chrono::nanoseconds) override {
    ++frame_.info.frame_id;
    return frame_;
  }
  std::string describe() const override { return "endless"; }

 private:
  Frame frame_;
};

TEST_F(Replay, ASourceWithoutAnEndThatIsPastTheLogEndsIt) {
  record([](Rig& rig) { rig.frames.add_frames(3); });
  const ReplayLog log = read_replay_log(path()).value();
  ScriptedSource one(layout_a());
  one.skip_ids(100);
  one.add_frames(1);
  EndlessSource endless(one.receive(milliseconds(0)).value());
  Host host(std::make_unique<FakeModel>(std::make_shared<FakeScript>()), {}, {});
  const auto clock = std::make_shared<std::atomic<uint64_t>>(0);
  const std::atomic<bool> stop{false};
  const auto result = run_replay(endless, host, log, clock, {}, stop);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->compared, 0u);
  EXPECT_FALSE(result->has_passed());
}

TEST_F(Replay, ALogThatEndsInsideAMessageIsReadUpToThere) {
  record([](Rig& rig) { rig.frames.add_frames(5); });
  std::filesystem::resize_file(path(), std::filesystem::file_size(path()) - 8);
  const auto log = read_replay_log(path());
  ASSERT_TRUE(log);
  EXPECT_EQ(log->turns.size(), 4u);
  EXPECT_NE(log->note, "");
  EXPECT_TRUE(log->has_companions);
}

TEST_F(Replay, HostileLogsAreRefused) {
  EXPECT_EQ(exit_code(read_replay_log(folder_.path("none")).error()), Exit::File);
  const auto with = [&](const std::string& bytes) {
    const std::string file = folder_.path("bad.log");
    FILE* f = std::fopen(file.c_str(), "wb");
    std::fwrite(bytes.data(), 1, bytes.size(), f);
    std::fclose(f);
    const auto log = read_replay_log(file);
    EXPECT_FALSE(log);
    EXPECT_EQ(exit_code(log.error()), Exit::File) << log.error().to_string();
  };
  with("");
  with("text, not a log at all, but long enough to be read as one");
  with(std::string(4096, '\0'));
  with(std::string(64, '\xff'));
}

TEST(CompareStates, TimesAreIgnoredAndNanEqualsNan) {
  StateEvent logged;
  logged.valid = true;
  logged.state.left.has_lists = true;
  logged.state.left.face_orientation[1] = std::nanf("");
  logged.state.model_execution_time_s = 1;
  DriverState computed = logged.state;
  computed.model_execution_time_s = 2;
  computed.gpu_execution_time_s = 3;
  std::vector<Difference> differences;
  compare_states(logged, computed, true, 0, differences);
  EXPECT_TRUE(differences.empty()) << differences[0].to_string();
  computed.left.face_orientation[1] = 0;
  computed.right.has_lists = true;
  compare_states(logged, computed, false, 0, differences);
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].field, "valid");
  EXPECT_EQ(differences[1].field, "leftDriverData.faceOrientation[1]");
  EXPECT_EQ(differences[2].field, "rightDriverData.lists");
}

TEST(StatusText, SaysValidUnknownAndReasons) {
  LiveFeed feed;
  Snapshot s;
  s.has_frame = true;
  s.quality.frame_id = 12;
  s.quality.valid = true;
  s.quality.known_left = bit(DriverField::FaceProb);
  s.state.left.face_prob = 0.5f;
  EXPECT_NE(status_text(s, feed, 0).find("valid      face 0.50  eyes ?/?"), std::string::npos)
      << status_text(s, feed, 0);
  s.quality.valid = false;
  s.quality.reasons = Reason::FrameStale;
  const std::string text = status_text(s, feed, 0);
  EXPECT_NE(text.find("NOT VALID"), std::string::npos);
  EXPECT_EQ(text.find("face"), std::string::npos);
  EXPECT_NE(text.find("FrameStale"), std::string::npos);
  EXPECT_EQ(status_text(s, feed, 20).size(), 20u);
}

TEST(Recording, RawFramesComeBack) {
  Folder folder;
  const std::string path = folder.path("clip.nv12");
  ScriptedSource frames(layout_a());
  frames.set_paint([](const FrameLayout&, const FrameInfo& info, std::byte* bytes) {
    bytes[0] = static_cast<std::byte>(info.frame_id);
  });
  frames.add_frames(3);
  auto recording = Recording::open(path, 20);
  ASSERT_TRUE(recording) << recording.error().to_string();
  for (int i = 0; i < 3; ++i) (*recording)->offer(frames.receive(milliseconds(0)).value());
  (*recording)->close(std::chrono::seconds(10));
  const SinkState state = (*recording)->state();
  EXPECT_EQ(state.done + state.lost, 3u);
  EXPECT_GT(state.done, 0u);
  EXPECT_STREQ(state.last_error.data(), "");
  FileSourceOptions options;
  options.pace = Pace::Fast;
  auto source = FileSource::open(path, options);
  ASSERT_TRUE(source) << source.error().to_string();
  const Frame first = (*source)->receive(milliseconds(100)).value();
  EXPECT_EQ(first.info.frame_id, 1u);
  EXPECT_EQ(first.bytes[0], std::byte{1});
  EXPECT_EQ((*source)->frame_count(), state.done);
}

TEST(Recording, VideoTakesFramesOfOneSizeAndCountsTheOthers) {
  Folder folder;
  auto recording = Recording::open(folder.path("clip.mp4"), 20);
  ASSERT_TRUE(recording) << recording.error().to_string();
  ScriptedSource frames(nv12_layout(128, 64).value());
  frames.add_frames(3);
  frames.change_layout(nv12_layout(64, 64).value());
  frames.add_frames(1);
  for (int i = 0; i < 4; ++i) (*recording)->offer(frames.receive(milliseconds(0)).value());
  (*recording)->close(std::chrono::seconds(20));
  const SinkState state = (*recording)->state();
  if (std::string(state.last_error.data()).find("ncoder") != std::string::npos)
    GTEST_SKIP() << "No encoder here: " << state.last_error.data();
  EXPECT_EQ(state.done, 3u);
  EXPECT_EQ(state.lost, 1u);
  EXPECT_STRNE(state.last_error.data(), "");
  EXPECT_GT(std::filesystem::file_size(folder.path("clip.mp4")), 100u);
}

TEST(Recording, APathThatCannotBeWrittenIsToldAtOnce) {
  for (const char* name : {"/no/such/folder/a.mp4", "/no/such/folder/a.nv12"}) {
    const auto recording = Recording::open(name, 20);
    ASSERT_FALSE(recording);
    EXPECT_EQ(exit_code(recording.error()), Exit::File);
    EXPECT_NE(recording.error().message().find("/no/such/folder"), std::string::npos);
  }
}

}  // namespace
}  // namespace ignis::tools
