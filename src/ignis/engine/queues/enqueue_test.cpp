#include "ignis/engine/queues/enqueue.h"

#include "ignis/engine/queues/test_world.h"

#include <gtest/gtest.h>

namespace ignis::engine {
namespace {

/// The kinds that the queue spec's table names, with the capabilities it gives them.
class Enqueue : public ::testing::Test {
 protected:
  Enqueue() {
    world_.device("CUDA");
    world_.device("CUDA:1");
    world_.device("AMD");
    world_.device("QCOM").has_unified_memory = true;
  }

  std::string device_of(exec::CallKind kind, const std::vector<std::string>& arguments) {
    std::vector<exec::BufferRange> ranges;
    for (const std::string& device : arguments) {
      ranges.push_back(resolve_view(world_.schedule.buffers, on(device)).value());
    }
    return choose_device(world_.table, world_.schedule.buffers, kind, ranges)
        .value_or("not enqueued");
  }
  exec::BufferView on(const std::string& device) { return world_.buffer(device, {device}); }

  TestWorld world_;
  static constexpr exec::CallKind kProgram = exec::CallKind::Program;
  static constexpr exec::CallKind kCopy = exec::CallKind::Copy;
  static constexpr exec::CallKind kOther = exec::CallKind::Other;
};

// Copies are written (destination, source) as in the spec.
TEST_F(Enqueue, EN1_ProgramGoesWhereItsArgumentsAre) {
  EXPECT_EQ(device_of(kProgram, {"CUDA"}), "CUDA");
}

TEST_F(Enqueue, EN2_NoBufferOrAnotherKindIsNotEnqueued) {
  EXPECT_EQ(device_of(kProgram, {}), "not enqueued");
  EXPECT_EQ(device_of(kOther, {"CUDA"}), "not enqueued");
}

TEST_F(Enqueue, EN3_AKindIsSwitchedOffAndOn) {
  world_.table.switched_off = {"AMD"};
  EXPECT_EQ(device_of(kProgram, {"AMD"}), "not enqueued");
  world_.table.switched_off.clear();
  EXPECT_EQ(device_of(kProgram, {"AMD"}), "AMD");
}

TEST_F(Enqueue, EN4_CopyFromTheHost) { EXPECT_EQ(device_of(kCopy, {"CUDA", "CPU"}), "CUDA"); }

TEST_F(Enqueue, EN5_TheSourceWins) {
  EXPECT_EQ(device_of(kCopy, {"CPU", "CUDA"}), "CUDA");
  EXPECT_EQ(device_of(kCopy, {"CUDA:1", "CUDA"}), "CUDA");
}

TEST_F(Enqueue, EN6_UnifiedMemoryIsCopiedByTheHost) {
  EXPECT_EQ(device_of(kCopy, {"QCOM", "CPU"}), "not enqueued");
  EXPECT_EQ(device_of(kCopy, {"CPU", "QCOM"}), "not enqueued");
}

TEST_F(Enqueue, EN7_UnifiedMemoryRunsPrograms) { EXPECT_EQ(device_of(kProgram, {"QCOM"}), "QCOM"); }

TEST_F(Enqueue, EN8_TheFirstQueuedArgumentDecides) {
  EXPECT_EQ(device_of(kProgram, {"CPU", "CUDA:1"}), "CUDA:1");
}

TEST_F(Enqueue, TheHostIsNeverEnqueuedWhateverTheTableSays) {
  world_.table.devices["CPU"].is_queued = true;
  EXPECT_EQ(device_of(kProgram, {"CPU"}), "not enqueued");
}

TEST_F(Enqueue, EveryDeviceOfAnArgumentMustBeQueued) {
  const exec::BufferView mixed = world_.buffer("mixed", {"CUDA", "CPU"});
  const std::vector<exec::BufferRange> ranges = {
      resolve_view(world_.schedule.buffers, mixed).value()};
  EXPECT_FALSE(choose_device(world_.table, world_.schedule.buffers, kProgram, ranges));
}

TEST(EnqueueReach, AProgramWhoseHostMemoryCannotBeMappedIsRefused) {
  TestWorld world;
  world.device("CUDA");
  world.hooks.can_map = [](const std::string&, const exec::ScheduleBuffer&, int) -> Result<bool> {
    return false;
  };
  world.kernel({world.buffer("a", {"CUDA"})}, {world.buffer("h", {"CPU"})});
  const auto result = world.compile();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason(), "NotMappable");
  EXPECT_EQ(result.error().code(), ErrorCode::Unsupported);
}

TEST(DeviceTableTest, FingerprintSeesSwitchesAndCapabilities) {
  TestWorld world;
  world.device("CUDA");
  const uint64_t before = world.table.fingerprint();
  EXPECT_EQ(before, world.table.fingerprint());
  world.table.switched_off = {"CUDA"};
  EXPECT_NE(before, world.table.fingerprint());
  world.table.switched_off.clear();
  world.device("CUDA").copy_queues = 2;
  EXPECT_NE(before, world.table.fingerprint());
}

}  // namespace
}  // namespace ignis::engine
