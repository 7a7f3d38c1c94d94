#include "ignis/pipeline/road/tiers.h"

#include "ignis/pipeline/road/test_fake_road_model.h"

#include <gtest/gtest.h>

#include <thread>

namespace ignis::pipeline {
namespace {

using testing::fake_input;
using testing::fake_layout;
using testing::FakeRoad;
using testing::FakeScript;
using testing::in_seconds;
using testing::kLoadRuns;
using Act = FakeScript::Act;

constexpr std::array<float, kDesireCount> kNoDesire{};

/// Two tiers of fake models; the big one answers 1, the small one 2.
class TieredRunnerTest : public ::testing::Test {
 protected:
  TieredRunnerTest() : big_(road_.script()), small_(road_.script()) { small_->value = 2; }
  void make() {
    options_.big = FakeRoad::options(big_, RoadTier::Big);
    options_.small = FakeRoad::options(small_, RoadTier::Small);
    tiers_.emplace(options_);
  }
  void make_and_load() {
    make();
    const Status loaded = tiers_->load(fake_layout());
    ASSERT_TRUE(loaded) << loaded.error().to_string();
  }
  Result<RoadOutput> run(uint32_t frame_id) {
    return tiers_->run(fake_input(frame_id), kNoDesire, in_seconds(20));
  }
  /// Until the candidate has ended one way or the other.
  void wait_for_candidate() {
    while (tiers_->big_state().kind == RunnerState::Kind::Loading) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  FakeRoad road_;
  std::shared_ptr<FakeScript> big_, small_;
  TierOptions options_;
  std::optional<TieredRunner> tiers_;
};

TEST_F(TieredRunnerTest, TheBigModelServesAndTheSmallOneIsWarm) {
  make_and_load();
  EXPECT_EQ(small_->runs(), kLoadRuns) << "warmed before it is needed";
  const auto output = run(1);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->tier, RoadTier::Big);
  EXPECT_FALSE(output->is_switch);
  EXPECT_EQ(output->values[0], 1);
  EXPECT_EQ(to_string(tiers_->state()), "Ready");
  EXPECT_EQ(small_->runs(), kLoadRuns);
  EXPECT_EQ(tiers_->load(fake_layout()).error().reason(), "LoadedAlready");
}

TEST_F(TieredRunnerTest, EveryFaultOfTheBigModelHandsTheSameFrameToTheSmallOne) {
  for (const auto& [act, state] : {std::pair{Act::Hang, "Degraded(RunTimeout)"},
                                   {Act::Timeout, "Degraded(RunTimeout)"},
                                   {Act::Error, "Degraded(RunFailed)"},
                                   {Act::Throw, "Degraded(RunFailed)"},
                                   {Act::Nan, "Degraded(NonFinite)"},
                                   {Act::Infinity, "Degraded(NonFinite)"}}) {
    SCOPED_TRACE(state);
    big_ = road_.script();
    small_ = road_.script();
    small_->value = 2;
    big_->run_act = act;
    big_->bad_run = kLoadRuns + 1;
    make_and_load();
    ASSERT_EQ(run(1)->tier, RoadTier::Big);
    const auto output = run(2);
    ASSERT_TRUE(output) << output.error().to_string();
    EXPECT_EQ(output->tier, RoadTier::Small);
    EXPECT_TRUE(output->is_switch);
    EXPECT_EQ(output->values[0], 2);
    EXPECT_EQ(output->values[1], 1) << "its state begins anew";
    EXPECT_EQ(to_string(tiers_->state()), state);
    EXPECT_EQ(tiers_->fallbacks(), 1u);
    // Never back by itself.
    for (uint32_t frame = 3; frame < 10; ++frame) {
      const auto next = run(frame);
      ASSERT_TRUE(next);
      EXPECT_EQ(next->tier, RoadTier::Small);
      EXPECT_FALSE(next->is_switch);
    }
    EXPECT_EQ(big_->runs(), kLoadRuns + 2);
  }
}

TEST_F(TieredRunnerTest, WithoutTimeLeftTheSmallModelServesTheNextFrame) {
  big_->run_act = Act::Hang;
  big_->bad_run = kLoadRuns;
  make_and_load();
  // The frame's deadline is the big model's limit.
  const auto output =
      tiers_->run(fake_input(1), kNoDesire, runtime::deadline_after(options_.big.run_limit));
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code(), ErrorCode::Timeout);
  const auto next = run(2);
  ASSERT_TRUE(next) << next.error().to_string();
  EXPECT_EQ(next->tier, RoadTier::Small);
  EXPECT_EQ(to_string(tiers_->state()), "Degraded(RunTimeout)");
}

TEST_F(TieredRunnerTest, ABigModelThatDoesNotLoadLeavesTheSmallOne) {
  for (const auto& [act, state] :
       {std::pair{Act::Error, "Degraded(LoadFailed)"}, {Act::Hang, "Degraded(LoadTimeout)"}}) {
    big_ = road_.script();
    big_->load_act = act;
    make();
    options_.big.load_limit = std::chrono::milliseconds(200);
    tiers_.emplace(options_);
    ASSERT_TRUE(tiers_->load(fake_layout()));
    EXPECT_EQ(to_string(tiers_->state()), state);
    big_->release();
    big_->wait_until_nobody_hangs();
    const auto output = run(1);
    ASSERT_TRUE(output);
    EXPECT_EQ(output->tier, RoadTier::Small) << "a later completion is ignored";
    EXPECT_FALSE(output->is_switch) << "there was no output before";
  }
}

TEST_F(TieredRunnerTest, WithoutABigModelTheSmallOneIsAllThereIs) {
  options_.small = FakeRoad::options(small_, RoadTier::Small);
  tiers_.emplace(options_);
  ASSERT_TRUE(tiers_->load(fake_layout()));
  EXPECT_EQ(to_string(tiers_->state()), "Ready");
  EXPECT_EQ(to_string(tiers_->big_state()), "Absent");
  EXPECT_EQ(run(1)->tier, RoadTier::Small);
  EXPECT_EQ(tiers_->requalify().error().reason(), "NothingToTry");
}

TEST_F(TieredRunnerTest, ABigModelWhoseFileIsMissingLeavesTheSmallOne) {
  make();
  options_.big.artifact_path = "/nowhere/big.onnx";
  tiers_.emplace(options_);
  ASSERT_TRUE(tiers_->load(fake_layout()));
  EXPECT_EQ(to_string(tiers_->state()), "Degraded(NotConfigured)");
  EXPECT_EQ(to_string(tiers_->big_state()), "Absent");
  EXPECT_EQ(run(1)->tier, RoadTier::Small);
}

TEST_F(TieredRunnerTest, ASmallModelThatDoesNotLoadIsUnavailable) {
  small_->load_act = Act::Error;
  make();
  const Status loaded = tiers_->load(fake_layout());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().reason(), "Unavailable");
  EXPECT_EQ(to_string(tiers_->state()), "Failed(Unavailable)");
}

