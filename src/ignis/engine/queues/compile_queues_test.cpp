#include "ignis/engine/queues/compile_queues.h"

#include "ignis/engine/queues/test_world.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

namespace ignis::engine {
namespace {

TEST(CompileQueues, AScheduleOfTheHostAloneHasATemplate) {
  TestWorld world;
  const exec::BufferView a = world.buffer("a", {"CPU"}), b = world.buffer("b", {"CPU"});
  world.kernel({a});
  world.copy(b, a);
  world.other({b});
  const exec::QueueTemplate made = world.made();
  EXPECT_EQ(steps_text(made), "host k0 c1 | host k2");
  EXPECT_EQ(made.steps[0].batch.touched, (std::vector<exec::TouchedOwner>{{"CPU", 0}}));
  EXPECT_EQ(made.steps[0].batch.calls[1].tag, 1);
}

/// Each line with four more spaces in front of it, as a block of a page.
std::string indented(const std::string& text) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin) + 1;
    result += "    " + text.substr(begin, end - begin);
    begin = end;
  }
  return result;
}

// The example that docs/queues.md explains is what comes out.
TEST(CompileQueues, TheExampleOfThePageIsTrue) {
  TestWorld world;
  world.device("CUDA");
  const exec::BufferView frame = world.buffer("frame", {"CPU"}, 64),
                         image = world.buffer("image", {"CUDA"}, 64),
                         halo = world.buffer("halo", {"CUDA"}, 64),
                         features = world.buffer("features", {"CUDA"}, 32),
                         result = world.buffer("result", {"CPU"}, 32),
                         faces = world.buffer("faces", {"CPU"}, 16);
  world.copy(image, frame).name = "upload";
  world.kernel({halo}).name = "clear";
  world.kernel({features}, {image, halo}).name = "conv";
  world.copy(result, features).name = "download";
  world.kernel({faces}, {result}).name = "decode";
  std::ifstream file(std::string(IGNIS_SOURCE_DIR) + "/docs/queues.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string expected = indented(to_text(world.made()));
  EXPECT_NE(page.str().find(expected), std::string::npos) << expected;
}

TEST(CompileQueues, EqualSchedulesGiveEqualTemplates) {
  TestWorld world;
  world.peers(2);
  world.copy(world.buffer("b", {"G1"}), world.buffer("a", {"G"}));
  EXPECT_EQ(world.made().steps, world.made().steps);
}

TEST(CompileQueues, LongSchedulesBakeTheirInputs) {
  const auto bakes = [](int calls, int threshold) {
    TestWorld world;
    world.peers(1);
    world.options.link_time_threshold = threshold;
    const exec::BufferView in = world.input(0, "G");
    for (int i = 0; i < calls; ++i) world.kernel({in});
    return world.made().has_link_time_inputs;
  };
  EXPECT_FALSE(bakes(63, 64));
  EXPECT_TRUE(bakes(64, 64));
  EXPECT_TRUE(bakes(1, 0));
}

// Lanes and chunks do not count: the schedule's own calls do.
TEST(CompileQueues, TheThresholdCountsCallsAsHandedIn) {
  TestWorld world;
  world.peers(2);
  world.input(0, "G");
  const exec::BufferView sharded = world.buffer("s", {"G", "G1"});
  for (int i = 0; i < 40; ++i) world.kernel({sharded});
  const exec::QueueTemplate made = world.made();
  EXPECT_EQ(made.steps[0].batch.calls.size(), 80u);
  EXPECT_FALSE(made.has_link_time_inputs);
  EXPECT_EQ(made.input_count, 1);
}

TEST(CompileQueues, UnknownWritesAreWritesOfEveryArgument) {
  TestWorld world;
  world.peers(1);
  const exec::BufferView a = world.buffer("a", {"G"});
  world.kernel({world.buffer("x", {"G"})}, {a}).knows_writes = false;
  world.copy(world.buffer("h", {"CPU"}), a);
  EXPECT_EQ(world.streams(),
            "G/COMPUTE:0: B; W R[G]>=N; k0; T S=1; W S[G/COPY:0]>=2; T R[G]=N+1\n"
            "G/COPY:0: B; W R[G]>=N; W S[G/COMPUTE:0]>=1; c1; T S=2\n");
}

TEST(CompileQueues, LanesMustAgree) {
  TestWorld world;
  world.peers(3);
  world.kernel({world.buffer("two", {"G", "G1"})}, {world.buffer("three", {"G", "G1", "G2"})});
  const auto result = world.compile();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason(), "LaneCount");
}

TEST(CompileQueues, AOneDeviceArgumentIsSharedByAllLanes) {
  TestWorld world;
  world.peers(2);
  world.kernel({world.buffer("s", {"G", "G1"})}, {world.buffer("one", {"G"})});
  EXPECT_EQ(world.streams(),
            "G/COMPUTE:0: B; W R[G]>=N; k0; W S[G1/COMPUTE:0]>=2; T R[G]=N+1\n"
            "G1/COMPUTE:0: B; W R[G1]>=N; W R[G]>=N; k1; T S=2; T R[G1]=N+1\n");
}

TEST(CompileQueues, WhatDoesNotFitTogetherIsRefused) {
  const auto reason_after = [](const std::function<void(TestWorld&)>& spoil) -> std::string {
    TestWorld world;
    world.peers(1);
    world.kernel({world.buffer("a", {"G"})}, {world.buffer("b", {"G"})});
    world.copy(world.buffer("c", {"G"}), world.buffer("d", {"G"}));
    EXPECT_TRUE(world.compile());
    spoil(world);
    const auto result = world.compile();
    if (result) return "";
    EXPECT_EQ(result.error().code(), ErrorCode::InvalidArgument);
    return result.error().reason();
  };
  EXPECT_EQ(reason_after([](TestWorld& w) { w.schedule.calls[0].program = 1; }), "BadSchedule");
  EXPECT_EQ(reason_after([](TestWorld& w) { w.schedule.calls[0].program = -1; }), "BadSchedule");
  EXPECT_EQ(reason_after([](TestWorld& w) { w.schedule.calls[0].outs = {2}; }), "BadSchedule");
  EXPECT_EQ(reason_after([](TestWorld& w) { w.schedule.calls[0].ins = {-1}; }), "BadSchedule");
  EXPECT_EQ(reason_after([](TestWorld& w) { w.schedule.calls[0].parts = 0; }), "BadSchedule");
  EXPECT_EQ(reason_after([](TestWorld& w) { w.schedule.calls[1].arguments.pop_back(); }),
            "BadSchedule");
  EXPECT_EQ(reason_after([](TestWorld& w) { w.schedule.calls[0].arguments[0].buffer = 9; }),
            "BadView");
  EXPECT_EQ(reason_after([](TestWorld& w) { w.schedule.buffers[0].devices = {"G:0"}; }),
            "BadSchedule");
  EXPECT_EQ(reason_after([](TestWorld& w) { w.schedule.buffers[0].devices.clear(); }),
            "BadSchedule");
  EXPECT_EQ(reason_after([](TestWorld& w) { w.schedule.buffers[0].memory.resize(1); }),
            "BadSchedule");
}

}  // namespace
}  // namespace ignis::engine
