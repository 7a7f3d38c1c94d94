// Host runs are batches of the CPU device: the LK, EX, WT and PR tables of the queue spec, on a simulated worker in virtual time
// and on this machine's CPU.

#include "tests/queues/real_cpu_rig.h"
#include "tests/queues/test_rig.h"
#include "tests/support/count_allocations.h"
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace ignis::testing {
namespace {

enum class HostKind { Simulated, Real };

void PrintTo(HostKind kind, std::ostream* out) {
  *out << (kind == HostKind::Real ? "Real" : "Simulated");
}

struct HostRig : Rig {
  std::shared_ptr<runtime::Device> cpu;  ///< null: simulated
  int add_one, times_two;

  explicit HostRig(HostKind kind, bool has_device = true)
      : HostRig(kind == HostKind::Real ? open_cpu() : nullptr, has_device) {}

  exec::BufferView known(const std::string& name, const std::string& owner) {
    const exec::BufferView view = buffer(name, {owner});
    memory_of[view.buffer] = give(view);
    return view;
  }
  void call(int program, const exec::BufferView& to, const exec::BufferView& from) {
    kernel({to}, {from}).program = program;
  }
  std::shared_ptr<exec::LinkedSchedule> linked() {
    auto made = link();
    EXPECT_TRUE(made) << (made ? "" : made.error().to_string());
    return made ? *made : nullptr;
  }
  /// Links what was added since, and begins a new schedule.
  std::shared_ptr<exec::LinkedSchedule> take() {
    auto made = linked();
    schedule.calls.clear();
    return made;
  }
  exec::Placement at(const exec::BufferView& view) { return whole(memory_of[view.buffer]); }
  std::vector<float> floats(const exec::BufferView& view) { return read_floats(at(view), 4); }
  void kill_worker() {
    if (cpu == nullptr) world.inject("CPU", {.kind = vdev::FaultKind::HostWorkerDead});
    else static_cast<cpu::CpuQueue&>(worker()).kill_worker();
  }
  void heal() {
    if (cpu == nullptr) world.heal("CPU");
  }
  std::map<int, runtime::MemoryRef> memory_of;

 private:
  HostRig(std::shared_ptr<runtime::Device> real, bool has_device)
      : Rig(real ? real_world(real) : vdev::WorldOptions{}), cpu(std::move(real)) {
    if (cpu != nullptr) {
      use_real_cpu(*this, cpu);
      world.start_worker();
    }
    if (has_device) add_device("G");
    add_one = add_program("add_one", 2, float_map(4, [](float x) { return x + 1; }));
    times_two = add_program("times_two", 2, float_map(4, [](float x) { return x * 2; }));
  }
};

constexpr runtime::WaitLimits kShort{10'000'000'000, 60'000'000};
constexpr runtime::WaitLimits kLong{30'000'000'000, 30'000'000'000};

class HostRun : public ::testing::TestWithParam<HostKind> {
 protected:
  void SetUp() override {
    if (GetParam() == HostKind::Real && !cpu::test::has_function_programs()) {
      GTEST_SKIP() << "The programs are for x86-64.";
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, HostRun, ::testing::Values(HostKind::Simulated, HostKind::Real),
                         ::testing::PrintToStringParamName());

void expect_ok(const Status& status) {
  EXPECT_TRUE(status) << (status ? "" : status.error().to_string());
}
std::string reason_of(const Status& status) { return status ? "ok" : status.error().reason(); }

TEST_P(HostRun, ASchedulesOfTheHostNeedNoDevice) {
  HostRig rig(GetParam(), /*has_device=*/false);
  const exec::BufferView in = rig.known("in", "CPU"), out = rig.known("out", "CPU");
  const exec::BufferView middle = rig.buffer("middle", {"CPU"});
  write_floats(rig.at(in), {1, 2, 3, 4});
  rig.call(rig.add_one, middle, in);
  rig.copy(out, middle);
  const auto linked = rig.linked();
  EXPECT_TRUE(rig.machine->options().devices.empty());
  for (uint64_t run = 1; run <= 3; ++run) {
    write_floats(rig.at(in), {static_cast<float>(run), 2, 3, 4});
    expect_ok(exec::run(*linked));
    EXPECT_EQ(rig.floats(out), (std::vector<float>{static_cast<float>(run) + 1, 3, 4, 5}));
    EXPECT_EQ(rig.worker().timeline().announced.load(), run);
    EXPECT_EQ(rig.worker().timeline().reached->load(), run);
  }
}

TEST_P(HostRun, LK1_AShortEagerLinkIsUsedAgain) {
  HostRig rig(GetParam());
  rig.call(rig.add_one, rig.known("out", "CPU"), rig.known("in", "CPU"));
  std::vector<exec::BoundInput> inputs;
  const exec::TemplateRef made = rig.compile_shared(true, &inputs).value();
  const auto first = exec::link(rig.machine, made, inputs, {.allow_cache = true}).value();
  const auto second = exec::link(rig.machine, made, {}, {.allow_cache = true}).value();
  EXPECT_EQ(first, second);
  EXPECT_EQ(first->mode(), exec::LinkMode::Own);
  expect_ok(exec::run(*first, inputs));
}

TEST_P(HostRun, LK2_ALongEagerLinkTakesTheRing) {
  HostRig rig(GetParam());
  rig.machine_options.ring_bytes = 64 << 10;
  exec::BufferView last = rig.known("in", "CPU");
  write_floats(rig.at(last), {1, 2, 3, 4});
  for (int i = 0; i < 64; ++i) {
    const exec::BufferView next = rig.buffer("b" + std::to_string(i), {"CPU"});
    rig.call(rig.add_one, next, last);
    last = next;
  }
  const exec::BufferView out = rig.known("out", "CPU");
  rig.call(rig.add_one, out, last);
  std::vector<exec::BoundInput> inputs;
  const exec::TemplateRef made = rig.compile_shared(true, &inputs).value();
  const auto first = exec::link(rig.machine, made, inputs, {.allow_cache = true}).value();
  const auto second = exec::link(rig.machine, made, inputs, {.allow_cache = true}).value();
  EXPECT_NE(first, second);
  EXPECT_EQ(first->mode(), exec::LinkMode::Ring);
  expect_ok(exec::run(*first));
  EXPECT_EQ(rig.floats(out), (std::vector<float>{66, 67, 68, 69}));
  EXPECT_EQ(reason_of(exec::run(*first)), "OneShot");
  expect_ok(exec::run(*second));
}

TEST_P(HostRun, LK6_PlaceholdersShareABlock) {
  HostRig rig(GetParam());
  const exec::BufferView in = rig.known("in", "CPU");
  const exec::BufferView a = rig.buffer("a", {"CPU"}, 100), b = rig.buffer("b", {"CPU"}, 40);
  rig.call(rig.add_one, a, in);
  rig.call(rig.add_one, b, a);
  const auto linked = rig.linked();
  EXPECT_EQ(linked->placement(a.buffer).memory, linked->placement(b.buffer).memory);
  EXPECT_EQ(linked->placement(a.buffer).offset_bytes, 0u);
  EXPECT_EQ(linked->placement(b.buffer).offset_bytes, 128u);
}

TEST_P(HostRun, EX1_NewInputsWithOneTemplate) {
  HostRig rig(GetParam());
  for (int run = 1; run <= 3; ++run) {
    rig.schedule.calls.clear();
    rig.schedule.buffers.clear();
    const exec::BufferView in = rig.known("in", "CPU"), out = rig.known("out", "CPU");
    const exec::BufferView middle = rig.buffer("middle", {"CPU"});
    const auto value = static_cast<float>(run);
    write_floats(rig.at(in), {value, value + 1, 0, -1});
    rig.call(rig.times_two, middle, in);
    rig.call(rig.add_one, out, middle);
    std::vector<exec::BoundInput> inputs;
    const exec::TemplateRef made = rig.compile_shared(true, &inputs).value();
    const auto linked = exec::link(rig.machine, made, inputs, {.allow_cache = true}).value();
    expect_ok(exec::run(*linked, inputs));
    EXPECT_EQ(rig.floats(out), (std::vector<float>{value * 2 + 1, value * 2 + 3, 1, -1}));
  }
  EXPECT_EQ(rig.cache.counts().templates, 1u);
}

TEST_P(HostRun, EX2_EX3_AHostKernelWaitsForTheDeviceThatReadsItsMemory) {
  HostRig rig(GetParam());
  const exec::BufferView shared = rig.known("shared", "CPU"), one = rig.known("one", "CPU");
  const exec::BufferView result = rig.known("result", "G");
  write_floats(rig.at(one), {1, 1, 1, 1});
  write_floats(rig.at(shared), {5, 6, 7, 8});
  rig.call(rig.add_one, result, shared);  // on G
  const auto on_device = rig.take();
  rig.call(rig.times_two, shared, one);  // on the host, over what G reads
  const auto on_host = rig.take();
  expect_ok(exec::run(*on_device, {}, {.waits = false}));
  const auto pending = rig.machine->pending().at("CPU", 0);
  ASSERT_TRUE(pending);
  EXPECT_EQ(pending->device().name(), "G");
  EXPECT_EQ(pending->value(), rig.world.find("G")->timeline().announced.load());
  expect_ok(exec::run(*on_host));
  EXPECT_TRUE(pending->is_reached());
  EXPECT_EQ(rig.floats(shared), (std::vector<float>{2, 2, 2, 2}));
  EXPECT_EQ(rig.floats(result), (std::vector<float>{6, 7, 8, 9}));
}

TEST_P(HostRun, EX4_RunsThatNobodyWaitsForAskNothing) {
  HostRig rig(GetParam());
  rig.call(rig.add_one, rig.known("out", "CPU"), rig.known("in", "CPU"));
  const auto linked = rig.linked();
  for (int i = 0; i < 4; ++i) expect_ok(exec::run(*linked, {}, {.waits = false}));
  EXPECT_EQ(rig.machine->counts().timestamp_reads, 0u);
  EXPECT_EQ(rig.machine->counts().synchronizations, 0u);
  expect_ok(exec::wait(*linked));
  EXPECT_EQ(rig.worker().timeline().reached->load(), 4u);
}

TEST_P(HostRun, EX6_ADeviceWaitsForAHostRunUnderWay) {
  HostRig rig(GetParam());
  const int slow = rig.add_program("slow", 2, [](std::span<std::byte* const> buffers) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    float_map(4, [](float x) { return x + 10; })(buffers);
  });
  const exec::BufferView in = rig.known("in", "CPU"), shared = rig.known("shared", "CPU");
  const exec::BufferView mapped = rig.known("mapped", "G"), result = rig.known("result", "G");
  write_floats(rig.at(in), {1, 2, 3, 4});
  rig.call(slow, shared, in);
  const auto writes_shared = rig.take();
  rig.call(rig.add_one, result, shared);  // on G
  const auto reads_shared = rig.take();
  for (int i = 0; i < 3; ++i) {
    write_floats(rig.at(shared), {0, 0, 0, 0});
    expect_ok(exec::run(*writes_shared, {}, {.waits = false}));
    expect_ok(exec::run(*reads_shared));
    EXPECT_EQ(rig.floats(result), (std::vector<float>{12, 13, 14, 15}));
  }
  // A run that nobody waited for, and then a question for the data.
  write_floats(rig.at(shared), {0, 0, 0, 0});
  expect_ok(exec::run(*writes_shared, {}, {.waits = false}));
  expect_ok(exec::make_readable(*rig.machine, rig.at(shared)));
  EXPECT_EQ(rig.floats(shared), (std::vector<float>{11, 12, 13, 14}));
}

TEST_P(HostRun, BA1_BA7_HostKernelsBetweenBatches) {
  HostRig rig(GetParam());
  const exec::BufferView a = rig.known("a", "G"), b = rig.known("b", "G"), c = rig.known("c", "G");
  const exec::BufferView h = rig.known("h", "CPU"), k = rig.known("k", "CPU");
  write_floats(rig.at(a), {1, 2, 3, 4});
  rig.call(rig.add_one, b, a);
  rig.copy(h, b);
  rig.call(rig.times_two, k, h);
  rig.copy(c, k);
  rig.call(rig.add_one, b, c);
  const auto linked = rig.linked();
  EXPECT_EQ(engine::steps_text(linked->queues()), "batch k0 c1 | host k2 | batch c3 k4");
  for (int i = 0; i < 3; ++i) {
    expect_ok(exec::run(*linked));
    EXPECT_EQ(rig.floats(b), (std::vector<float>{5, 7, 9, 11}));
  }
}

TEST_P(HostRun, CallsOfTheCallersLieBetweenStretchesOfTheRing) {
  HostRig rig(GetParam());
  const exec::BufferView a = rig.known("a", "CPU"), b = rig.known("b", "CPU");
  rig.machine_options.other_call = [&](const exec::BatchCall&, std::span<void* const> arguments) {
    auto* values = static_cast<float*>(arguments[0]);
    for (int i = 0; i < 4; ++i) values[i] *= 10;
    return Status::ok();
  };
  write_floats(rig.at(a), {1, 2, 3, 4});
  rig.call(rig.add_one, b, a);
  rig.other({b});
  rig.call(rig.add_one, a, b);
  rig.options.is_profiled = true;
  const auto linked = rig.linked();
  expect_ok(exec::run(*linked));
  EXPECT_EQ(rig.floats(a), (std::vector<float>{21, 31, 41, 51}));
  EXPECT_EQ(exec::take_records(*linked).size(), 3u);
}

TEST_P(HostRun, WT1_WT5_WT6_ADeadWorkerIsFoundAndReopened) {
  HostRig rig(GetParam());
  const exec::BufferView in = rig.known("in", "CPU"), out = rig.known("out", "CPU");
  const exec::BufferView g = rig.known("g", "G"), g2 = rig.known("g2", "G");
  write_floats(rig.at(in), {1, 2, 3, 4});
  rig.call(rig.add_one, out, in);
  const auto linked = rig.take();
  rig.call(rig.add_one, g2, g);
  const auto apart = rig.take();
  expect_ok(exec::run(*linked));
  rig.kill_worker();
  const int64_t begin_ns = rig.world.clock().now_ns();
  const Status hang = exec::run(*linked, {}, {.limits = kShort});
  EXPECT_EQ(reason_of(hang), "DeviceHang");
  EXPECT_NE(hang.error().message().find("'CPU'"), std::string::npos);
  EXPECT_GE(rig.world.clock().now_ns() - begin_ns, kShort.stall_ns);
  const int64_t lost_ns = rig.world.clock().now_ns();
  EXPECT_EQ(reason_of(exec::run(*linked)), "DeviceUnavailable");
  if (GetParam() == HostKind::Simulated) {
    EXPECT_LE(lost_ns - begin_ns, 2 * kShort.stall_ns);
    EXPECT_LT(rig.world.clock().now_ns() - lost_ns, 1'000'000);
  }
  expect_ok(exec::run(*apart));  // others go on
  rig.heal();
  ASSERT_TRUE(rig.worker().reopen());
  EXPECT_EQ(reason_of(exec::run(*linked)), "StaleLink");
  rig.call(rig.add_one, out, in);
  write_floats(rig.at(out), {0, 0, 0, 0});
  const auto again = rig.take();
  expect_ok(exec::run(*again));
  EXPECT_EQ(rig.floats(out), (std::vector<float>{2, 3, 4, 5}));
}

TEST_P(HostRun, WT4_WhoWaitsForADeviceInVainNamesIt) {
  HostRig rig(GetParam());
  const exec::BufferView shared = rig.known("shared", "CPU"), out = rig.known("out", "CPU");
  rig.call(rig.add_one, rig.known("g", "G"), shared);
  const auto on_device = rig.take();
  rig.call(rig.add_one, shared, out);
  const auto on_host = rig.take();
  rig.world.inject("G", {.kind = vdev::FaultKind::StuckSignal});
  expect_ok(exec::run(*on_device, {}, {.waits = false}));
  const Status refused = exec::run(*on_host, {}, {.limits = kShort});
  EXPECT_EQ(reason_of(refused), "DeviceHang");
  EXPECT_NE(refused.error().message().find("'G'"), std::string::npos);
  EXPECT_TRUE(rig.worker().is_online());
  expect_ok(exec::run(*on_host));
}

TEST_P(HostRun, WT9_ALimitOf0LooksOnce) {
  HostRig rig(GetParam());
  rig.call(rig.add_one, rig.known("out", "CPU"), rig.known("in", "CPU"));
  const auto linked = rig.linked();
  rig.kill_worker();
  EXPECT_EQ(reason_of(exec::run(*linked, {}, {.limits = {0, 0}})), "DeadlineExceeded");
  EXPECT_TRUE(rig.worker().is_online()) << "Nobody is blamed for a look.";
  rig.worker().report_hang("The test is over.");  // else the machine waits for it
}

TEST_P(HostRun, PR1_PR4_EveryRunHasARecordOfEachCall) {
  HostRig rig(GetParam());
  const exec::BufferView a = rig.known("a", "CPU"), b = rig.known("b", "CPU");
  rig.call(rig.add_one, b, a);
  rig.call(rig.times_two, a, b);
  rig.options.is_profiled = true;
  const auto linked = rig.linked();
  for (int i = 0; i < 3; ++i) expect_ok(exec::run(*linked, {}, {.waits = false}));
  expect_ok(exec::wait(*linked));
  const std::vector<exec::CallRecord> records = exec::take_records(*linked);
  ASSERT_EQ(records.size(), 6u);
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].run, i / 2 + 1);
    EXPECT_EQ(records[i].name, i % 2 == 0 ? "k0" : "k1");
    EXPECT_EQ(records[i].device, "CPU");
    EXPECT_LE(records[i].start_ticks, records[i].end_ticks);
    if (i > 0) {
      EXPECT_LE(records[i - 1].end_ticks, records[i].start_ticks);
    }
    if (GetParam() == HostKind::Simulated) {
      EXPECT_DOUBLE_EQ(records[i].seconds, 1e-6);
    }
  }
}

TEST_P(HostRun, CompletionLevelsOfAMarkedCall) {
  HostRig rig(GetParam());
  const exec::BufferView a = rig.known("a", "CPU"), b = rig.known("b", "CPU");
  rig.call(rig.add_one, b, a);
  rig.schedule.calls[0].wants_signal = true;
  rig.call(rig.times_two, a, b);
  const auto linked = rig.linked();
  const exec::LinkedBatch& batch = *linked->steps()[0].batch;
  auto& signal = *reinterpret_cast<std::atomic<uint64_t>*>(batch.slots[0].memory->host() +
                                                           batch.slots[0].offset_bytes);
  expect_ok(exec::run(*linked));
  const runtime::Submitted& submitted = batch.fence->submitted().front();
  EXPECT_TRUE(runtime::KernelComplete::prove_by_signal(submitted, 0, signal));
  EXPECT_TRUE(runtime::KernelComplete::prove_by_timeline(submitted, 1));
  EXPECT_EQ(signal.load(), 1u) << "The last call is not marked: the timeline tells of it.";
}

// ---- what only a real thread can do -----------------------------------------------------------------------------------

class RealHost : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::test::has_function_programs()) GTEST_SKIP() << "The programs are for x86-64.";
  }
};

