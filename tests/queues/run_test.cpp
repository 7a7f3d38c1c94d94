// Queue spec, sections 10 and 12, and the run half of DP-13.

#include "ignis/engine/queues/clock_offset.h"

#include "tests/queues/test_rig.h"
#include "tests/support/count_allocations.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

namespace ignis::testing {
namespace {

constexpr float kTwo = 2;

/// A device G, buffers of 4 floats, and programs on them.
struct RunRig : Rig {
  runtime::QueuedDevice& device;
  int add_one, times_two;

  explicit RunRig(vdev::WorldOptions world_options = {}, vdev::DeviceSpec spec = {},
                  int copy_queues = 1)
      : Rig(std::move(world_options)),
        device(add_device("G", copy_queues, std::move(spec))),
        add_one(add_program("add_one", 2, float_map(4, [](float x) { return x + 1; }))),
        times_two(add_program("times_two", 2, float_map(4, [](float x) { return x * kTwo; }))) {}

  exec::BufferView known(const std::string& name, const std::string& owner) {
    const exec::BufferView view = buffer(name, {owner});
    memory_of[view.buffer] = give(view);
    return view;
  }
  void call(int program, const exec::BufferView& to, const exec::BufferView& from) {
    kernel({to}, {from});
    schedule.calls.back().program = program;
  }
  std::shared_ptr<exec::LinkedSchedule> linked() {
    auto made = link();
    EXPECT_TRUE(made) << (made ? "" : made.error().to_string());
    return made ? *made : nullptr;
  }
  exec::Placement at(const exec::BufferView& view) { return whole(memory_of[view.buffer]); }
  std::vector<float> floats(const exec::BufferView& view) { return read_floats(at(view), 4); }
  uint64_t reached(const runtime::QueuedDevice& of) const {
    return const_cast<runtime::QueuedDevice&>(of).timeline().reached->load();
  }
  std::map<int, runtime::MemoryRef> memory_of;
};

void expect_ok(const Status& status) {
  EXPECT_TRUE(status) << (status ? "" : status.error().to_string());
}

TEST(Exec, EX1_NewInputsWithOneTemplate) {
  RunRig rig;
  for (int run = 1; run <= 3; ++run) {
    rig.schedule.calls.clear();
    rig.schedule.buffers.clear();
    const exec::BufferView in = rig.known("in", "G"), out = rig.known("out", "G");
    const exec::BufferView middle = rig.buffer("middle", {"G"});
    const auto value = static_cast<float>(run);
    write_floats(rig.at(in), {value, value + 1, 0, -1});
    rig.call(rig.times_two, middle, in);
    rig.call(rig.add_one, out, middle);
    rig.schedule.calls[0].name = "k0";
    std::vector<exec::BoundInput> inputs;
    const exec::TemplateRef made = rig.compile_shared(true, &inputs).value();
    const auto linked = exec::link(rig.machine, made, inputs, {.allow_cache = true}).value();
    expect_ok(exec::run(*linked, inputs));
    EXPECT_EQ(rig.floats(out), (std::vector<float>{value * 2 + 1, value * 2 + 3, 1, -1}));
  }
  EXPECT_EQ(rig.cache.counts().templates, 1u);
  EXPECT_EQ(rig.cache.counts().misses, 1u);
}

TEST(Exec, EX2_EX3_APendingOwnerIsWaitedForByReaders) {
  RunRig rig;
  const exec::BufferView host = rig.known("host", "CPU"), out = rig.known("out", "G");
  write_floats(rig.at(host), {1, 2, 3, 4});
  rig.call(rig.add_one, out, host);
  const auto linked = rig.linked();
  const uint64_t before = rig.reached(rig.device);
  expect_ok(exec::run(*linked, {}, {.waits = false}));
  EXPECT_EQ(rig.reached(rig.device), before);
  const auto pending = rig.machine->pending().at("CPU", 0);
  ASSERT_TRUE(pending.has_value());
  EXPECT_EQ(&pending->device(), &rig.device);
  EXPECT_EQ(pending->value(), rig.device.timeline().announced.load());
  EXPECT_FALSE(pending->is_reached());
  expect_ok(exec::make_readable(*rig.machine, rig.at(host)));
  EXPECT_TRUE(pending->is_reached());
  EXPECT_EQ(rig.floats(out), (std::vector<float>{2, 3, 4, 5}));
}

TEST(Exec, EX4_WithoutWaitOrProfilingNobodyIsAsked) {
  RunRig rig;
  const exec::BufferView a = rig.known("a", "G"), b = rig.known("b", "G");
  rig.call(rig.add_one, b, a);
  const auto linked = rig.linked();
  for (int i = 0; i < 4; ++i) expect_ok(exec::run(*linked, {}, {.waits = false}));
  EXPECT_EQ(rig.machine->counts().timestamp_reads, 0u);
  EXPECT_EQ(rig.machine->counts().synchronizations, 0u);
  expect_ok(exec::wait(*linked));
}

/// Two devices of different groups, with network cards.
vdev::DeviceSpec in_group(const std::string& group, bool has_card) {
  vdev::DeviceSpec spec;
  spec.capabilities.peer_group = group;
  spec.capabilities.has_network_card = has_card;
  return spec;
}

TEST(Exec, EX5_ANetworkPairIsWaitedForOnce) {
  RunRig rig({}, in_group("a", true));
  rig.add_device("X", 1, in_group("b", true));
  const exec::BufferView from = rig.known("from", "G"), to = rig.known("to", "X");
  write_floats(rig.at(from), {1, 2, 3, 4});
  rig.copy(to, from);
  const auto linked = rig.linked();
  ASSERT_EQ(linked->queues().steps.size(), 2u);
  EXPECT_FALSE(linked->queues().steps[0].batch.waits);
  expect_ok(exec::run(*linked));
  EXPECT_EQ(rig.machine->counts().synchronizations, 1u);
  EXPECT_EQ(rig.floats(to), (std::vector<float>{1, 2, 3, 4}));
  expect_ok(exec::run(*linked));  // the wire is used again
}

TEST(Exec, EX6_AnotherDeviceWaitsForWhoWritesTheHostsMemory) {
  RunRig rig({}, in_group("a", false));
  runtime::QueuedDevice& x = rig.add_device("X", 1, in_group("b", false));
  const exec::BufferView host = rig.known("host", "CPU"), g = rig.known("g", "G");
  write_floats(rig.at(g), {1, 2, 3, 4});
  rig.call(rig.add_one, host, g);
  const auto writes = rig.linked();
  rig.schedule.calls.clear();
  const exec::BufferView out = rig.known("out", "X");
  rig.call(rig.times_two, out, host);
  // The program's device is that of its first argument in the set: out's.
  const auto reads = rig.linked();
  rig.world.set_tracing(true);
  expect_ok(exec::run(*writes, {}, {.waits = false}));
  const uint64_t announced = rig.device.timeline().announced.load();
  EXPECT_LT(rig.reached(rig.device), announced);
  expect_ok(exec::run(*reads, {}, {.waits = false}));
  EXPECT_GE(rig.reached(rig.device), announced) << "X was submitted before G was done.";
  EXPECT_EQ(rig.reached(x), 0u);
  expect_ok(exec::wait(*reads));
  EXPECT_EQ(rig.floats(out), (std::vector<float>{4, 6, 8, 10}));
}

TEST(Exec, RunsOfOneLinkFollowEachOther) {
  RunRig rig;
  const exec::BufferView a = rig.known("a", "G");
  rig.call(rig.add_one, a, a);
  const auto linked = rig.linked();
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) failures += !exec::run(*linked, {}, {.waits = k % 2 == 0});
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_ok(exec::wait(*linked));
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(rig.floats(a)[0], 200);
}

TEST(Exec, AHostRunIsAScheduleToo) {
  RunRig rig;
  const exec::BufferView in = rig.known("in", "CPU"), out = rig.known("out", "CPU");
  const exec::BufferView middle = rig.buffer("middle", {"CPU"});
  write_floats(rig.at(in), {1, 2, 3, 4});
  rig.call(rig.add_one, middle, in);
  rig.copy(out, middle);
  rig.options.is_profiled = true;
  const auto linked = rig.linked();
  expect_ok(exec::run(*linked));
  EXPECT_EQ(rig.floats(out), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(rig.worker().timeline().announced.load(), 1u);
  EXPECT_EQ(rig.reached(rig.worker()), 1u);
  const std::vector<exec::CallRecord> records = exec::take_records(*linked);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].device, "CPU");
  EXPECT_LE(records[0].end_ticks, records[1].start_ticks);
  rig.worker().report_hang("The host worker is dead.");
  const Status lost = exec::run(*linked);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), ErrorCode::DeviceLost);
}

