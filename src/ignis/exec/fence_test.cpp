#include "ignis/exec/fence.h"

#include "ignis/exec/synchronize.h"
#include "ignis/vdev/queue/test_batch.h"

#include "tests/support/count_allocations.h"
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>

namespace ignis::exec {
namespace {

using namespace vdev::test;  // NOLINT: the vocabulary of these tests
using runtime::DeviceCondition;
using runtime::Purpose;
using runtime::QueuedDevice;
using runtime::WaitLimits;
using vdev::DeviceSpec;
using vdev::FaultKind;
using vdev::Opcode;
using vdev::World;
using vdev::WorldOptions;

DeviceSpec gpu(const std::string& name) {
  DeviceSpec spec;
  spec.name = name;
  return spec;
}

WorldOptions in_real_time() {
  WorldOptions options;
  options.clock = &runtime::Clock::real();
  return options;
}

class Fence : public ::testing::Test {
 protected:
  Fence() : device(world.add(gpu("CUDA"))), peer(world.add(gpu("CUDA:1"))) {
    data = device.allocate(4, Purpose::Data).value();
    peer_data = peer.allocate(4, Purpose::Data).value();
  }
  int64_t since_start_ms() { return (world.clock().now_ns() - start_ns) / kMs; }

  World world;
  QueuedDevice& device;
  QueuedDevice& peer;
  runtime::MemoryRef data, peer_data;
  int64_t start_ns = world.clock().now_ns();
};

TEST_F(Fence, FN1_AnnouncesAndZeroesAndUsesTheSnapshot) {
  TestBatch batch(world, {&device});
  const int tag =
      batch.add_exec(batch.add_program(device, add_one(world, 1)), {batch.add_address(data)});
  const int signal = batch.add_signal();
  batch.add_stream(0, kCompute, {barrier(), wait_reached(0), launch(tag), store_reached(0)});
  ASSERT_TRUE(batch.link());
  device.timeline().announced = 7;
  *device.timeline().reached = 7;
  batch.signal(signal) = 9;
  EXPECT_EQ(batch.fence->epochs()[0].value, 0u);

  world.set_tracing(true);
  ASSERT_TRUE(batch.run());
  EXPECT_EQ(device.timeline().announced, 8u);
  EXPECT_EQ(batch.fence->epochs()[0].value, 8u);
  EXPECT_EQ(batch.signal(signal), 0u);
  EXPECT_EQ(*device.timeline().reached, 7u);
  EXPECT_TRUE(world.run_until_idle());
  EXPECT_EQ(*device.timeline().reached, 8u);
  const auto trace = world.take_trace();
  ASSERT_EQ(trace.size(), 4u);
  EXPECT_EQ(trace[1].instruction.opcode, Opcode::Wait);
  EXPECT_EQ(trace[1].instruction.value, 7u);
  EXPECT_EQ(trace[3].instruction.opcode, Opcode::Store);
  EXPECT_EQ(trace[3].instruction.value, 8u);
}

TEST(FenceInRealTime, FN2_TheNextRunWaitsForTheLast) {
  World world(in_real_time());  // and nobody serves the device
  QueuedDevice& device = world.add(gpu("CUDA"));
  KernelBatch batch(world, device, device.allocate(4, Purpose::Data).value(), 1);
  ASSERT_TRUE(batch.link());
  device.timeline().announced = 7;
  *device.timeline().reached = 7;
  ASSERT_TRUE(batch.run());
  std::atomic<bool> is_done{false};
  std::jthread second([&] {
    EXPECT_TRUE(batch.run());
    is_done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(is_done);
  EXPECT_EQ(device.timeline().announced, 8u);
  *device.timeline().reached = 8;
  second.join();
  EXPECT_TRUE(is_done);
  EXPECT_EQ(device.timeline().announced, 9u);
}

TEST_F(Fence, FN3_AStuckDeviceEndsTheWaitAndNothingChanges) {
  TestBatch batch(world, {&device});
  const int signal = batch.add_signal();
  batch.add_stream(0, kCompute, {barrier(), store_reached(0)});
  ASSERT_TRUE(batch.link());
  device.timeline().announced = 7;
  *device.timeline().reached = 7;
  world.inject("CUDA", {.kind = FaultKind::StuckSignal});
  ASSERT_TRUE(batch.run());
  batch.signal(signal) = 5;
  start_ns = world.clock().now_ns();
  const Status second = batch.run({.deadline_ns = 50 * kMs});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::Timeout);
  EXPECT_EQ(second.error().reason(), "FenceTimeout");
  EXPECT_NE(second.error().message().find("'CUDA'"), std::string::npos);
  EXPECT_GE(since_start_ms(), 50);
  EXPECT_LT(since_start_ms(), 100);
  EXPECT_EQ(device.timeline().announced, 8u);
  EXPECT_EQ(batch.fence->epochs()[0].value, 8u);
  EXPECT_EQ(batch.signal(signal), 5u);
  EXPECT_EQ(device.state().condition, DeviceCondition::Unavailable);
}

TEST_F(Fence, FN4_ASecondStuckDeviceLeavesTheFirstAsItWas) {
  PairBatch batch(world, device, peer, data, peer_data, 1);
  ASSERT_TRUE(batch.link());
  ASSERT_TRUE(batch.run());
  EXPECT_TRUE(world.run_until_idle());
  *peer.timeline().reached = 0;  // as if its last store had not come
  const Status second = batch.run({.deadline_ns = 50 * kMs});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason(), "FenceTimeout");
  EXPECT_NE(second.error().message().find("'CUDA:1'"), std::string::npos);
  EXPECT_EQ(device.timeline().announced, 1u);
  EXPECT_EQ(peer.timeline().announced, 1u);
  EXPECT_TRUE(device.is_online());
  EXPECT_FALSE(peer.is_online());
}

TEST(FenceRing, FN5_AFullQueueEndsTheWaitAndNothingIsAnnounced) {
  World world;
  DeviceSpec spec = gpu("CUDA");
  spec.ring_bytes = 100;  // a batch has 80
  QueuedDevice& device = world.add(spec);
  const auto data = device.allocate(4, Purpose::Data).value();
  KernelBatch first(world, device, data, 1);
  KernelBatch second(world, device, data, 1);
  ASSERT_TRUE(first.link());
  ASSERT_TRUE(second.link());
  world.inject("CUDA", {.kind = FaultKind::RingFull});
  ASSERT_TRUE(first.run());
  const int64_t start_ns = world.clock().now_ns();
  const Status full = second.run({.deadline_ns = 50 * kMs});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), ErrorCode::OutOfMemory);
  EXPECT_EQ(full.error().reason(), "QueueFull");
  EXPECT_LT(world.clock().now_ns() - start_ns, 100 * kMs);
  EXPECT_EQ(device.timeline().announced, 1u);
  EXPECT_EQ(second.fence->epochs()[0].value, 0u);
  EXPECT_TRUE(device.is_online());
  world.heal("CUDA");
  EXPECT_TRUE(second.run({.deadline_ns = 50 * kMs}));
  EXPECT_TRUE(world.run_until_idle());
  EXPECT_EQ(numbers_of(data)[0], 2);