TEST_F(RealHost, ARunAllocatesNothing) {
  HostRig rig(HostKind::Real, /*has_device=*/false);
  const exec::BufferView in = rig.input(0, "CPU"), out = rig.input(1, "CPU");
  rig.schedule.programs.push_back(
      cpu::test::function_program("plain", 2, [](void* const* buffers, int64_t, int64_t) {
        *static_cast<float*>(buffers[0]) = *static_cast<float*>(buffers[1]) + 1;
      }));
  rig.call(static_cast<int>(rig.schedule.programs.size()) - 1, out, in);
  const auto linked = rig.linked();
  const std::vector<exec::BoundInput> inputs = {exec::bind(rig.memory("CPU", 16)),
                                                exec::bind(rig.memory("CPU", 16))};
  for (int i = 0; i < 2; ++i) expect_ok(exec::run(*linked, inputs));
  rig.world.stop_worker();
  const int64_t before = allocation_count();  // of all threads
  for (int i = 0; i < 100; ++i) {
    const Status status = exec::run(*linked, inputs);
    ASSERT_TRUE(status);
  }
  EXPECT_EQ(allocation_count() - before, 0);
}

TEST_F(RealHost, AHangIsBoundedKeepsItsMemoryAndDoesNotFreezeOthers) {
  static std::atomic<bool> is_open{false}, is_entered{false};
  HostRig rig(HostKind::Real);
  const int gate = rig.add_program("gate", 2, [](std::span<std::byte* const> buffers) {
    is_entered = true;
    while (!is_open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    buffers[0][0] = std::byte{1};
  });
  const exec::BufferView in = rig.known("in", "CPU"), out = rig.known("out", "CPU");
  const exec::BufferView g = rig.known("g", "G"), g2 = rig.known("g2", "G");
  const exec::BufferView middle = rig.buffer("middle", {"CPU"});
  rig.call(gate, middle, in);
  auto hanging = rig.take();
  rig.call(rig.add_one, out, in);
  const auto other = rig.take();
  rig.call(rig.add_one, g2, g);
  const auto on_device = rig.take();
  expect_ok(exec::run(*hanging, {}, {.waits = false}));
  while (!is_entered) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(reason_of(exec::wait(*hanging, kShort)), "DeviceHang");
  EXPECT_EQ(reason_of(exec::run(*other)), "DeviceUnavailable");
  expect_ok(exec::run(*on_device));
  ASSERT_TRUE(rig.worker().reopen());
  EXPECT_EQ(reason_of(exec::run(*other)), "StaleLink");
  rig.call(rig.add_one, out, in);
  write_floats(rig.at(in), {1, 2, 3, 4});
  const auto again = rig.take();
  expect_ok(exec::run(*again));
  EXPECT_EQ(rig.floats(out), (std::vector<float>{2, 3, 4, 5}));
  // What the thread may still write to stays until it came back.
  const std::weak_ptr<runtime::Memory> held = hanging->placement(middle.buffer).memory;
  hanging.reset();
  rig.machine->collect();
  EXPECT_FALSE(held.expired());
  is_open = true;
  while (!rig.worker().is_quiet(1)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  rig.machine->collect();
  EXPECT_TRUE(held.expired());
}

TEST_F(RealHost, ThreadsShareTheWorker) {
  HostRig rig(HostKind::Real);
  constexpr int kThreads = 3, kRuns = 300;
  std::vector<std::shared_ptr<exec::LinkedSchedule>> links;
  std::vector<exec::BufferView> ins, outs;
  for (int i = 0; i < kThreads; ++i) {
    ins.push_back(rig.known("in" + std::to_string(i), "CPU"));
    outs.push_back(rig.known("out" + std::to_string(i), "CPU"));
    rig.call(i % 2 == 0 ? rig.add_one : rig.times_two, outs.back(), ins.back());
    rig.call(rig.add_one, rig.known("g" + std::to_string(i), "G"), outs.back());
    links.push_back(rig.take());
  }
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const auto at = static_cast<size_t>(i);
      for (int run = 0; run < kRuns; ++run) {
        const auto value = static_cast<float>(run);
        write_floats(rig.at(ins[at]), {value, value, value, value});
        failures += !exec::run(*links[at], {}, {.limits = kLong});
        const float want = i % 2 == 0 ? value + 1 : value * 2;
        failures += rig.floats(outs[at]) != std::vector<float>(4, want);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace ignis::testing
