#include "ignis/engine/queues/batches.h"

#include "ignis/engine/queues/test_world.h"

#include <gtest/gtest.h>

namespace ignis::engine {
namespace {

TEST(Batches, BA1_AHostCallCuts) {
  TestWorld world;
  world.peers(1);
  const exec::BufferView device = world.buffer("d", {"G"}), host = world.buffer("h", {"CPU"});
  world.kernel({device});
  world.kernel({device});
  world.kernel({host});
  world.kernel({device});
  EXPECT_EQ(steps_text(world.made()), "batch k0 k1 | host k2 | batch k3");
}

/// Two devices that are no peers.
TestWorld two_groups() {
  TestWorld world;
  world.device("A");
  world.device("B");
  return world;
}

TEST(Batches, BA2_GroupsOfPeersAreBatches) {
  TestWorld world = two_groups();
  const exec::BufferView a = world.buffer("a", {"A"}), b = world.buffer("b", {"B"});
  world.kernel({a});
  world.kernel({b});
  world.kernel({a});
  world.kernel({b});
  EXPECT_EQ(steps_text(world.made()), "batch k0 k2 no-wait | batch k1 k3");
}

/// Queues of copies among four peers in all-to-all mode, by (destination, source).
std::vector<int> queues_of(int peers, int copy_queues,
                           const std::vector<std::pair<int, int>>& copies, int declared = 8) {
  TestWorld world;
  world.peers(peers, declared);
  world.options.queues = {1, copy_queues};
  std::vector<exec::BufferView> memory;
  for (const auto& [name, unused] : world.table.devices) {
    memory.push_back(world.buffer(name, {name}));
    world.kernel({memory.back()});  // every peer takes part
  }
  for (const auto& [to, from] : copies) {
    world.copy(memory[static_cast<size_t>(to)], memory[static_cast<size_t>(from)]);
  }
  std::vector<int> queues;
  const exec::QueueTemplate made = world.made();
  for (const exec::BatchCall& call : made.steps[0].batch.calls) {
    if (call.kind != exec::CallKind::Copy) continue;
    EXPECT_EQ(call.queue.kind, runtime::QueueId::Kind::Copy);
    queues.push_back(call.queue.index);
  }
  return queues;
}

TEST(Batches, BA4_FourPeersFourQueues) {
  EXPECT_EQ(queues_of(4, 4, {{0, 1}, {1, 0}, {0, 3}, {3, 0}}), (std::vector<int>{2, 0, 0, 2}));
}

TEST(Batches, BA5_FourPeersTwoQueues) {
  EXPECT_EQ(queues_of(4, 2, {{0, 2}, {2, 1}, {1, 3}}), (std::vector<int>{1, 0, 1}));
}

TEST(Batches, BA6_TwoPeersTwoQueues) {
  EXPECT_EQ(queues_of(2, 2, {{0, 1}, {1, 0}}), (std::vector<int>{0, 0}));
}

TEST(Batches, NoMoreQueuesThanTheDeviceDeclares) {
  EXPECT_EQ(queues_of(4, 4, {{0, 1}, {1, 0}, {0, 3}, {3, 0}}, 1), (std::vector<int>{0, 0, 0, 0}));
  // Unset: one queue for each peer.
  EXPECT_EQ(queues_of(4, 0, {{0, 1}, {1, 0}, {0, 2}}), (std::vector<int>{2, 0, 1}));
}

TEST(Batches, CopiesThatAreNoPeersUseTheFirstQueue) {
  TestWorld world;
  world.peers(2, 4);
  world.options.queues = {1, 4};
  const exec::BufferView a = world.buffer("a", {"G"}), b = world.buffer("b", {"G1"});
  world.copy(world.buffer("h", {"CPU"}), a);
  world.copy(slice(a, 0, 8), slice(a, 8, 16));
  world.copy(b, a);
  const exec::QueueTemplate made = world.made();
  for (const exec::BatchCall& call : made.steps[0].batch.calls) {
    EXPECT_EQ(call.queue.index, 0) << call.name;
  }
  // Without all-to-all the configured count says nothing.
  world.options.queues = {0, 4};
  EXPECT_EQ(world.made().steps[0].batch.calls[2].queue.index, 0);
}

TEST(Batches, BA7_ThereAndBackAroundAHostKernel) {
  TestWorld world;
  world.peers(1);
  const exec::BufferView device = world.buffer("d", {"G"}), host = world.buffer("h", {"CPU"});
  world.kernel({device});
  world.copy(host, device);
  world.kernel({host});
  world.copy(device, host);
  world.kernel({device});
  const exec::QueueTemplate made = world.made();
  EXPECT_EQ(steps_text(made), "batch k0 c1 | host k2 | batch c3 k4");
  EXPECT_EQ(made.steps[1].after, std::vector<int>{0});
  EXPECT_EQ(made.steps[1].batch.touched, (std::vector<exec::TouchedOwner>{{"CPU", 0}}));
  EXPECT_EQ(made.steps[0].batch.touched, (std::vector<exec::TouchedOwner>{{"CPU", 0}}));
}

TEST(Batches, BA8_ARunEndsWhereGroupsMeet) {
  TestWorld world = two_groups();
  const exec::BufferView host = world.buffer("H", {"CPU"});
  world.kernel({slice(host, 0, 8), world.buffer("a", {"A"})});
  world.kernel({world.buffer("b", {"B"})}, {slice(host, 0, 8)});
  const exec::QueueTemplate made = world.made();
  EXPECT_EQ(steps_text(made), "batch k0 | batch k1");
  EXPECT_EQ(made.steps[1].after, std::vector<int>{0});
}

TEST(Batches, BA8_BytesApartAreOneRun) {
  TestWorld world = two_groups();
  const exec::BufferView host = world.buffer("H", {"CPU"});
  world.kernel({slice(host, 0, 8), world.buffer("a", {"A"})});
  world.kernel({world.buffer("b", {"B"})}, {slice(host, 8, 16)});
  EXPECT_EQ(steps_text(world.made()), "batch k0 no-wait | batch k1");
}

TEST(Batches, BA8_ANetworkPairStaysInOneRun) {
  TestWorld world = two_groups();
  world.device("A").has_network_card = true;
  world.device("B").has_network_card = true;
  const exec::BufferView a = world.buffer("a", {"A"}), b = world.buffer("b", {"B"}),
                         host = world.buffer("H", {"CPU"});
  world.kernel({a});
  world.copy(b, a);
  world.kernel({b});
  EXPECT_EQ(steps_text(world.made()), "batch k0 c1 no-wait | batch c1 k2");
  // The receive would meet a call of the other group: the run ends before the send, not between.
  TestWorld met = world;
  met.schedule.calls.clear();
  met.hooks.can_map = [](const std::string&, const exec::ScheduleBuffer&, int) -> Result<bool> {
    return true;
  };
  met.kernel({a, b});
  met.copy(b, a);
  EXPECT_EQ(steps_text(met.made()), "batch k0 | batch c1 no-wait | batch c1");
}

// B's first kernel makes A a part of its batch; A's send would wait for that batch, which waits for the send.
TEST(Batches, BatchesOfOneRunShareNoDevice) {
  TestWorld world = two_groups();
  world.device("A").has_network_card = true;
  world.device("B").has_network_card = true;
  world.hooks.can_map = [](const std::string&, const exec::ScheduleBuffer&, int) -> Result<bool> {
    return true;
  };
  const exec::BufferView a = world.buffer("a", {"A"}), b = world.buffer("b", {"B"});
  world.kernel({world.buffer("x", {"B"})}, {a});
  world.copy(b, a);
  EXPECT_EQ(steps_text(world.made()), "batch k0 | batch c1 no-wait | batch c1");
}

TEST(Batches, BatchesThatShareATimelineNeedNoOtherOrder) {
  TestWorld world = two_groups();
  const exec::BufferView a = world.buffer("a", {"A"}), host = world.buffer("h", {"CPU"});
  world.kernel({a});
  world.kernel({host});
  world.kernel({a});
  const exec::QueueTemplate made = world.made();
  EXPECT_EQ(steps_text(made), "batch k0 | host k1 | batch k2");
  EXPECT_TRUE(made.steps[1].after.empty());
  EXPECT_TRUE(made.steps[2].after.empty());
}

// Two batches of one peer group, joined by the host's memory only.
TEST(Batches, PeersThatMeetInHostMemoryAreOrdered) {
  TestWorld world;
  world.peers(2);
  const exec::BufferView host = world.buffer("h", {"CPU"});
  world.kernel({host, world.buffer("a", {"G"})});
  world.kernel({world.buffer("other", {"CPU"})});
  world.kernel({world.buffer("b", {"G1"})}, {host});
  const exec::QueueTemplate made = world.made();
  EXPECT_EQ(steps_text(made), "batch k0 | host k1 | batch k2");
  EXPECT_EQ(made.steps[2].after, std::vector<int>{0});
}

}  // namespace
}  // namespace ignis::engine
