#include "ignis/pipeline/road/host.h"

#include "ignis/pipeline/road/test_fake_road_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ignis::pipeline {
namespace {

using testing::fake_input;
using testing::fake_layout;
using testing::FakeRoad;
using testing::FakeScript;
using testing::in_seconds;
using testing::kLoadRuns;

TierOptions options(const std::shared_ptr<FakeScript>& big,
                    const std::shared_ptr<FakeScript>& small) {
  TierOptions result;
  result.big = FakeRoad::options(big, RoadTier::Big);
  result.small = FakeRoad::options(small, RoadTier::Small);
  return result;
}

TEST(RoadHost, ReportsSayWhichTierAndASwitchBeginsAnEpoch) {
  FakeRoad road;
  const auto big = road.script();
  big->run_act = FakeScript::Act::Hang;
  big->bad_run = kLoadRuns + 1;
  RoadHost host(options(big, road.script()));
  ASSERT_TRUE(host.load(fake_layout()));
  const RoadReport first = host.run(fake_input(10), in_seconds(20));
  EXPECT_TRUE(first.is_valid);
  EXPECT_EQ(first.frame_id, 10u);
  EXPECT_EQ(first.tier, RoadTier::Big);
  EXPECT_EQ(first.epoch, 1u);
  const RoadReport second = host.run(fake_input(11), in_seconds(20));
  EXPECT_TRUE(second.is_valid);
  EXPECT_EQ(second.frame_id, 11u) << "the same frame, by the other model";
  EXPECT_EQ(second.tier, RoadTier::Small);
  EXPECT_TRUE(second.is_tier_switch);
  EXPECT_EQ(second.epoch, 2u);
  EXPECT_EQ(to_string(second.state), "Degraded(RunTimeout)");
  const RoadReport third = host.run(fake_input(12), in_seconds(20));
  EXPECT_FALSE(third.is_tier_switch);
  EXPECT_EQ(third.epoch, 2u);
}

TEST(RoadHost, WhatFailsIsATypedReportWithoutValues) {
  FakeRoad road;
  const auto big = road.script(), small = road.script();
  big->run_act = small->run_act = FakeScript::Act::Nan;
  big->bad_run = small->bad_run = kLoadRuns;
  RoadHost host(options(big, small));
  ASSERT_TRUE(host.load(fake_layout()));
  RoadInput bad = fake_input(1);
  bad.action_t[0] = INFINITY;
  const RoadReport refused = host.run(bad, in_seconds(20));
  EXPECT_FALSE(refused.is_valid);
  EXPECT_EQ(refused.reason, "NonFiniteInput");
  EXPECT_EQ(to_string(refused.state), "Ready");
  const RoadReport report = host.run(fake_input(2), in_seconds(20));
  EXPECT_FALSE(report.is_valid);
  EXPECT_EQ(report.reason, "Unavailable");
  EXPECT_TRUE(report.decoded.empty());
  EXPECT_EQ(to_string(report.state), "Failed(Unavailable)");
}

TEST(RoadHost, AGapOfValidOutputBeginsAnEpoch) {
  FakeRoad road;
  RoadHost host(options(road.script(), road.script()));
  ASSERT_TRUE(host.load(fake_layout()));
  EXPECT_EQ(host.run(fake_input(1), in_seconds(20)).epoch, 1u);
  RoadInput bad = fake_input(2);
  bad.main.info.valid = false;
  EXPECT_EQ(host.run(bad, in_seconds(20)).epoch, 1u);
  EXPECT_EQ(host.run(fake_input(3), in_seconds(20)).epoch, 2u);
}

TEST(RoadHost, DecodesSlicesAndPulsesDesire) {
  FakeRoad road;
  RoadHost host(options(road.script(), road.script()));
  ASSERT_TRUE(host.load(fake_layout()));
  RoadInput input = fake_input(1);
  input.desire[3] = 1;
  // The fake's output 2 is the pulse of desire 3, output 3 is 0; both are one softmax.
  const RoadReport rise = host.run(input, in_seconds(20));
  ASSERT_EQ(rise.decoded.size(), 4u);
  EXPECT_NEAR(rise.decoded[2], std::exp(1.0) / (std::exp(1.0) + 1), 1e-6);
  EXPECT_NEAR(rise.decoded[2] + rise.decoded[3], 1, 1e-6);
  const RoadReport held = host.run(input, in_seconds(20));
  EXPECT_NEAR(held.decoded[2], 0.5, 1e-6);
}

TEST(RoadHost, APulseThatNoModelSawComesAgain) {
  FakeRoad road;
  RoadHost host(options(road.script(), road.script()));
  ASSERT_TRUE(host.load(fake_layout()));
  RoadInput input = fake_input(1);
  input.desire[3] = 1;
  input.main.info.valid = false;
  EXPECT_EQ(host.run(input, in_seconds(20)).reason, "BadFrame");
  input.main.info.valid = true;
  EXPECT_GT(host.run(input, in_seconds(20)).decoded[2], 0.7f);
  EXPECT_NEAR(host.run(input, in_seconds(20)).decoded[2], 0.5, 1e-6);
}

}  // namespace
}  // namespace ignis::pipeline
