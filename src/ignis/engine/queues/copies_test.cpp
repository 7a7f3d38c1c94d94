#include "ignis/engine/queues/copies.h"

#include "ignis/engine/queues/test_machine.h"
#include "ignis/engine/queues/test_world.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace ignis::engine {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

/// Only stages and a device's own memory can be mapped.
Result<bool> only_stages(const std::string&, const exec::ScheduleBuffer& buffer, int) {
  return !buffer.stage_for.empty();
}

/// A copy between the host and G that has to be staged, and its transfers.
struct Staged {
  TestWorld world;
  exec::Schedule prepared;

  Staged(uint64_t stage_bytes, int slots, uint64_t size_bytes, int item_bytes = 1) {
    world.peers(1);
    world.hooks.can_map = only_stages;
    world.options.stage = {stage_bytes, slots};
    const exec::BufferView device = world.buffer("d", {"G"}, size_bytes, item_bytes);
    world.copy(device, world.buffer("h", {"CPU"}, size_bytes, item_bytes));
    prepared =
        prepare_schedule(world.schedule, world.table, world.options.stage, world.hooks).value();
  }
  size_t transfers() const { return prepared.calls.size(); }
  /// Chunk i's place in the stage; both of its transfers must name it.
  exec::BufferRange slot(size_t chunk) const {
    const auto in = resolve_view(prepared.buffers, prepared.calls[2 * chunk].arguments[0]).value();
    const auto out =
        resolve_view(prepared.buffers, prepared.calls[2 * chunk + 1].arguments[1]).value();
    EXPECT_EQ(in, out);
    EXPECT_EQ(prepared.buffers[static_cast<size_t>(in.buffer)].stage_for, "G");
    return in;
  }
};