TEST_F(TieredRunnerTest, WhenTheSmallModelFailsNothingIsLeft) {
  for (const Act act : {Act::Hang, Act::Error, Act::Nan}) {
    big_ = road_.script();
    small_ = road_.script();
    big_->run_act = Act::Error;
    big_->bad_run = kLoadRuns;
    small_->run_act = act;
    small_->bad_run = kLoadRuns + 1;
    make_and_load();
    ASSERT_EQ(run(1)->tier, RoadTier::Small);
    const auto output = run(2);
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().code(), ErrorCode::DeviceLost);
    EXPECT_EQ(output.error().reason(), "Unavailable");
    EXPECT_EQ(to_string(tiers_->state()), "Failed(Unavailable)");
    EXPECT_EQ(run(3).error().reason(), "Unavailable");
  }
}

TEST_F(TieredRunnerTest, RequalificationIsExplicitAndASwitchIsAnEvent) {
  big_->run_act = Act::Nan;
  big_->bad_run = kLoadRuns;
  make_and_load();
  ASSERT_EQ(run(1)->tier, RoadTier::Small);
  const Status asked = tiers_->requalify();
  ASSERT_TRUE(asked) << asked.error().to_string();
  wait_for_candidate();
  const auto output = run(2);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->tier, RoadTier::Big);
  EXPECT_TRUE(output->is_switch);
  EXPECT_EQ(output->values[1], 1) << "its state begins anew";
  EXPECT_EQ(to_string(tiers_->state()), "Ready");
}

TEST_F(TieredRunnerTest, TheSmallModelServesWhileTheBigOneIsTried) {
  big_->run_act = Act::Nan;
  big_->bad_run = kLoadRuns;
  make_and_load();
  ASSERT_EQ(run(1)->tier, RoadTier::Small);
  big_->load_act = Act::Hang;
  ASSERT_TRUE(tiers_->requalify());
  for (uint32_t frame = 2; frame < 5; ++frame) EXPECT_EQ(run(frame)->tier, RoadTier::Small);
  EXPECT_EQ(to_string(tiers_->state()), "Degraded(NonFinite)");
  EXPECT_EQ(to_string(tiers_->big_state()), "Loading");
  EXPECT_EQ(tiers_->requalify().error().reason(), "NothingToTry") << "one at a time";
  big_->release();
  wait_for_candidate();
  EXPECT_EQ(run(6)->tier, RoadTier::Big);
}

TEST_F(TieredRunnerTest, ATryThatFailsChangesNothingAndTriesAreLimited) {
  big_->run_act = Act::Nan;
  big_->bad_run = kLoadRuns;
  options_.requalify_interval = std::chrono::seconds(60);
  options_.requalify_limit = 2;
  make_and_load();
  ASSERT_EQ(run(1)->tier, RoadTier::Small);
  big_->load_act = Act::Error;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(tiers_->requalify(begin));
  wait_for_candidate();
  const auto output = run(2);
  ASSERT_TRUE(output);
  EXPECT_EQ(output->tier, RoadTier::Small);
  EXPECT_FALSE(output->is_switch);
  EXPECT_EQ(to_string(tiers_->state()), "Degraded(LoadFailed)");
  EXPECT_EQ(tiers_->requalify(begin + std::chrono::seconds(59)).error().reason(), "RateLimited");
  ASSERT_TRUE(tiers_->requalify(begin + std::chrono::seconds(60)));
  wait_for_candidate();
  ASSERT_TRUE(run(3));
  EXPECT_EQ(tiers_->requalify(begin + std::chrono::hours(9)).error().reason(), "RateLimited");
}

TEST_F(TieredRunnerTest, ABadFrameIsNobodysFault) {
  make_and_load();
  RoadInput input = fake_input(1);
  input.wide.info.valid = false;
  const auto output = tiers_->run(input, kNoDesire, in_seconds(10));
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().reason(), "BadFrame");
  EXPECT_EQ(to_string(tiers_->state()), "Ready");
  EXPECT_EQ(run(2)->tier, RoadTier::Big);
}

}  // namespace
}  // namespace ignis::pipeline
