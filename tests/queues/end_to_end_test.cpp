// Random schedules through the whole chain: compiled to queues, encoded, linked, and run on simulated devices whose queues
// are served in any order. Their memory must come to what the schedule comes to when it is run call by call.

#include "ignis/engine/queues/test_random.h"

#include "tests/queues/real_cpu_rig.h"
#include "tests/queues/test_rig.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <thread>

namespace ignis::testing {
namespace {

using exec::BufferRange;
using exec::ScheduleCall;

/// By buffer, by lane.
using Bytes = std::vector<std::vector<std::vector<std::byte>>>;

/// Every written byte depends on every byte that is read, on the call and on its place.
void compute(const std::string& name, std::span<std::byte* const> buffers,
             const std::vector<uint64_t>& sizes, const std::vector<int>& outs) {
  uint64_t hash = 0xcbf29ce484222325U;
  const auto mix = [&](uint64_t value) { hash = (hash ^ value) * 0x100000001b3U + 0x9e37U; };
  for (const char c : name) mix(static_cast<uint8_t>(c));
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (std::find(outs.begin(), outs.end(), static_cast<int>(i)) != outs.end()) continue;
    for (uint64_t k = 0; k < sizes[i]; ++k) mix(std::to_integer<uint8_t>(buffers[i][k]));
  }
  for (const int out : outs) {
    for (uint64_t k = 0; k < sizes[static_cast<size_t>(out)]; ++k) {
      mix(k + static_cast<uint64_t>(out) * 1000);
      buffers[static_cast<size_t>(out)][k] = static_cast<std::byte>(hash >> 24);
    }
  }
}

std::byte first_byte(size_t buffer, size_t lane, size_t at) {
  return static_cast<std::byte>(buffer * 67 + lane * 29 + at * 3 + 1);
}

Bytes filled(const std::vector<exec::ScheduleBuffer>& buffers) {
  Bytes bytes;
  for (size_t i = 0; i < buffers.size(); ++i) {
    bytes.emplace_back();
    for (size_t lane = 0; lane < buffers[i].devices.size(); ++lane) {
      std::vector<std::byte> of_lane(buffers[i].size_bytes);
      for (size_t k = 0; k < of_lane.size(); ++k) of_lane[k] = first_byte(i, lane, k);
      bytes.back().push_back(std::move(of_lane));
    }
  }
  return bytes;
}

/// The schedule call by call, a call of several lanes lane by lane.
void run_in_order(const exec::Schedule& schedule, Bytes& bytes) {
  for (const ScheduleCall& call : schedule.calls) {
    std::vector<BufferRange> ranges;
    size_t lanes = 1;
    for (const exec::BufferView& view : call.arguments) {
      ranges.push_back(engine::resolve_view(schedule.buffers, view).value());
      const auto buffer = static_cast<size_t>(view.buffer);
      if (ranges.back().lane == exec::kAllLanes) {
        lanes = std::max(lanes, schedule.buffers[buffer].devices.size());
      }
    }
    for (size_t lane = 0; lane < lanes; ++lane) {
      std::vector<std::byte*> pointers;
      std::vector<uint64_t> sizes;
      for (const BufferRange& range : ranges) {
        const size_t at = range.lane == exec::kAllLanes ? lane : static_cast<size_t>(range.lane);
        pointers.push_back(bytes[static_cast<size_t>(range.buffer)][at].data() +
                           range.offset_bytes);
        sizes.push_back(range.size_bytes);
      }
      if (call.kind == exec::CallKind::Copy) {
        std::memmove(pointers[0], pointers[1], sizes[0]);
      } else {
        compute(call.name, pointers, sizes, call.outs);
      }
    }
  }
}

/// Every program call gets a program of its own, because a program knows the sizes of its arguments.
void add_programs(Rig& rig) {
  for (ScheduleCall& call : rig.schedule.calls) {
    if (call.kind == exec::CallKind::Copy) continue;
    std::vector<uint64_t> sizes;
    for (const exec::BufferView& view : call.arguments) {
      sizes.push_back(engine::resolve_view(rig.schedule.buffers, view).value().size_bytes);
    }
    const auto function = [name = call.name, sizes,
                           outs = call.outs](std::span<std::byte* const> buffers) {
      compute(name, buffers, sizes, outs);
    };
    const int program =
        rig.add_program("f_" + call.name, static_cast<int>(call.arguments.size()), function);
    if (call.kind == exec::CallKind::Program) call.program = program;
  }
  rig.machine_options.other_call = [](const exec::BatchCall& call,
                                      std::span<void* const> arguments) {
    std::vector<std::byte*> buffers;
    std::vector<uint64_t> sizes;
    for (size_t i = 0; i < arguments.size(); ++i) {
      buffers.push_back(static_cast<std::byte*>(arguments[i]));
      sizes.push_back(call.arguments[i].size_bytes);
    }
    compute(call.name, buffers, sizes, call.outs);
    return Status::ok();
  };
}

/// Memory of all buffers of one test: bound at each run, known at compile, or placed by the link.
struct Case {
  Rig rig;
  std::vector<exec::BoundInput> inputs;
  std::vector<std::vector<runtime::MemoryRef>> known;  ///< by buffer; empty for a placeholder
  std::shared_ptr<exec::LinkedSchedule> linked;

