#include "ignis/pipeline/road/runner.h"

#include "ignis/pipeline/road/test_fake_road_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace ignis::pipeline {
namespace {

using testing::fake_input;
using testing::fake_layout;
using testing::FakeRoad;
using testing::FakeScript;
using testing::in_seconds;
using testing::kLoadRuns;
using Act = FakeScript::Act;
using Kind = RunnerState::Kind;

constexpr std::array<float, kDesireCount> kNoDesire{};

RunnerState load(FencedRunner& runner) {
  runner.start_load(fake_layout());
  return runner.wait_loaded(in_seconds(60));
}

TEST(FencedRunner, IsAbsentThenLoadingThenReady) {
  FakeRoad road;
  const auto script = road.script();
  script->load_act = Act::Hang;
  FencedRunner runner(FakeRoad::options(script, RoadTier::Big));
  EXPECT_EQ(to_string(runner.state()), "Absent");
  const auto refused = runner.run(fake_input(), kNoDesire, in_seconds(10));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "Unavailable");
  runner.start_load(fake_layout());
  EXPECT_EQ(to_string(runner.state()), "Loading");
  script->release();
  EXPECT_EQ(to_string(runner.wait_loaded(in_seconds(60))), "Ready");
  const auto output = runner.run(fake_input(), kNoDesire, in_seconds(10));
  ASSERT_TRUE(output) << output.error().to_string();
  EXPECT_EQ(output->tier, RoadTier::Big);
  EXPECT_EQ(output->values.size(), 4u);
  EXPECT_EQ(output->values[0], 1);
}

// Section 11.4: what the warm-up left in the state is cleared before the first frame.
TEST(FencedRunner, WarmUpLeavesNothingBehind) {
  FakeRoad road;
  const auto script = road.script();
  FencedRunner runner(FakeRoad::options(script, RoadTier::Big));
  ASSERT_EQ(load(runner).kind, Kind::Ready);
  EXPECT_EQ(script->runs(), kLoadRuns);
  EXPECT_EQ(script->resets(), 1);
  const auto first = runner.run(fake_input(), kNoDesire, in_seconds(10));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->values[1], 1) << "the first run since the reset";
  EXPECT_EQ(runner.run(fake_input(), kNoDesire, in_seconds(10))->values[1], 2);
}

struct FaultRow {
  Act act;
  RoadFault fault;
  ErrorCode code;
  bool is_reset;  ///< after the fault; a thread that hangs resets nothing
};

TEST(FencedRunner, EveryFaultOfARunIsTypedAndFinal) {
  for (const FaultRow& row :
       {FaultRow{Act::Hang, RoadFault::RunTimeout, ErrorCode::Timeout, false},
        FaultRow{Act::Error, RoadFault::RunFailed, ErrorCode::Internal, true},
        FaultRow{Act::Timeout, RoadFault::RunTimeout, ErrorCode::Timeout, true},
        FaultRow{Act::Throw, RoadFault::RunFailed, ErrorCode::Internal, false},
        FaultRow{Act::Nan, RoadFault::NonFinite, ErrorCode::Internal, true},
        FaultRow{Act::Infinity, RoadFault::NonFinite, ErrorCode::Internal, true}}) {
    SCOPED_TRACE(to_string(row.fault));
    FakeRoad road;
    const auto script = road.script();
    script->run_act = row.act;
    script->bad_run = kLoadRuns + 1;
    FencedRunner runner(FakeRoad::options(script, RoadTier::Big));
    ASSERT_EQ(load(runner).kind, Kind::Ready);
    ASSERT_TRUE(runner.run(fake_input(1), kNoDesire, in_seconds(10)));
    const auto output = runner.run(fake_input(2), kNoDesire, in_seconds(10));
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().code(), row.code);
    EXPECT_EQ(output.error().reason(), to_string(row.fault));
    EXPECT_EQ(runner.state(), (RunnerState{Kind::Failed, row.fault}));
    EXPECT_EQ(script->resets(), row.is_reset ? 2 : 1);
    const auto later = runner.run(fake_input(3), kNoDesire, in_seconds(10));
    ASSERT_FALSE(later);
    EXPECT_EQ(later.error().reason(), "Unavailable");
    EXPECT_EQ(script->runs(), kLoadRuns + 2) << "a failed runner runs nothing";
  }
}