TEST(Copies, CP1_SlotsAreUsedInTurn) {
  const Staged staged(kMiB, 4, 5'242'880 + 123);
  EXPECT_EQ(staged.transfers(), 42u);  // 21 chunks
  EXPECT_EQ(staged.slot(4).offset_bytes, 0u);
  EXPECT_EQ(staged.slot(4).size_bytes, 262'144u);
  EXPECT_EQ(staged.slot(20).offset_bytes, 0u);
  EXPECT_EQ(staged.slot(20).size_bytes, 123u);
}

TEST(Copies, CP2_BytesInHalvesOfTheStage) {
  const Staged staged(128 * kMiB, 2, 300 * kMiB);
  ASSERT_EQ(staged.transfers(), 10u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(staged.slot(i).offset_bytes, i % 2 * 67'108'864u);
    EXPECT_EQ(staged.slot(i).size_bytes, i < 4 ? 67'108'864u : 46'137'344u);
  }
}

TEST(Copies, CP3_ElementsOfFourBytes) {
  const Staged staged(128 * kMiB, 2, 200 * kMiB, 4);
  ASSERT_EQ(staged.transfers(), 8u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(staged.slot(i).offset_bytes, i % 2 * 16'777'216u * 4);
    EXPECT_EQ(staged.slot(i).size_bytes, (i < 3 ? 16'777'216u : 2'097'152u) * 4);
    EXPECT_EQ(staged.slot(i).item_bytes, 4);
  }
}

TEST(Copies, CP4_ThereAndBackBitForBit) {
  TestWorld world;
  world.peers(1);
  world.hooks.can_map = only_stages;
  world.options.stage = {kMiB, 4};
  const uint64_t size_bytes = 5'242'880 + 123;
  const exec::BufferView from = world.buffer("from", {"CPU"}, size_bytes),
                         device = world.buffer("device", {"G"}, size_bytes),
                         back = world.buffer("back", {"CPU"}, size_bytes);
  world.copy(device, from);
  world.copy(back, device);
  const exec::QueueTemplate made = world.made();
  TestMemory memory = filled_memory(made.buffers);
  const auto sent = memory[0][0];
  std::mt19937_64 rng(1);
  EXPECT_EQ(run_in_flight(made, world.table, memory, rng), std::nullopt);
  EXPECT_TRUE(memory[1][0] == sent);
  EXPECT_TRUE(memory[2][0] == sent);
}

TEST(Copies, CP5_AKernelCopiesWhereNoQueueDoes) {
  TestWorld world;
  world.device("G", 0);
  const exec::BufferView from = world.buffer("from", {"CPU"}, 61 * 4, 4),
                         device = world.buffer("device", {"G"}, 61 * 4, 4),
                         back = world.buffer("back", {"CPU"}, 61 * 4, 4);
  world.copy(device, from);
  world.copy(back, device);
  const exec::QueueTemplate made = world.made();
  ASSERT_EQ(made.steps.size(), 1u);
  EXPECT_EQ(to_text(made.steps[0].batch), "G/COMPUTE:0: B; W R[G]>=N; k0; k1; T R[G]=N+1\n");
  EXPECT_EQ(made.programs.size(), 2u);  // the test's kernel, and one program for both copies
  for (const exec::BatchCall& call : made.steps[0].batch.calls) {
    EXPECT_EQ(call.kind, exec::CallKind::Program);
    EXPECT_EQ(call.outs, std::vector<int>{0});
    EXPECT_EQ(call.ins, std::vector<int>{1});
  }
  TestMemory memory = filled_memory(made.buffers);
  std::vector<float> values(61);
  for (size_t i = 0; i < 61; ++i) values[i] = static_cast<float>(i);
  std::memcpy(memory[0][0].data(), values.data(), 61 * 4);
  std::mt19937_64 rng(1);
  EXPECT_EQ(run_in_flight(made, world.table, memory, rng), std::nullopt);
  EXPECT_EQ(std::memcmp(memory[2][0].data(), values.data(), 61 * 4), 0);
}

TEST(Copies, CP6_PeersThatMapAreOneCopy) {
  TestWorld world;
  world.peers(2);
  world.copy(world.buffer("b", {"G1"}), world.buffer("a", {"G"}));
  const exec::QueueTemplate made = world.made();
  ASSERT_EQ(made.steps.size(), 1u);
  ASSERT_EQ(made.steps[0].batch.calls.size(), 1u);
  EXPECT_EQ(made.steps[0].batch.calls[0].kind, exec::CallKind::Copy);
}

/// A copy from CUDA to AMD, which are no peers.
TestWorld two_groups(bool first_has_card, bool second_has_card) {
  TestWorld world;
  world.device("CUDA").has_network_card = first_has_card;
  world.device("AMD").has_network_card = second_has_card;
  const exec::BufferView to = world.buffer("to", {"AMD"});
  world.copy(to, world.buffer("from", {"CUDA"}));
  return world;
}

TEST(Copies, CP7_TwoCardsMakeAPairInTwoBatches) {
  const exec::QueueTemplate made = two_groups(true, true).made();
  EXPECT_EQ(steps_text(made), "batch c0 no-wait | batch c0");
  EXPECT_EQ(made.steps[0].batch.devices, std::vector<std::string>{"CUDA"});
  EXPECT_EQ(made.steps[1].batch.devices, std::vector<std::string>{"AMD"});
  EXPECT_TRUE(made.steps[1].after.empty());  // that would never end
  const auto& send = made.steps[0].batch.calls[0];
  const auto& receive = made.steps[1].batch.calls[0];
  EXPECT_TRUE(made.buffers[static_cast<size_t>(send.arguments[0].buffer)].is_wire);
  EXPECT_TRUE(made.buffers[static_cast<size_t>(receive.arguments[1].buffer)].is_wire);
  EXPECT_EQ(made.buffers[static_cast<size_t>(send.arguments[0].buffer)].other_end,
            receive.arguments[1].buffer);
}

TEST(Copies, CP8_OneCardIsNone) {
  for (const bool first : {false, true}) {
    const TestWorld world = two_groups(first, !first);
    const exec::QueueTemplate made = world.made();
    EXPECT_EQ(steps_text(made), "batch c0 | batch c0");
    EXPECT_EQ(made.buffers.back().stage_for, "CUDA>AMD");
    // The second may not be submitted before the slot is filled: the two devices share no timeline.
    EXPECT_EQ(made.steps[1].after, std::vector<int>{0});
  }
}

// Both halves of a pair have to be enqueued, or the other half waits for ever.
TEST(Copies, ACardThatNoQueueFeedsIsNone) {
  TestWorld without_queue = two_groups(true, true);
  without_queue.device("AMD", 0);
  EXPECT_EQ(steps_text(without_queue.made()), "batch c0 | batch c0");
  TestWorld unified = two_groups(true, true);
  unified.device("AMD").has_unified_memory = true;
  EXPECT_EQ(steps_text(unified.made()), "batch c0 | host c0");
}

TEST(Copies, CP9_ItemSizesMustBeEqual) {
  TestWorld world;
  world.peers(1);
  world.copy(world.buffer("to", {"G"}, 16, 2), world.buffer("from", {"CPU"}, 16, 4));
  const auto result = world.compile();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason(), "ItemSize");
  EXPECT_EQ(result.error().message(), "Copy 'c0' goes from items of 4 bytes to items of 2 bytes.");
}