  /// With `cpu`, host runs are that one's, in real time.
  explicit Case(std::mt19937_64& rng, const std::shared_ptr<runtime::Device>& cpu = nullptr)
      : rig(cpu != nullptr ? real_world(cpu) : vdev::WorldOptions{}) {
    if (cpu != nullptr) use_real_cpu(rig, cpu);
    engine::add_random_devices(rig, 2, rng);
    for (auto& [name, capabilities] : rig.table.devices) {
      capabilities.can_recover = true;
      if (rng() % 4 == 0) capabilities.signal_bits = 32;
      // The simulated caches may not be written while somebody submits, and a real thread writes whenever it likes.
      if (rng() % 4 == 0 && cpu == nullptr) capabilities.is_host_coherent = false;
      if (rng() % 4 == 0) capabilities.crosses_host_memory = true;
    }
    rig.add_missing_devices();
    for (runtime::QueuedDevice* device : rig.world.devices()) {
      if (rng() % 4 != 0) continue;
      // Narrow pairs begin anew in the middle of the test (W-13).
      const uint64_t begin = (uint64_t{1} << (device->capabilities().signal_bits - 1)) - 2;
      device->timeline().announced = begin;
      device->timeline().reached->store(begin);
    }
    for (const auto& buffer : engine::add_random_buffers(rig, rng)) views.push_back(buffer);
    engine::add_random_calls(rig, views, rng);
    add_programs(rig);
    rig.machine_options.ring_bytes = 8192;
    rig.options.stage.size_bytes = 8;  // of 16-byte buffers: several chunks
    rig.options.is_profiled = rng() % 4 == 0;
    rig.options.queues.all_to_all = static_cast<int>(rng() % 2);
    rig.options.link_time_threshold = rng() % 2 == 0 ? 64 : 0;
    for (size_t i = 0; i < rig.schedule.buffers.size(); ++i) place(i, rng() % 3);
    if (cpu != nullptr) rig.world.start_worker();
  }

  /// Other memory in the place of what a lost device had.
  void replace_memory() {
    for (size_t i = 0; i < known.size(); ++i) {
      exec::ScheduleBuffer& buffer = rig.schedule.buffers[i];
      for (size_t lane = 0; lane < known[i].size(); ++lane) {
        known[i][lane] = rig.memory(buffer.devices[lane], buffer.size_bytes);
        if (buffer.input >= 0) {
          inputs[static_cast<size_t>(buffer.input)].lanes[lane] = whole(known[i][lane]);
        } else {
          buffer.memory[lane] = known[i][lane];
        }
      }
    }
  }

  void place(size_t index, uint64_t how) {
    exec::ScheduleBuffer& buffer = rig.schedule.buffers[index];
    known.emplace_back();
    if (how == 0) return;
    exec::BoundInput bound;
    for (const std::string& device : buffer.devices) {
      known.back().push_back(rig.memory(device, buffer.size_bytes));
      bound.lanes.push_back(whole(known.back().back()));
    }
    if (how == 1) {
      buffer.memory = known.back();
      return;
    }
    buffer.input = static_cast<int>(inputs.size());
    inputs.push_back(std::move(bound));
  }

  exec::Placement placement(size_t buffer, size_t lane) const {
    if (!known[buffer].empty()) return whole(known[buffer][lane]);
    return linked->placement(static_cast<int>(buffer), static_cast<int>(lane));
  }

  void fill() {
    for (size_t i = 0; i < known.size(); ++i) {
      const exec::ScheduleBuffer& buffer = rig.schedule.buffers[i];
      for (size_t lane = 0; lane < buffer.devices.size(); ++lane) {
        const exec::Placement at = placement(i, lane);
        if (at.memory == nullptr) continue;
        for (size_t k = 0; k < buffer.size_bytes; ++k) {
          at.memory->host()[at.offset_bytes + k] = first_byte(i, lane, k);
        }
      }
    }
  }