TEST(FencedRunner, WhatAFencedThreadCompletesIsIgnoredAndKept) {
  FakeRoad road;
  const auto script = road.script();
  script->run_act = Act::Hang;
  script->bad_run = kLoadRuns;
  {
    FencedRunner runner(FakeRoad::options(script, RoadTier::Big));
    ASSERT_EQ(load(runner).kind, Kind::Ready);
    ASSERT_FALSE(runner.run(fake_input(), kNoDesire, in_seconds(10)));
    script->release();
    script->wait_until_nobody_hangs();
    EXPECT_EQ(to_string(runner.state()), "Failed(RunTimeout)");
  }
  EXPECT_EQ(script->destroyed(), 0) << "the device may still write into the model's memory";
}

TEST(FencedRunner, FaultsOfALoadAreTyped) {
  struct Row {
    Act load, run;
    RoadFault fault;
  };
  for (const Row& row : {Row{Act::Error, Act::Answer, RoadFault::LoadFailed},
                         Row{Act::Throw, Act::Answer, RoadFault::LoadFailed},
                         Row{Act::Answer, Act::Error, RoadFault::LoadFailed},
                         Row{Act::Answer, Act::Nan, RoadFault::LoadFailed}}) {
    FakeRoad road;
    const auto script = road.script();
    script->load_act = row.load;
    script->run_act = row.run;
    script->bad_run = 2;
    FencedRunner runner(FakeRoad::options(script, RoadTier::Big));
    EXPECT_EQ(load(runner), (RunnerState{Kind::Failed, row.fault}));
    EXPECT_FALSE(runner.fault_text().empty());
  }
}

TEST(FencedRunner, WithoutAModelOrItsFileItIsAbsent) {
  FencedRunner nothing(RoadRunnerOptions{});
  EXPECT_EQ(load(nothing), (RunnerState{Kind::Absent, RoadFault::NotConfigured}));

  const std::string path = ::testing::TempDir() + "ignis_road_artifact_" + std::to_string(getpid());
  std::remove(path.c_str());
  for (const auto& [content, is_there] :
       {std::pair{"", false},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", false},
        {"IGNISART and so on", true}}) {
    FakeRoad road;
    RoadRunnerOptions options = FakeRoad::options(road.script(), RoadTier::Big);
    options.artifact_path = path;
    std::remove(path.c_str());
    FencedRunner before(options);
    const Kind without_file = load(before).kind;
    EXPECT_EQ(without_file, Kind::Absent) << before.fault_text();
    std::ofstream(path, std::ios::binary) << content;
    FencedRunner runner(options);
    EXPECT_EQ(load(runner).kind, is_there ? Kind::Ready : Kind::Absent) << content;
    EXPECT_EQ(runner.fault_text().empty(), is_there);
  }
  std::remove(path.c_str());
}

TEST(FencedRunner, ALoadBeyondItsLimitIsIgnoredEvenIfItCompletes) {
  for (const bool hangs_in_warm_up : {false, true}) {
    FakeRoad road;
    const auto script = road.script();
    (hangs_in_warm_up ? script->run_act : script->load_act) = Act::Hang;
    script->bad_run = hangs_in_warm_up ? 0 : -1;
    RoadRunnerOptions options = FakeRoad::options(script, RoadTier::Big);
    options.load_limit = std::chrono::milliseconds(200);
    FencedRunner runner(options);
    EXPECT_EQ(load(runner), (RunnerState{Kind::Failed, RoadFault::LoadTimeout}));
    script->release();
    script->wait_until_nobody_hangs();
    EXPECT_EQ(to_string(runner.state()), "Failed(LoadTimeout)");
    EXPECT_FALSE(runner.run(fake_input(), kNoDesire, in_seconds(10)));
  }
}

TEST(FencedRunner, AnArtifactThatTheHostCannotServeIsRefusedAtLoad) {
  using Change = void (*)(RoadContract&);
  for (const Change change : {+[](RoadContract& c) { c.slices[0].stop = 5; },
                              +[](RoadContract& c) { c.slices[1].start = 0; },
                              +[](RoadContract& c) { c.inputs[1].dtype = DType::Float16; },
                              +[](RoadContract& c) { c.inputs[4].shape[1] += 1; },
                              +[](RoadContract& c) { c.inputs[2].name = "something_else"; },
                              +[](RoadContract& c) { c.output_count = 0; }}) {
    FakeRoad road;
    const auto script = road.script();
    change(script->contract);
    FencedRunner runner(FakeRoad::options(script, RoadTier::Big));
    EXPECT_EQ(load(runner), (RunnerState{Kind::Failed, RoadFault::ContractMismatch}));
    EXPECT_EQ(script->runs(), 0);
  }
}

