#include "ignis/exec/synchronize.h"

#include "ignis/exec/fence.h"
#include "ignis/vdev/queue/test_batch.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace ignis::exec {
namespace {

using namespace vdev::test;  // NOLINT: the vocabulary of these tests
using runtime::DataReadable;
using runtime::DeviceCondition;
using runtime::KernelComplete;
using runtime::MadeVisible;
using runtime::Purpose;
using runtime::QueuedDevice;
using runtime::Submitted;
using vdev::DeviceSpec;
using vdev::FaultKind;
using vdev::World;

constexpr runtime::WaitLimits kStall{.deadline_ns = 10'000 * kMs, .stall_ns = 100 * kMs};

class Synchronize : public testing::Test {
 protected:
  QueuedDevice& add(const std::string& name, int64_t kernel_ns = 1000) {
    DeviceSpec spec;
    spec.name = name;
    spec.kernel_ns = kernel_ns;
    return world.add(spec);
  }
  /// A batch with one kernel on a number of its own, linked.
  KernelBatch& add_batch(QueuedDevice& device) {
    data.push_back(device.allocate(4, Purpose::Data).value());
    batches.push_back(std::make_unique<KernelBatch>(world, device, data.back(), 1));
    EXPECT_TRUE(batches.back()->link());
    return *batches.back();
  }
  void expect_hang(const Status& status, const std::string& device) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::DeviceLost);
    EXPECT_EQ(status.error().reason(), "DeviceHang");
    EXPECT_EQ(status.error().message().find("Device '" + device + "' hangs"), 0u)
        << status.error().message();
    EXPECT_EQ(world.find(device)->state().condition, DeviceCondition::Unavailable);
  }
  int64_t elapsed_ms() { return (world.clock().now_ns() - start_ns) / kMs; }

  World world;
  PendingOwners pending;
  std::vector<runtime::MemoryRef> data;
  std::vector<std::unique_ptr<KernelBatch>> batches;
  int64_t start_ns = world.clock().now_ns();
};

TEST_F(Synchronize, WaitsUntilEverythingAnnouncedIsReached) {
  QueuedDevice& device = add("CUDA", 7 * kMs);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(add_batch(device).run());
  ASSERT_TRUE(synchronize(device, pending, kStall));
  EXPECT_EQ(elapsed_ms(), 21);
  for (const auto& memory : data) EXPECT_EQ(numbers_of(memory)[0], 1);
  ASSERT_TRUE(synchronize(device, pending, {}));
}

TEST_F(Synchronize, WT1_AStuckWordIsAHangOfThatDevice) {
  QueuedDevice& device = add("CUDA:1");
  QueuedDevice& other = add("CUDA");
  KernelBatch& batch = add_batch(device);
  world.inject("CUDA:1", {.kind = FaultKind::StuckSignal});
  ASSERT_TRUE(batch.run());
  expect_hang(synchronize(device, pending, kStall), "CUDA:1");
  EXPECT_GE(elapsed_ms(), 100);
  EXPECT_LE(elapsed_ms(), 200);
  // Others go on.
  ASSERT_TRUE(add_batch(other).run());
  EXPECT_TRUE(synchronize(other, pending, kStall));
}

TEST_F(Synchronize, WT2_SlowStepsAreNoStall) {
  QueuedDevice& device = add("CUDA", 60 * kMs);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(add_batch(device).run());
  EXPECT_TRUE(synchronize(device, pending, kStall));
  EXPECT_EQ(elapsed_ms(), 300);
}

TEST_F(Synchronize, WT3_TheTotalDeadlineIsNoHang) {
  QueuedDevice& device = add("CUDA", 60 * kMs);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(add_batch(device).run());
  const Status late =
      synchronize(device, pending, {.deadline_ns = 150 * kMs, .stall_ns = 100 * kMs});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::Timeout);
  EXPECT_EQ(late.error().reason(), "DeadlineExceeded");
  EXPECT_NE(late.error().message().find("'CUDA'"), std::string::npos);
  EXPECT_TRUE(device.is_online());
  EXPECT_TRUE(synchronize(device, pending, kStall));
}

TEST_F(Synchronize, WT4_AHostWaitBlamesTheDeviceThatIsStuck) {
  QueuedDevice& host = world.add_host_worker();
  QueuedDevice& device = add("AMD");
  KernelBatch& batch = add_batch(device);
  world.inject("AMD", {.kind = FaultKind::StuckSignal});
  ASSERT_TRUE(batch.run());
  pending.note("CPU", batch.fence->submitted()[0]);
  expect_hang(synchronize(host, pending, kStall), "AMD");
  EXPECT_TRUE(host.is_online());
  EXPECT_EQ(synchronize_owner("CPU", pending, kStall).error().reason(), "DeviceUnavailable");
}