  ::testing::AssertionResult holds(const Bytes& wanted) const {
    for (size_t i = 0; i < known.size(); ++i) {
      for (size_t lane = 0; lane < wanted[i].size(); ++lane) {
        const exec::Placement at = placement(i, lane);
        if (at.memory == nullptr) continue;  // no call uses it
        runtime::QueuedDevice* owner = rig.world.find(at.memory->owner());
        if (owner != nullptr && !owner->capabilities().is_host_coherent &&
            !owner->make_visible(at.memory, at.offset_bytes,
                                 at.offset_bytes + wanted[i][lane].size())) {
          continue;  // complete, and yet lost before anybody could read it
        }
        if (std::memcmp(at.memory->host() + at.offset_bytes, wanted[i][lane].data(),
                        wanted[i][lane].size()) != 0) {
          return ::testing::AssertionFailure() << "Buffer " << i << ", lane " << lane << " differs";
        }
      }
    }
    return ::testing::AssertionSuccess();
  }

  std::vector<exec::BufferView> views;
};

/// Links as a captured schedule is linked, or as an eager run through the template cache. A link that lives for one run
/// makes `runs` 1.
Status run_case(Case& made, std::mt19937_64& rng, int& runs,
                const runtime::WaitLimits& limits = exec::RunOptions().limits) {
  made.rig.start();
  std::vector<exec::BoundInput> inputs = made.inputs;
  if (rng() % 2 == 0) {
    IGNIS_TRY_ASSIGN(made.linked, made.rig.link(inputs));
  } else {
    IGNIS_TRY_ASSIGN(const exec::TemplateRef compiled, made.rig.compile_shared(true, &inputs));
    IGNIS_TRY_ASSIGN(made.linked,
                     exec::link(made.rig.machine, compiled, inputs, {.allow_cache = true}));
  }
  if (made.linked->mode() == exec::LinkMode::Ring) runs = 1;
  made.fill();
  for (int i = 0; i < runs; ++i) {
    if (rng() % 2 == 0) {
      made.rig.world.set_random_order(rng());
    } else {
      made.rig.world.set_rotation(rng() % (made.rig.world.queues().size() + 1));
    }
    exec::RunOptions options;
    options.waits = rng() % 2 == 0;
    options.limits = limits;
    IGNIS_TRY(exec::run(*made.linked, inputs, options));
  }
  return exec::wait(*made.linked, limits);
}

::testing::AssertionResult holds_after(const Case& made, int runs) {
  Bytes wanted = filled(made.rig.schedule.buffers);
  for (int run = 0; run < runs; ++run) run_in_order(made.rig.schedule, wanted);
  return made.holds(wanted);
}

TEST(EndToEnd, RandomSchedulesComeToWhatTheyComeToInOrder) {
  const uint64_t seed = test_seed();
  const int64_t count = engine::test_batches(2000);
  int64_t calls = 0, batches = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::mt19937_64 rng(seed + static_cast<uint64_t>(i));
    SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(seed + static_cast<uint64_t>(i)));
    Case made(rng);
    int runs = 1 + static_cast<int>(rng() % 3);
    const Status status = run_case(made, rng, runs);
    ASSERT_TRUE(status) << status.error().to_string();
    ASSERT_TRUE(holds_after(made, runs)) << engine::steps_text(made.linked->queues());
    calls += static_cast<int64_t>(made.rig.schedule.calls.size());
    for (const exec::TemplateStep& step : made.linked->queues().steps) batches += !step.is_host;
  }
  EXPECT_GT(calls, 2 * count);
  EXPECT_GT(batches, count / 2) << "Hardly anything is enqueued: the test says little.";
}