TEST(Exec, AHostRunWaitsForTheDevicesItReads) {
  RunRig rig;
  const exec::BufferView g = rig.known("g", "G"), host = rig.known("host", "CPU");
  const exec::BufferView out = rig.known("out", "CPU");
  write_floats(rig.at(g), {1, 2, 3, 4});
  rig.call(rig.add_one, host, g);  // on G, into the host's memory
  const auto device_run = rig.linked();
  rig.schedule.calls.clear();
  rig.call(rig.times_two, out, host);
  const auto host_run = rig.linked();
  ASSERT_TRUE(host_run->queues().steps[0].is_host);
  expect_ok(exec::run(*device_run, {}, {.waits = false}));
  expect_ok(exec::run(*host_run));
  EXPECT_EQ(rig.floats(out), (std::vector<float>{4, 6, 8, 10}));
}

TEST(Exec, InputsAreCheckedBeforeAnythingMoves) {
  RunRig rig;
  const exec::BufferView in = rig.input(0, "G"), out = rig.input(1, "G");
  rig.call(rig.add_one, out, in);
  const auto linked = rig.linked();
  const exec::BoundInput good = exec::bind(rig.memory("G", 16));
  const auto reason = [&](std::vector<exec::BoundInput> inputs) {
    const Status status = exec::run(*linked, inputs);
    return status ? std::string("ok") : status.error().reason();
  };
  EXPECT_EQ(reason({good}), "MissingInput");
  EXPECT_EQ(reason({good, {}}), "MissingInput");
  EXPECT_EQ(reason({good, exec::bind(nullptr)}), "MissingInput");
  EXPECT_EQ(reason({good, exec::bind(rig.memory("G", 15))}), "InputTooSmall");
  EXPECT_EQ(reason({good, exec::bind(rig.memory("G", 31), 16)}), "InputTooSmall");
  EXPECT_EQ(reason({good, exec::bind(rig.memory("CPU", 16))}), "InputDevice");
  EXPECT_EQ(rig.device.timeline().announced.load(), 0u);
  EXPECT_EQ(reason({good, exec::bind(rig.memory("G", 32), 16)}), "ok");
}