TEST_F(Synchronize, WT5_WorkForALostDeviceIsRefusedAtOnce) {
  QueuedDevice& device = add("CUDA");
  KernelBatch& batch = add_batch(device);
  world.inject("CUDA", {.kind = FaultKind::StuckSignal});
  ASSERT_TRUE(batch.run());
  const Submitted outstanding = batch.fence->submitted()[0];
  expect_hang(synchronize(device, pending, kStall), "CUDA");
  const int64_t now_ns = world.clock().now_ns();
  const Status refused = batch.run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::DeviceLost);
  EXPECT_EQ(refused.error().reason(), "DeviceUnavailable");
  EXPECT_EQ(synchronize(device, pending, kStall).error().reason(), "DeviceUnavailable");
  EXPECT_EQ(wait_for({&outstanding, 1}, kStall).error().reason(), "DeviceUnavailable");
  EXPECT_EQ(world.clock().now_ns(), now_ns) << "nobody waited";
}

TEST_F(Synchronize, WT6_WhatWasLinkedBeforeAReopenIsStale) {
  QueuedDevice& device = add("CUDA");
  KernelBatch& batch = add_batch(device);
  world.inject("CUDA", {.kind = FaultKind::StuckSignal});
  ASSERT_TRUE(batch.run());
  const Submitted outstanding = batch.fence->submitted()[0];
  pending.note("CPU", outstanding);
  expect_hang(synchronize(device, pending, kStall), "CUDA");
  world.heal("CUDA");
  ASSERT_TRUE(device.reopen());
  EXPECT_EQ(device.state().generation, 2u);
  const Status stale = batch.run();
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().reason(), "StaleLink");
  EXPECT_EQ(wait_for({&outstanding, 1}, kStall).error().reason(), "DeviceUnavailable");
  EXPECT_TRUE(synchronize_owner("CPU", pending, kStall)) << "that work was given up";
  ASSERT_TRUE(batch.link());
  numbers_of(data[0])[0] = 40;
  ASSERT_TRUE(batch.run());
  ASSERT_TRUE(synchronize(device, pending, kStall));
  EXPECT_EQ(numbers_of(data[0])[0], 41);
}

TEST_F(Synchronize, WT8_CompleteIsNotReadable) {
  DeviceSpec spec;
  spec.capabilities.is_host_coherent = false;
  QueuedDevice& device = world.add(spec);
  KernelBatch& batch = add_batch(device);
  ASSERT_TRUE(batch.run());
  ASSERT_TRUE(wait_for(batch.fence->submitted(), kStall));
  const auto complete = KernelComplete::prove_by_timeline(batch.fence->submitted()[0], 0);
  ASSERT_TRUE(complete);
  const runtime::MemoryBytes bytes{data[0].get(), 0, 4};
  EXPECT_FALSE(DataReadable::prove(bytes, {&*complete, 1}, {}));
  const MadeVisible half = MadeVisible::make(*complete, data[0], 0, 2).value();
  EXPECT_FALSE(DataReadable::prove(bytes, {&*complete, 1}, {&half, 1}));
  const MadeVisible whole = MadeVisible::make(*complete, data[0], 0, 4).value();
  EXPECT_TRUE(DataReadable::prove(bytes, {&*complete, 1}, {&whole, 1}));
  // A step for the last run proves nothing for the next.
  ASSERT_TRUE(batch.run());
  ASSERT_TRUE(wait_for(batch.fence->submitted(), kStall));
  const auto next = KernelComplete::prove_by_timeline(batch.fence->submitted()[0], 0);
  EXPECT_FALSE(DataReadable::prove(bytes, {&*next, 1}, {&whole, 1}));
  device.report_hang("a test");
  const MadeVisible* const visible = &whole;
  EXPECT_FALSE(DataReadable::prove(bytes, {&*complete, 1}, {visible, 1})) << "the device is gone";
}

TEST_F(Synchronize, WT9_ALimitOfZeroLooksOnce) {
  QueuedDevice& device = add("CUDA");
  ASSERT_TRUE(add_batch(device).run());
  const Status late = synchronize(device, pending, {});
  EXPECT_EQ(late.error().reason(), "DeadlineExceeded");
  EXPECT_EQ(world.clock().now_ns(), start_ns);
  EXPECT_TRUE(device.is_online());
  EXPECT_TRUE(world.run_until_idle());
  EXPECT_TRUE(synchronize(device, pending, {}));
}