  TestBatch large(world, {&device});
  large.add_stream(0, kCompute, std::vector<runtime::Command>(26, barrier()));
  ASSERT_TRUE(large.link());
  const Status refused = large.run();
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(refused.error().reason(), "SubmitTooLarge");
  EXPECT_EQ(device.timeline().announced, 2u);
}

// Without the submission locks two threads announce in one order and submit in the other, and both queues wait for ever.
TEST(FenceInRealTime, FN8_AnnouncedValuesAndSubmitsComeInOneOrder) {
  constexpr int kRuns = 10'000;
  World world(in_real_time());
  std::array<QueuedDevice*, 2> devices{};
  for (int i = 0; i < 2; ++i) {
    DeviceSpec spec = gpu("CUDA:" + std::to_string(i));
    spec.kernel_ns = 0;
    devices[static_cast<size_t>(i)] = &world.add(spec);
  }
  const auto data = devices[0]->allocate(4, Purpose::Data).value();
  const auto peer_data = devices[1]->allocate(4, Purpose::Data).value();
  PairBatch first(world, *devices[0], *devices[1], data, peer_data, 1);
  PairBatch second(world, *devices[0], *devices[1], data, peer_data, 1);
  ASSERT_TRUE(first.link());
  ASSERT_TRUE(second.link());
  world.set_tracing(true);
  world.start_worker();
  const auto run = [](PairBatch& batch) {
    int count = 0;
    batch.fence->set_pause_before_submit([&count] {
      if (++count % 64 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      } else {
        std::this_thread::yield();
      }
    });
    for (int i = 0; i < kRuns; ++i) {
      const Status status = batch.run();
      ASSERT_TRUE(status) << i << ": " << status.error().to_string();
    }
  };
  {
    std::jthread other([&] { run(second); });
    run(first);
  }
  const PendingOwners nobody;
  for (QueuedDevice* device : devices) ASSERT_TRUE(synchronize(*device, nobody, kPatient));
  world.stop_worker();
  EXPECT_EQ(numbers_of(data)[0], 2 * kRuns);
  EXPECT_EQ(numbers_of(peer_data)[0], 2 * kRuns);
  std::map<std::string, uint64_t> next;
  for (const vdev::TraceEntry& entry : world.take_trace()) {
    // A batch's start waits for what was announced before it: its own device first, then the peer.
    if (entry.instruction.opcode != Opcode::Wait || entry.instruction.value > uint64_t{2} * kRuns)
      continue;
    const uint64_t own =
        world.find(entry.device)->map(world.find(entry.device)->timeline().memory).value();
    if (entry.instruction.address != own) continue;
    ASSERT_EQ(entry.instruction.value, next[entry.device]);
    ++next[entry.device];
  }
  EXPECT_EQ(next["CUDA"], uint64_t{2} * kRuns);
  EXPECT_EQ(next["CUDA:1"], uint64_t{2} * kRuns);
}