TEST(FencedRunner, ABadInputFailsTheFrameNotTheModel) {
  FakeRoad road;
  const auto script = road.script();
  FencedRunner runner(FakeRoad::options(script, RoadTier::Big));
  ASSERT_EQ(load(runner).kind, Kind::Ready);
  RoadInput input = fake_input();
  input.transforms[1][4] = std::numeric_limits<float>::quiet_NaN();
  const auto output = runner.run(input, kNoDesire, in_seconds(10));
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code(), ErrorCode::InvalidArgument);
  EXPECT_TRUE(runner.run(fake_input(), kNoDesire, in_seconds(10)));
}

TEST(FencedRunner, AFrameThatWasOverwrittenIsNotRun) {
  class Torn : public FrameMemory {
   public:
    bool is_intact() const override { return false; }
  };
  FakeRoad road;
  const auto script = road.script();
  FencedRunner runner(FakeRoad::options(script, RoadTier::Big));
  ASSERT_EQ(load(runner).kind, Kind::Ready);
  RoadInput input = fake_input();
  input.wide.memory = std::make_shared<Torn>();
  const auto output = runner.run(input, kNoDesire, in_seconds(10));
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().reason(), "FrameOverwritten");
  EXPECT_EQ(script->runs(), kLoadRuns);
  EXPECT_EQ(to_string(runner.state()), "Ready");
}

// A late frame is not the model's fault: the wait ends at the frame's deadline, the run at its own limit.
TEST(FencedRunner, AFrameWithoutTimeLeavesTheRunnerReady) {
  FakeRoad road;
  const auto script = road.script();
  script->run_act = Act::Hang;
  script->bad_run = kLoadRuns;
  RoadRunnerOptions options = FakeRoad::options(script, RoadTier::Big);
  options.run_limit = std::chrono::seconds(30);
  FencedRunner runner(options);
  ASSERT_EQ(load(runner).kind, Kind::Ready);

  const auto none = runner.run(fake_input(1), kNoDesire, std::chrono::steady_clock::now());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().reason(), "FrameDeadline");
  EXPECT_EQ(script->runs(), kLoadRuns) << "nothing was begun";

  const auto soon = runtime::deadline_after(std::chrono::milliseconds(50));
  const auto late = runner.run(fake_input(2), kNoDesire, soon);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().reason(), "FrameDeadline");
  EXPECT_EQ(late.error().code(), ErrorCode::Timeout);
  EXPECT_EQ(to_string(runner.state()), "Ready");
  script->release();
  EXPECT_TRUE(runner.run(fake_input(3), kNoDesire, in_seconds(20)));
  EXPECT_EQ(script->runs(), kLoadRuns + 2);
}

TEST(FencedRunner, AnOpenRunStillHasItsLimit) {
  FakeRoad road;
  const auto script = road.script();
  script->run_act = Act::Hang;
  script->bad_run = kLoadRuns;
  FencedRunner runner(FakeRoad::options(script, RoadTier::Big));
  ASSERT_EQ(load(runner).kind, Kind::Ready);
  const auto soon = runtime::deadline_after(std::chrono::milliseconds(20));
  ASSERT_FALSE(runner.run(fake_input(1), kNoDesire, soon));
  const auto output = runner.run(fake_input(2), kNoDesire, in_seconds(20));
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().reason(), "RunTimeout");
  EXPECT_EQ(to_string(runner.state()), "Failed(RunTimeout)");
}

TEST(FencedRunner, DestructionIsBoundedWhateverHangs) {
  FakeRoad road;
  {
    const auto script = road.script();
    script->load_act = Act::Hang;
    FencedRunner runner(FakeRoad::options(script, RoadTier::Big));
    runner.start_load(fake_layout());
  }
  {
    const auto script = road.script();
    script->destroy_act = Act::Hang;
    FencedRunner runner(FakeRoad::options(script, RoadTier::Big));
    ASSERT_EQ(load(runner).kind, Kind::Ready);
  }
  const auto script = road.script();
  {
    FencedRunner runner(FakeRoad::options(script, RoadTier::Big));
    ASSERT_EQ(load(runner).kind, Kind::Ready);
  }
  EXPECT_EQ(script->destroyed(), 1) << "a healthy model is freed";
}

TEST(FencedRunner, TheHookRunsOncePerFrame) {
  FakeRoad road;
  RoadRunnerOptions options = FakeRoad::options(road.script(), RoadTier::Big);
  int hooks = 0;
  options.while_running = [&] { ++hooks; };
  FencedRunner runner(options);
  ASSERT_EQ(load(runner).kind, Kind::Ready);
  EXPECT_EQ(hooks, 0);
  for (uint32_t i = 0; i < 3; ++i)
    ASSERT_TRUE(runner.run(fake_input(i), kNoDesire, in_seconds(10)));
  EXPECT_EQ(hooks, 3);
}

}  // namespace
}  // namespace ignis::pipeline