TEST(Dependencies, DP13_OverlappingInputsAreRefusedOrTakeTheConservativeTemplate) {
  RunRig rig;
  const exec::BufferView first = rig.input(0, "G"), second = rig.input(1, "G");
  // On two queues nothing but an alias orders them: a copy into the first, and a kernel that reads the second.
  const exec::BufferView from = rig.known("from", "G"), out = rig.known("out", "G");
  write_floats(rig.at(from), {1, 2, 3, 4});
  rig.copy(first, from);
  rig.call(rig.times_two, out, second);
  const runtime::MemoryRef memory = rig.memory("G", 24);
  const std::vector<exec::BoundInput> inputs = {exec::bind(memory), exec::bind(memory, 8)};
  const auto plain = rig.linked();
  const Status refused = exec::run(*plain, inputs);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "AliasedArguments");
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidArgument);

  rig.options.aliased_inputs = exec::find_aliased_inputs(plain->queues(), inputs);
  ASSERT_EQ(rig.options.aliased_inputs, (std::vector<std::vector<int>>{{0, 1}}));
  const auto careful = rig.linked();
  for (size_t order = 0; order < 4; ++order) {
    rig.world.set_rotation(order);
    write_floats(whole(memory), {0, 0, 0, 0, 5, 6});
    expect_ok(exec::run(*careful, inputs));
    EXPECT_EQ(rig.floats(out), (std::vector<float>{6, 8, 10, 12}));
  }
  // Side by side they are two.
  EXPECT_TRUE(exec::find_aliased_inputs(
                  plain->queues(), std::vector<exec::BoundInput>{exec::bind(rig.memory("G", 16)),
                                                                 exec::bind(rig.memory("G", 16))})
                  .empty());
}

