// Capture spec, section 9.

#include "ignis/engine/capture/group.h"

#include "ignis/engine/capture/test_calls.h"

#include <gtest/gtest.h>

namespace ignis::engine {
namespace {

using Sizes = std::vector<int>;

/// Calls on buffers of simulated devices.
struct GroupWorld {
  TestCalls calls;
  GraphDevices devices;
  std::map<std::string, int> buffers;

  GraphDevice& device(const std::string& name, GraphClass graph_class) {
    GraphDevice& made = devices[name];
    made.graph_class = graph_class;
    made.capabilities.is_queued = true;
    made.capabilities.copy_queues = 1;
    made.capabilities.has_device_graphs = true;
    return made;
  }
  int on(const std::string& name) {
    const auto [at, is_new] = buffers.emplace(name, 0);
    if (is_new) at->second = calls.buffer("on_" + name, 16, name);
    return at->second;
  }
  void kernel(const std::string& name, int count = 1) {
    for (int i = 0; i < count; ++i) calls.sum(on(name), {});
  }
  void copy(const std::string& from, const std::string& to) { calls.copy(on(to), on(from)); }
  GroupReport group(GroupOptions options = {}) const {
    return group_calls(calls.schedule, devices, options).value();
  }
};

GroupReport kernels(int count, GroupOptions options = {}) {
  GroupWorld world;
  world.device("G", GraphClass::SingleDevice);
  world.kernel("G", count);
  return world.group(options);
}

TEST(CaptureGroups, GG1_TheLimitIs32AndOneCallIsPlain) {
  EXPECT_EQ(kernels(1).to_text(), "plain 1 (end)");
  EXPECT_EQ(kernels(2).to_text(), "graph 2 (end)");
  EXPECT_EQ(kernels(32).to_text(), "graph 32 (end)");
  EXPECT_EQ(kernels(33).to_text(), "graph 32 (limit), plain 1 (end)");
  EXPECT_TRUE(kernels(0).groups.empty());
}

TEST(CaptureGroups, GG2_TheLimitDoubles) { EXPECT_EQ(kernels(83).sizes(), (Sizes{32, 51})); }

TEST(CaptureGroups, GG3_ItDoublesAgain) { EXPECT_EQ(kernels(100).sizes(), (Sizes{32, 64, 4})); }

TEST(CaptureGroups, GG4_AThousandKernels) {
  const GroupReport report = kernels(1000);
  EXPECT_EQ(report.sizes(), (Sizes{32, 64, 128, 256, 512, 8}));
  EXPECT_EQ(report.graph_count(), 6);
  EXPECT_EQ(report.plain_calls(), 0);
}

TEST(CaptureGroups, GG5_WithoutALimitAllAreOneGraph) {
  GroupOptions options;
  options.limit_calls = 0;
  EXPECT_EQ(kernels(1000, options).to_text(), "graph 1000 (end)");
}

TEST(CaptureGroups, GG6_ADeviceWithoutGraphsCuts) {
  GroupWorld world;
  world.device("G", GraphClass::SingleDevice);
  world.kernel("G", 2);
  world.kernel("CPU");
  world.kernel("G");
  const GroupReport report = world.group();
  EXPECT_EQ(report.to_text(),
            "graph 2 (a call that no graph takes), plain 1 (a call that no graph takes), plain 1 "
            "(end)");
  EXPECT_EQ(report.graph_count(), 1);
  EXPECT_EQ(report.plain_calls(), 2);
  EXPECT_EQ(report.groups[2].first, 3);
}

TEST(CaptureGroups, GG7_TwoDevices) {
  for (const GraphClass graph_class : {GraphClass::SingleDevice, GraphClass::MultiDevice}) {
    GroupWorld world;
    world.device("D", graph_class);
    world.device("D:1", graph_class);
    world.kernel("D", 2);
    world.kernel("D:1", 2);
    world.kernel("D");
    EXPECT_EQ(world.group().to_text(),
              graph_class == GraphClass::SingleDevice
                  ? "graph 2 (other devices), graph 2 (other devices), plain 1 (end)"
                  : "graph 5 (end)");
  }
}

TEST(CaptureGroups, GG8_TwoDevicesAndACopy) {
  for (const GraphClass graph_class : {GraphClass::SingleDevice, GraphClass::MultiDevice}) {
    GroupWorld world;
    world.device("D", graph_class);
    world.device("D:1", graph_class);
    world.kernel("D", 2);
    world.kernel("D:1");
    world.copy("D:1", "D");
    world.kernel("D:1");
    world.kernel("D");
    const GroupReport report = world.group();
    if (graph_class == GraphClass::SingleDevice) {
      EXPECT_EQ(report.sizes(), (Sizes{2, 1, 1, 1, 1}));
      EXPECT_EQ(report.graph_count(), 1);
      EXPECT_EQ(report.plain_calls(), 4);
    } else {
      EXPECT_EQ(report.to_text(), "graph 6 (end)");
    }
  }
}

TEST(CaptureGroups, GG9_WithoutGraphsAllCallsArePlain) {
  GroupOptions options;
  options.makes_graphs = false;
  const GroupReport report = kernels(40, options);
  EXPECT_EQ(report.sizes(), Sizes(40, 1));
  EXPECT_EQ(report.graph_count(), 0);
  EXPECT_EQ(report.groups[0].cut, CutReason::GraphsOff);
}

TEST(CaptureGroups, QueueGraphsTakeOnePeerGroupOrCardsEverywhere) {
  GroupWorld world;
  world.device("D", GraphClass::QueueDevice);
  world.device("D:1", GraphClass::QueueDevice);
  world.device("E", GraphClass::QueueDevice);
  world.kernel("D");
  world.copy("D:1", "D");
  world.kernel("E");
  EXPECT_EQ(world.group().to_text(), "graph 2 (other devices), plain 1 (end)");
  for (auto& [name, device] : world.devices) device.capabilities.has_network_card = true;
  EXPECT_EQ(world.group().to_text(), "graph 3 (end)");
  for (auto& [name, device] : world.devices) {
    device.capabilities.has_network_card = false;
    device.capabilities.peer_group = "all";
  }
  EXPECT_EQ(world.group().to_text(), "graph 3 (end)");
  world.devices["D:1"].capabilities.copy_queues = 0;
  EXPECT_EQ(world.group().sizes(), (Sizes{1, 1, 1}));
  world.devices["D:1"].capabilities.copy_queues = 1;
  EXPECT_EQ(world.group().sizes(), (Sizes{3}));
  world.devices["D"].capabilities.has_device_graphs = false;
  EXPECT_EQ(world.group().sizes(), (Sizes{1, 1, 1}));
  world.devices["D"].capabilities.has_device_graphs = true;
  world.devices["D"].capabilities.is_queued = false;
  EXPECT_EQ(world.group().sizes(), (Sizes{1, 1, 1}));
}

TEST(CaptureGroups, DevicesOfOtherKindsAndOtherCallsAreApart) {
  GroupWorld world;
  world.device("D", GraphClass::MultiDevice);
  world.device("E", GraphClass::MultiDevice);
  world.kernel("D", 2);
  world.kernel("E", 2);
  world.kernel("E");
  world.calls.schedule.calls.back().kind = exec::CallKind::Other;
  world.calls.sum(world.on("E"), {}).arguments.clear();
  EXPECT_EQ(world.group().sizes(), (Sizes{2, 2, 1, 1}));
  EXPECT_EQ(world.group().groups[0].cut, CutReason::OtherDevices);
  world.calls.schedule.calls[0].arguments[0].buffer = 99;
  EXPECT_FALSE(group_calls(world.calls.schedule, world.devices));
}

TEST(CaptureGroups, BatchesOfTheQueueChainAreReportedAlike) {
  exec::QueueTemplate queues;
  const auto step = [&](bool is_batch, size_t calls) {
    exec::TemplateStep made;
    made.is_host = !is_batch;
    made.batch.calls.resize(calls);
    queues.steps.push_back(made);
  };
  step(true, 5);
  step(true, 2);
  step(false, 3);
  step(true, 1);
  const GroupReport report = report_batches(queues);
  EXPECT_EQ(report.to_text(),
            "graph 5 (another peer group), graph 2 (host run), plain 3 (host run), plain 1 (end)");
  EXPECT_EQ(report.groups[3].first, 10);
  EXPECT_EQ(report.plain_calls(), 4);
}

}  // namespace
}  // namespace ignis::engine