TEST(FenceNarrow, W13_APairBeginsAnewAtHalfOfItsRange) {
  constexpr uint64_t kHalf = uint64_t{1} << 31;
  World world;
  DeviceSpec narrow = gpu("CUDA");
  narrow.capabilities.signal_bits = 32;
  QueuedDevice& device = world.add(narrow);
  QueuedDevice& wide = world.add(gpu("CUDA:1"));
  const auto data = device.allocate(4, Purpose::Data).value();
  const auto wide_data = wide.allocate(4, Purpose::Data).value();
  device.timeline().announced = kHalf - 20;
  *device.timeline().reached = kHalf - 20;
  PairBatch pair(world, device, wide, data, wide_data, 1);
  KernelBatch single(world, device, data, 1);
  ASSERT_TRUE(pair.link());
  ASSERT_TRUE(single.link());
  const PendingOwners nobody;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(pair.run()) << i;
    const runtime::Submitted before = pair.fence->submitted()[0];
    ASSERT_TRUE(single.run()) << i;
    EXPECT_LT(device.timeline().announced, kHalf);
    ASSERT_TRUE(synchronize(device, nobody, kPatient));
    EXPECT_TRUE(before.is_reached()) << "also when the pair began anew in between";
    EXPECT_EQ(numbers_of(data)[0], 2 * (i + 1));
  }
  EXPECT_EQ(device.timeline().restarts, 1u);
  EXPECT_EQ(device.timeline().announced, 40u - 19u);
  EXPECT_EQ(wide.timeline().restarts, 0u);
  EXPECT_EQ(wide.timeline().announced, 20u);
  EXPECT_EQ(numbers_of(wide_data)[0], 20);
}

TEST(FenceNarrow, ADeviceThatDoesNotDrainIsATimeout) {
  World world;
  DeviceSpec narrow = gpu("CUDA");
  narrow.capabilities.signal_bits = 32;
  QueuedDevice& device = world.add(narrow);
  KernelBatch batch(world, device, device.allocate(4, Purpose::Data).value(), 1);
  ASSERT_TRUE(batch.link());
  device.timeline().announced = (uint64_t{1} << 31) - 1;
  const Status status = batch.run({.deadline_ns = 50 * kMs});
  EXPECT_EQ(status.error().reason(), "FenceTimeout");
  EXPECT_EQ(device.timeline().restarts, 0u);
  EXPECT_TRUE(device.try_lock_submission(world.clock().now_ns())) << "no lock stays behind";
  device.unlock_submission();
}