TEST(Exec, ReadersMayLieOverEachOther) {
  RunRig rig;
  const exec::BufferView a = rig.input(0, "G"), b = rig.input(1, "G"), out = rig.known("out", "G");
  rig.call(rig.add_one, out, a);
  rig.call(rig.add_one, out, b);
  const runtime::MemoryRef memory = rig.memory("G", 24);
  expect_ok(exec::run(*rig.linked(),
                      std::vector<exec::BoundInput>{exec::bind(memory), exec::bind(memory, 8)}));
}

TEST(Exec, ALostDeviceHoldsNobodyElseUp) {
  RunRig rig({}, in_group("a", false));
  rig.add_device("X", 1, in_group("b", false));
  const exec::BufferView host = rig.known("host", "CPU"), x = rig.known("x", "X");
  const exec::BufferView g = rig.known("g", "G");
  rig.call(rig.add_one, x, host);
  const auto on_x = rig.linked();
  rig.schedule.calls.clear();
  rig.call(rig.add_one, g, host);
  const auto on_g = rig.linked();
  rig.world.inject("X", {.kind = vdev::FaultKind::StuckSignal});
  expect_ok(exec::run(*on_x, {}, {.waits = false}));
  const Status hang = exec::wait(*on_x, {100'000'000, 100'000'000});
  ASSERT_FALSE(hang);
  EXPECT_EQ(hang.error().reason(), "DeviceHang");
  EXPECT_NE(hang.error().message().find("'X'"), std::string::npos);
  expect_ok(exec::run(*on_g));
  ASSERT_FALSE(exec::run(*on_x));
}

TEST(Exec, ARefusedMappingChangesNothing) {
  RunRig rig;
  const exec::BufferView in = rig.input(0, "CPU"), out = rig.known("out", "G");
  rig.call(rig.add_one, out, in);
  const auto linked = rig.linked();
  rig.world.inject("G", {.kind = vdev::FaultKind::MappingRefused});
  const std::vector<exec::BoundInput> inputs = {exec::bind(rig.memory("CPU", 16))};
  const Status refused = exec::run(*linked, inputs);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "NotMappable");
  EXPECT_EQ(rig.device.timeline().announced.load(), 0u);
  rig.world.heal("G");
  expect_ok(exec::run(*linked, inputs));
}

TEST(Exec, ARunThatSucceedsAllocatesNothing) {
  RunRig rig({.serves_on_sleep = false});
  const exec::BufferView in = rig.input(0, "G"), out = rig.input(1, "G");
  const exec::BufferView host = rig.known("host", "CPU");
  rig.call(rig.add_one, out, in);
  rig.copy(host, out);
  const auto on_device = rig.linked();
  rig.schedule.calls.clear();
  rig.call(rig.add_one, rig.known("far", "CPU"), host);
  const auto on_host = rig.linked();
  const std::vector<exec::BoundInput> inputs = {exec::bind(rig.memory("G", 16)),
                                                exec::bind(rig.memory("G", 16))};
  int64_t allocations = -1;
  for (int i = 0; i < 4; ++i) {
    int64_t before = thread_allocation_count();
    expect_ok(exec::run(*on_device, inputs, {.waits = false}));
    allocations = thread_allocation_count() - before;
    ASSERT_TRUE(rig.world.run_until_idle());  // whose work is not counted
    before = thread_allocation_count();
    expect_ok(exec::wait(*on_device));
    expect_ok(exec::run(*on_host, inputs, {.waits = false}));
    allocations += thread_allocation_count() - before;
    ASSERT_TRUE(rig.world.run_until_idle());
    before = thread_allocation_count();
    expect_ok(exec::wait(*on_host));
    allocations += thread_allocation_count() - before;
  }
  EXPECT_EQ(allocations, 0);
}