vdev::Fault random_fault(std::mt19937_64& rng) {
  using Kind = vdev::FaultKind;
  static constexpr Kind kKinds[] = {
      Kind::StuckSignal,       Kind::LateSignal,      Kind::DoorbellLost,        Kind::HalfUpload,
      Kind::MappingRefused,    Kind::RingFull,        Kind::RemovedBeforeSubmit, Kind::PeerLost,
      Kind::RemovedDuringWait, Kind::NetworkCardLost, Kind::HostWorkerDead,
  };
  vdev::Fault fault;
  fault.kind = kKinds[rng() % std::size(kKinds)];
  fault.count = 1 + rng() % 2;
  fault.delay_ns = static_cast<int64_t>(rng() % 3'000);
  return fault;
}

/// Brings every device back: what is lost, or hangs, is reopened.
void recover(Case& made) {
  const runtime::WaitLimits limits{50'000'000, 50'000'000};
  const std::vector<runtime::QueuedDevice*> devices = made.rig.world.devices();
  for (runtime::QueuedDevice* device : devices) made.rig.world.heal(device->name());
  for (size_t round = 0; round <= devices.size(); ++round) {
    bool is_whole = true;
    for (runtime::QueuedDevice* device : devices) {
      if (exec::synchronize(*device, made.rig.machine->pending(), limits)) continue;
      is_whole = false;
      device->report_hang("a test");
      const Status reopened = device->reopen();
      ASSERT_TRUE(reopened) << reopened.error().to_string();
    }
    if (is_whole) return;
  }
  FAIL() << "A device does not come back.";
}

TEST(EndToEnd, FaultsEndInBoundsAndAfterwardsAnswersAreTheSame) {
  const uint64_t seed = test_seed();
  const int64_t count = engine::test_batches(1000);
  const runtime::WaitLimits limits{100'000'000, 50'000'000};
  std::map<std::string, int> ends;
  for (int64_t i = 0; i < count; ++i) {
    std::mt19937_64 rng(seed + static_cast<uint64_t>(i));
    SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(seed + static_cast<uint64_t>(i)));
    Case made(rng);
    const std::vector<runtime::QueuedDevice*> devices = made.rig.world.devices();
    const vdev::Fault fault = random_fault(rng);
    SCOPED_TRACE(to_string(fault.kind));
    made.rig.world.inject(devices[rng() % devices.size()]->name(), fault);
    int runs = 1 + static_cast<int>(rng() % 3);
    const int64_t begin_ns = made.rig.world.clock().now_ns();
    const Status status = run_case(made, rng, runs, limits);
    // Each run and the wait have their deadline.
    EXPECT_LE(made.rig.world.clock().now_ns() - begin_ns, (runs + 1) * 110'000'000);
    if (status) {
      ASSERT_TRUE(holds_after(made, runs)) << "A run succeeded and its answer is wrong.";
    } else {
      EXPECT_FALSE(status.error().reason().empty()) << status.error().to_string();
      EXPECT_NE(status.error().code(), ErrorCode::Internal) << status.error().to_string();
    }
    ++ends[status ? "ok" : status.error().reason()];
    ASSERT_NO_FATAL_FAILURE(recover(made));
    made.linked.reset();
    made.replace_memory();
    runs = 1;
    const Status again = run_case(made, rng, runs);
    ASSERT_TRUE(again) << again.error().to_string();
    ASSERT_TRUE(holds_after(made, runs)) << "after recovery";
  }
  EXPECT_GE(ends.size(), 4u) << "The faults all end alike.";
  EXPECT_GT(ends["ok"], 0);
}

TEST(EndToEnd, RandomSchedulesOnThisMachinesCpu) {
  if (!cpu::test::has_function_programs()) GTEST_SKIP() << "The programs are for x86-64.";
  const uint64_t seed = test_seed();
  const int64_t count = std::min<int64_t>(200, engine::test_batches(200));
  const std::shared_ptr<runtime::Device> cpu = open_cpu();
  for (int64_t i = 0; i < count; ++i) {
    std::mt19937_64 rng(seed + static_cast<uint64_t>(i));
    SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(seed + static_cast<uint64_t>(i)));
    Case made(rng, cpu);
    int runs = 1 + static_cast<int>(rng() % 3);
    const Status status = run_case(made, rng, runs);
    ASSERT_TRUE(status) << status.error().to_string();
    ASSERT_TRUE(holds_after(made, runs)) << engine::steps_text(made.linked->queues());
  }
}