TEST(Copies, CP10_NothingIsCopiedByNothing) {
  TestWorld world;
  world.peers(1);
  world.copy(world.buffer("to", {"G"}, 0), world.buffer("from", {"CPU"}, 0));
  const exec::BufferView bytes = world.buffer("b", {"G"});
  world.copy(slice(bytes, 3, 3), slice(world.buffer("h", {"CPU"}), 16, 16));
  EXPECT_TRUE(world.made().steps.empty());
}

TEST(Copies, UnlikeSizesAreRefused) {
  TestWorld world;
  world.peers(1);
  world.copy(world.buffer("to", {"G"}, 16), world.buffer("from", {"CPU"}, 8));
  EXPECT_EQ(world.compile().error().reason(), "CopySize");
}

TEST(Copies, AStageThatCannotBeMappedIsATypedError) {
  TestWorld world;
  world.peers(1);
  world.hooks.can_map = [](const std::string&, const exec::ScheduleBuffer&, int) -> Result<bool> {
    return false;
  };
  world.copy(world.buffer("to", {"G"}), world.buffer("from", {"CPU"}));
  const auto result = world.compile();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason(), "StagingUnmappable");
  EXPECT_EQ(result.error().code(), ErrorCode::Unsupported);
}

TEST(Copies, AnErrorOfTheMappingIsPassedOn) {
  TestWorld world;
  world.peers(1);
  world.hooks.can_map = [](const std::string&, const exec::ScheduleBuffer&, int) -> Result<bool> {
    return Error(ErrorCode::DeviceLost, "Device 'G' is gone.");
  };
  world.copy(world.buffer("to", {"G"}), world.buffer("from", {"CPU"}));
  EXPECT_EQ(world.compile().error().code(), ErrorCode::DeviceLost);
}

TEST(Copies, AnItemLargerThanASlotIsRefused) {
  TestWorld world;
  world.peers(1);
  world.hooks.can_map = only_stages;
  world.options.stage = {16, 4};
  world.copy(world.buffer("to", {"G"}, 16, 8), world.buffer("from", {"CPU"}, 16, 8));
  EXPECT_EQ(world.compile().error().reason(), "StageTooSmall");
}

TEST(Copies, EachPairHasAStageOfItsOwn) {
  TestWorld world;
  world.peers(2);
  world.hooks.can_map = only_stages;
  const exec::BufferView host = world.buffer("h", {"CPU"}), a = world.buffer("a", {"G"}),
                         b = world.buffer("b", {"G1"});
  world.copy(a, host);
  world.copy(host, a);
  world.copy(b, host);
  world.copy(b, a);
  const auto prepared =
      prepare_schedule(world.schedule, world.table, world.options.stage, world.hooks).value();
  std::vector<std::string> stages;
  for (const exec::ScheduleBuffer& buffer : prepared.buffers) {
    if (!buffer.stage_for.empty()) stages.push_back(buffer.stage_for);
  }
  EXPECT_EQ(stages, (std::vector<std::string>{"G", "G1", "G>G1"}));
}

// Weakness W-9: a writer of a slot waits for that slot's last reader, not for the device.
TEST(Copies, AWriterOfASlotWaitsForThatSlotAlone) {
  TestWorld world;
  world.peers(1);
  world.hooks.can_map = only_stages;
  world.options.stage = {8, 2};
  world.copy(world.buffer("to", {"G"}), world.buffer("from", {"CPU"}));
  const exec::QueueTemplate made = world.made();
  EXPECT_EQ(steps_text(made),
            "host c0 | batch c0 | host c0 | batch c0 | host c0 | batch c0 | host c0 | batch c0");
  const std::vector<std::vector<int>> expected = {{}, {}, {}, {}, {1}, {}, {3}, {}};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(made.steps[i].after, expected[i]) << i;
}

}  // namespace
}  // namespace ignis::engine