TEST(FenceInRealTime, RunsAndWaitsAllocateNothing) {
  World world(in_real_time());
  QueuedDevice& first = world.add(gpu("CUDA"));
  QueuedDevice& second = world.add(gpu("CUDA:1"));
  PairBatch batch(world, first, second, first.allocate(4, Purpose::Data).value(),
                  second.allocate(4, Purpose::Data).value(), 1);
  ASSERT_TRUE(batch.link());
  PendingOwners pending;
  const auto run_twice = [&] {
    ASSERT_TRUE(batch.run());
    ASSERT_TRUE(batch.run());  // waits for the first
    for (const runtime::Submitted& token : batch.fence->submitted()) pending.note("CPU", token);
    pending.note_batch(batch.fence->submitted());
    ASSERT_TRUE(synchronize(first, pending, kPatient));
    ASSERT_TRUE(synchronize_owner("CPU", pending, kPatient));
    ASSERT_TRUE(wait_for(batch.fence->submitted(), kPatient));
  };
  world.start_worker();
  run_twice();
  const int64_t before = testing::thread_allocation_count();
  for (int i = 0; i < 50; ++i) run_twice();
  EXPECT_EQ(testing::thread_allocation_count() - before, 0);
}

TEST_F(Fence, AFirstSubmitThatFailsIsTakenBack) {
  PairBatch batch(world, device, peer, data, peer_data, 1);
  ASSERT_TRUE(batch.link());
  world.inject("CUDA", {.kind = FaultKind::RemovedBeforeSubmit});
  const Status status = batch.run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason(), "DeviceUnavailable");
  EXPECT_EQ(device.timeline().announced, 0u);
  EXPECT_EQ(peer.timeline().announced, 0u);
  EXPECT_TRUE(peer.is_online());
  KernelBatch other(world, peer, peer_data, 1);
  ASSERT_TRUE(other.link());
  EXPECT_TRUE(other.run());
  EXPECT_TRUE(synchronize(peer, {}, kPatient));
}

TEST_F(Fence, ABatchSubmittedInPartMakesAllItsDevicesUnavailable) {
  PairBatch batch(world, device, peer, data, peer_data, 1);
  ASSERT_TRUE(batch.link());
  world.inject("CUDA:1", {.kind = FaultKind::RemovedBeforeSubmit});
  const Status status = batch.run();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::DeviceLost);
  EXPECT_NE(status.error().message().find("'CUDA:1'"), std::string::npos);
  EXPECT_FALSE(device.is_online());
  EXPECT_NE(device.state().reason.find("'CUDA:1'"), std::string::npos) << device.state().reason;
  EXPECT_FALSE(peer.is_online());
}

TEST_F(Fence, APatchThatFailsChangesNothing) {
  KernelBatch batch(world, device, data, 1);
  ASSERT_TRUE(batch.link());
  const Status status = batch.fence->run({}, kPatient, [](std::span<const uint64_t>) -> Status {
    return Error(ErrorCode::InvalidArgument, "no");
  });
  EXPECT_EQ(status.error().message(), "no");
  EXPECT_EQ(device.timeline().announced, 0u);
}

TEST_F(Fence, ALimitOfZeroLooksAndBlamesNobody) {
  KernelBatch batch(world, device, data, 1);
  ASSERT_TRUE(batch.link());
  ASSERT_TRUE(batch.run({}));
  const Status busy = batch.run({});
  EXPECT_EQ(busy.error().reason(), "FenceTimeout");
  EXPECT_EQ(world.clock().now_ns(), start_ns);
  EXPECT_TRUE(device.is_online());
  EXPECT_TRUE(world.run_until_idle());
  EXPECT_TRUE(batch.run({}));
}

TEST_F(Fence, ABusySubmissionIsATimeout) {
  KernelBatch batch(world, device, data, 1);
  ASSERT_TRUE(batch.link());
  ASSERT_TRUE(device.try_lock_submission(0));
  const Status busy = batch.run({.deadline_ns = 50 * kMs});
  EXPECT_EQ(busy.error().reason(), "FenceTimeout");
  EXPECT_TRUE(device.is_online());
  device.unlock_submission();
  EXPECT_TRUE(batch.run());
}

}  // namespace
}  // namespace ignis::exec