TEST(EndToEnd, ADeadCpuEndsInBoundsAndAfterwardsAnswersAreTheSame) {
  if (!cpu::test::has_function_programs()) GTEST_SKIP() << "The programs are for x86-64.";
  const uint64_t seed = test_seed();
  const runtime::WaitLimits limits{10'000'000'000, 100'000'000};
  const std::shared_ptr<runtime::Device> cpu = open_cpu();
  int lost = 0;
  for (uint64_t i = 0; i < 30; ++i) {
    std::mt19937_64 rng(seed + i);
    SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(seed + i));
    Case made(rng, cpu);
    static_cast<cpu::CpuQueue*>(cpu->queue())->kill_worker();
    int runs = 1 + static_cast<int>(rng() % 3);
    const Status status = run_case(made, rng, runs, limits);
    if (status) {
      ASSERT_TRUE(holds_after(made, runs)) << "A run succeeded and its answer is wrong.";
    } else {
      ++lost;
      EXPECT_FALSE(status.error().reason().empty()) << status.error().to_string();
      // On a busy machine a simulated device may stand still for so long, too.
      const bool is_slow_device = status.error().code() == ErrorCode::Timeout &&
                                  status.error().message().find("'CPU'") == std::string::npos;
      EXPECT_TRUE(status.error().code() == ErrorCode::DeviceLost || is_slow_device)
          << status.error().to_string();
    }
    cpu->queue()->report_hang("a test");
    ASSERT_TRUE(cpu->queue()->reopen());
    // What waits for a signal of the dead CPU may not have been noticed yet; its queue goes no further.
    for (runtime::QueuedDevice* device : made.rig.world.devices()) {
      device->report_hang("a test");
      ASSERT_TRUE(device->reopen());
    }
    made.linked.reset();
    made.replace_memory();
    runs = 1;
    const Status again = run_case(made, rng, runs);
    ASSERT_TRUE(again) << again.error().to_string();
    ASSERT_TRUE(holds_after(made, runs)) << "after recovery";
  }
  EXPECT_GT(lost, 0) << "No schedule had a host run.";
}

TEST(EndToEnd, ThreadsShareDevicesAndStages) {
  Rig rig({.clock = &runtime::Clock::real()});
  vdev::DeviceSpec spec;
  spec.kernel_ns = spec.copy_ns = 100;
  spec.capabilities.peer_group = "a";
  rig.add_device("A", 1, spec);
  rig.add_device("B", 2, spec);
  spec.capabilities.peer_group = "b";
  rig.add_device("C", 1, spec);
  rig.options.stage.size_bytes = 8;
  rig.world.start_worker();

  constexpr int kThreads = 3;
  constexpr int kRuns = 60;
  struct Work {
    exec::Schedule schedule;
    std::map<int, runtime::MemoryRef> memory;
    std::shared_ptr<exec::LinkedSchedule> linked;
    int failures = 0;
  };
  std::vector<Work> works(kThreads);
  rig.start();
  for (Work& work : works) {
    rig.schedule.buffers.clear();
    rig.schedule.calls.clear();
    std::vector<exec::BufferView> views;
    for (const char* owner : {"A", "B", "C", "CPU"}) {
      views.push_back(rig.buffer(owner, {owner}));
      work.memory[views.back().buffer] = rig.give(views.back());
    }
    // A to C and back goes through a stage that all threads use, with host calls in between.
    const auto compute_on = [&](const exec::BufferView& to, const exec::BufferView& from) {
      exec::ScheduleCall& call = rig.kernel({to}, {from});
      call.program =
          rig.add_program(call.name, 2, [name = call.name](std::span<std::byte* const> buffers) {
            compute(name, buffers, {16, 16}, {0});
          });
    };
    compute_on(views[1], views[0]);
    rig.copy(views[2], views[1]);
    compute_on(views[2], views[2]);
    rig.copy(views[3], views[2]);
    compute_on(views[3], views[3]);
    rig.copy(views[0], views[3]);
    rig.copy(views[2], views[0]);
    Result<std::shared_ptr<exec::LinkedSchedule>> linked = rig.link();
    ASSERT_TRUE(linked) << linked.error().to_string();
    work.schedule = rig.schedule;
    work.linked = *linked;
    for (auto& [buffer, memory] : work.memory) {
      for (size_t k = 0; k < 16; ++k) {
        memory->host()[k] = first_byte(static_cast<size_t>(buffer), 0, k);
      }
    }
  }
  std::vector<std::thread> threads;
  for (Work& work : works) {
    threads.emplace_back([&work] {
      for (int i = 0; i < kRuns; ++i) {
        work.failures += !exec::run(*work.linked, {}, {.waits = i % 3 == 0});
      }
      work.failures += !exec::wait(*work.linked);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Work& work : works) {
    EXPECT_EQ(work.failures, 0);
    Bytes wanted = filled(work.schedule.buffers);
    for (int run = 0; run < kRuns; ++run) run_in_order(work.schedule, wanted);
    for (const auto& [buffer, memory] : work.memory) {
      EXPECT_EQ(std::memcmp(memory->host(), wanted[static_cast<size_t>(buffer)][0].data(), 16), 0)
          << "buffer " << buffer;
    }
  }
  rig.world.stop_worker();
}

}  // namespace
}  // namespace ignis::testing