TEST_F(Synchronize, PendingHoldsTheNewestOfEachAccessor) {
  QueuedDevice& a = add("CUDA", 50 * kMs);
  QueuedDevice& b = add("AMD", 80 * kMs);
  KernelBatch& of_a = add_batch(a);
  ASSERT_TRUE(of_a.run());
  pending.note("CPU", of_a.fence->submitted()[0]);
  KernelBatch& again = add_batch(a);
  ASSERT_TRUE(again.run());
  pending.note("CPU", again.fence->submitted()[0]);
  KernelBatch& of_b = add_batch(b);
  ASSERT_TRUE(of_b.run());
  pending.note("CPU", of_b.fence->submitted()[0]);
  EXPECT_EQ(pending.at("CPU", 0)->value(), 2u);
  EXPECT_EQ(&pending.at("CPU", 1)->device(), &b);
  EXPECT_FALSE(pending.at("CPU", 2));
  EXPECT_FALSE(pending.at("NV", 0));
  ASSERT_TRUE(synchronize_owner("CPU", pending, kStall));
  EXPECT_EQ(elapsed_ms(), 100);
  EXPECT_TRUE(synchronize_owner("NV", pending, {}));
}

class SynchronizePeers : public Synchronize {
 protected:
  void SetUp() override {
    first_data = first.allocate(4, Purpose::Data).value();
    second_data = second.allocate(4, Purpose::Data).value();
    batch = std::make_unique<PairBatch>(world, first, second, first_data, second_data, 1);
    ASSERT_TRUE(batch->link());
  }
  Status run() {
    IGNIS_TRY(batch->run());
    pending.note_batch(batch->fence->submitted());
    return {};
  }
  QueuedDevice& first = add("CUDA");
  QueuedDevice& second = add("CUDA:1");
  runtime::MemoryRef first_data, second_data;
  std::unique_ptr<PairBatch> batch;
};

TEST_F(SynchronizePeers, AStuckPeerIsToBlame) {
  world.inject("CUDA:1", {.kind = FaultKind::StuckSignal});
  ASSERT_TRUE(run());
  expect_hang(synchronize(first, pending, kStall), "CUDA:1");
}

TEST_F(SynchronizePeers, ALostPeerEndsTheWaitOfItsBatch) {
  world.inject("CUDA:1", {.kind = FaultKind::StuckSignal});
  ASSERT_TRUE(run());
  world.inject("CUDA:1", {.kind = FaultKind::PeerLost, .delay_ns = 30 * kMs});
  const Status lost = synchronize(first, pending, kStall);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().reason(), "DeviceUnavailable");
  EXPECT_EQ(lost.error().message().find("Device 'CUDA:1' is not available"), 0u)
      << lost.error().message();
  EXPECT_LE(elapsed_ms(), 31);
  // The first one's queue waits for a signal that never comes.
  EXPECT_FALSE(first.is_online());
  EXPECT_NE(first.state().reason.find("'CUDA:1'"), std::string::npos) << first.state().reason;

  // Reopened, both are as new: what they shared before holds nobody up.
  world.heal("CUDA:1");
  ASSERT_TRUE(first.reopen());
  ASSERT_TRUE(second.reopen());
  EXPECT_TRUE(synchronize(first, pending, kStall));
  SetUp();
  ASSERT_TRUE(run());
  EXPECT_TRUE(synchronize(first, pending, kStall));
  EXPECT_TRUE(synchronize(second, pending, kStall));
  EXPECT_EQ(numbers_of(first_data)[0], 1);
  EXPECT_EQ(numbers_of(second_data)[0], 1);
}

TEST_F(SynchronizePeers, ABatchIsWaitedForAsOne) {
  ASSERT_TRUE(run());
  EXPECT_TRUE(wait_for(batch->fence->submitted(), kStall));
  world.inject("CUDA:1", {.kind = FaultKind::StuckSignal});
  ASSERT_TRUE(run());
  expect_hang(wait_for(batch->fence->submitted(), kStall), "CUDA:1");
  EXPECT_FALSE(first.is_online()) << "it waits for its peer for ever";
}

TEST(DefaultLimits, AreThoseOfTheSpecification) {
  EXPECT_EQ(default_limits({}).stall_ns, 30'000 * kMs);
  runtime::Capabilities behind_a_bridge;
  behind_a_bridge.crosses_host_memory = true;
  EXPECT_EQ(default_limits(behind_a_bridge).stall_ns, 3'000 * kMs);
}

}  // namespace
}  // namespace ignis::exec
