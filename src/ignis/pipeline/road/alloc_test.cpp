// A program of its own: it counts every allocation of the process.

#include "ignis/pipeline/road/host.h"
#include "ignis/pipeline/road/test_fake_road_model.h"

#include "tests/support/count_allocations.h"
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace ignis::pipeline {
namespace {

using testing::fake_input;
using testing::FakeRoad;

TEST(RoadAllocations, NoneAfterTheTenthFrame) {
  FakeRoad road;
  TierOptions options;
  options.big = FakeRoad::options(road.script(), RoadTier::Big);
  options.small = FakeRoad::options(road.script(), RoadTier::Small);
  RoadHost host(options);
  ASSERT_TRUE(host.load(testing::fake_layout()));
  int valid = 0;
  const auto run = [&](uint32_t first, uint32_t last) {
    for (uint32_t frame = first; frame < last; ++frame) {
      const RoadInput input = fake_input(frame);
      valid += host.run(input, testing::in_seconds(20)).is_valid ? 1 : 0;
    }
  };
  run(0, 10);
  const int64_t before = ignis::testing::allocation_count();
  run(10, 110);
  EXPECT_EQ(ignis::testing::allocation_count() - before, 0);
  EXPECT_EQ(valid, 110);
}

}  // namespace
}  // namespace ignis::pipeline