TEST(Profile, PR1_TwoKernelsOneAfterTheOther) {
  RunRig rig;
  const exec::BufferView a = rig.known("a", "G"), b = rig.known("b", "G");
  rig.call(rig.add_one, b, a);
  rig.call(rig.add_one, a, b);
  rig.options.is_profiled = true;
  const auto linked = rig.linked();
  expect_ok(exec::run(*linked));
  const std::vector<exec::CallRecord> records = exec::take_records(*linked);
  ASSERT_EQ(records.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const exec::CallRecord& record = records[static_cast<size_t>(i)];
    EXPECT_EQ(record.device, "G");
    EXPECT_EQ(record.name, "k" + std::to_string(i));
    EXPECT_EQ(record.tag, i);
    EXPECT_NEAR(record.seconds, 1e-6, 1e-15);
  }
  EXPECT_LE(records[0].end_ticks, records[1].start_ticks);
  EXPECT_EQ(rig.machine->counts().timestamp_reads, 4u);
}

TEST(Profile, PR2_SlotsStandBehindSignalsAndEpoch) {
  RunRig rig;
  const exec::BufferView a = rig.known("a", "G"), b = rig.known("b", "G");
  const exec::BufferView host = rig.known("host", "CPU");
  rig.call(rig.add_one, b, a);
  rig.copy(host, b);
  rig.call(rig.add_one, b, a);
  rig.options.is_profiled = true;
  const auto linked = rig.linked();
  const exec::LinkedBatch& batch = *linked->steps()[0].batch;
  EXPECT_EQ(batch.slots[0].size_bytes, 144u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(batch.batch->calls[static_cast<size_t>(i)].start_slot, 3 + 2 * i);
    EXPECT_EQ(batch.batch->calls[static_cast<size_t>(i)].end_slot, 4 + 2 * i);
  }
  rig.options.is_profiled = false;
  EXPECT_EQ(rig.linked()->steps()[0].batch->slots[0].size_bytes, 48u);
}

TEST(Profile, PR3_SecondsOfTicks) {
  EXPECT_DOUBLE_EQ(exec::seconds_between(5000, 8000, 1000), 3.0e-6);
}

TEST(Profile, PR4_EveryRunHasItsRecords) {
  RunRig rig;
  const exec::BufferView a = rig.known("a", "G"), b = rig.known("b", "G");
  rig.call(rig.add_one, b, a);
  rig.call(rig.add_one, a, b);
  rig.options.is_profiled = true;
  const auto linked = rig.linked();
  for (int i = 0; i < 3; ++i) expect_ok(exec::run(*linked, {}, {.waits = false}));
  expect_ok(exec::wait(*linked));
  const std::vector<exec::CallRecord> records = exec::take_records(*linked);
  ASSERT_EQ(records.size(), 6u);
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].run, 1 + i / 2);
    EXPECT_EQ(records[i].tag, static_cast<int>(i % 2));
    EXPECT_NEAR(records[i].seconds, 1e-6, 1e-15);
    if (i > 0) {
      EXPECT_LE(records[i - 1].end_ticks, records[i].start_ticks);
    }
  }
  EXPECT_EQ(exec::take_times(*linked).size(), 3u);
}

TEST(Profile, ADevicesClockIsHeldAgainstTheHosts) {
  RunRig rig;
  rig.start();
  const Result<engine::ClockOffset> offset = engine::measure_clock_offset(rig.machine, rig.device);
  ASSERT_TRUE(offset) << offset.error().to_string();
  // The simulated device stamps the world's own time.
  EXPECT_LE(std::abs(offset->offset_ns), offset->uncertainty_ns);
  EXPECT_LT(offset->uncertainty_ns, 1'000'000);
  EXPECT_EQ(offset->to_host_ns(5'000'000, 1000), 5'000'000 + offset->offset_ns);
  EXPECT_EQ(offset->to_host_ns(100, 25), 4'000 + offset->offset_ns);
}

TEST(Profile, LinkingIsMeasuredApart) {
  RunRig rig;
  const exec::BufferView a = rig.known("a", "G"), b = rig.known("b", "G");
  rig.call(rig.add_one, b, a);
  rig.options.is_profiled = true;
  const auto linked = rig.linked();
  EXPECT_GE(linked->link_ns(), 0);
  expect_ok(exec::run(*linked));
  const std::vector<exec::RunTimes> times = exec::take_times(*linked);
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times[0].run, 1u);
  EXPECT_GE(times[0].completion_ns, 1000) << "The kernel takes a microsecond.";
  EXPECT_EQ(times[0].host_ns, 0);
}

}  // namespace
}  // namespace ignis::testing
