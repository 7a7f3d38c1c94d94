// Random batches against the invariants, random schedules against their results. IGNIS_TEST_SEED and IGNIS_TEST_BATCHES say
// which and how many.

#include "ignis/engine/queues/batch_machine.h"
#include "ignis/engine/queues/check_batch.h"
#include "ignis/engine/queues/test_machine.h"
#include "ignis/engine/queues/test_random.h"
#include "ignis/engine/queues/test_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace ignis::engine {
namespace {

using runtime::Command;

/// Seeds of single cases follow from the run's, so that one case can be made again alone.
uint64_t seed_of(int64_t index) { return test_seed() * 1'000'003 + static_cast<uint64_t>(index); }

TEST(RandomBatches, HoldEveryInvariantInEveryOrder) {
  const int64_t count = test_batches(20'000);
  int64_t calls = 0, streams = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::mt19937_64 rng(seed_of(i));
    TestWorld world;
    exec::Batch batch = random_batch(world, rng);
    const BaseTable bases(world.schedule.buffers);
    build_streams(world.table, world.schedule.buffers, bases, false, batch);
    calls += static_cast<int64_t>(batch.calls.size());
    streams += static_cast<int64_t>(batch.streams.size());
    CheckOptions options;
    options.random_orders = 3;
    options.seed = rng();
    options.max_states = i % 20 == 0 ? 3000 : 0;
    const auto fault = check_batch(world.table, world.schedule.buffers, bases, batch, options);
    ASSERT_FALSE(fault) << fault->to_string() << "\nIGNIS_TEST_SEED=" << test_seed() << ", batch "
                        << i << "\n"
                        << to_text(batch);
  }
  // The batches are worth checking: several calls, several queues.
  EXPECT_GT(calls, 3 * count);
  EXPECT_GT(streams, 2 * count);
}

/// Whether some interleaving breaks an invariant, by walking them all; nothing when there are too many.
std::optional<bool> some_order_breaks(const BatchFacts& facts, size_t max_states) {
  for (int late = -1; late < static_cast<int>(facts.batch->devices.size()); ++late) {
    std::set<std::vector<size_t>> seen;
    BatchMachine first(facts);
    if (late >= 0) first.set_late(late);
    std::vector<BatchMachine> open{first};
    while (!open.empty()) {
      const BatchMachine machine = open.back();
      open.pop_back();
      bool is_stuck = true;
      for (int stream = 0; stream < static_cast<int>(machine.stream_count()); ++stream) {
        if (!machine.can_step(stream)) continue;
        is_stuck = false;
        BatchMachine next = machine;
        if (next.step(stream)) return true;
        if (seen.insert(next.positions()).second) open.push_back(std::move(next));
        if (seen.size() > max_states) return std::nullopt;
      }
      if (late < 0 && is_stuck && !machine.is_finished()) return true;
      for (size_t tag = 0; late >= 0 && tag < facts.batch->calls.size(); ++tag) {
        if (machine.has_started(static_cast<int>(tag)) &&
            facts.touches[tag][static_cast<size_t>(late)]) {
          return true;
        }
      }
    }
  }
  return false;
}

bool is_droppable(const exec::Batch& batch, const exec::QueueStream& stream, size_t index,
                  const DeviceTable& table) {
  const Command::Kind kind = stream.commands[index].kind;
  const std::string& device = batch.devices[static_cast<size_t>(stream.device)];
  if (kind == Command::Kind::Barrier) return !table.find(device)->is_in_order && index > 0;
  return kind != Command::Kind::Exec && kind != Command::Kind::Copy;
}

// A checker that finds nothing is none: each wait, store and barrier is taken away in turn. The checker, which walks few orders,
// must find a fault exactly where some order has one.
TEST(RandomBatches, TheCheckerNoticesWhatIsTakenAway) {
  const int64_t count = test_batches(20'000) / 50;
  int64_t mutants = 0, faulty = 0, undecided = 0;
  std::map<std::string, int64_t> by_invariant;
  for (int64_t i = 0; i < count; ++i) {
    std::mt19937_64 rng(seed_of(i) ^ 0x5a5a);
    TestWorld world;
    exec::Batch batch = random_batch(world, rng);
    const BaseTable bases(world.schedule.buffers);
    build_streams(world.table, world.schedule.buffers, bases, false, batch);
    for (size_t s = 0; s < batch.streams.size(); ++s) {
      for (size_t c = 0; c < batch.streams[s].commands.size(); ++c) {
        if (!is_droppable(batch, batch.streams[s], c, world.table)) continue;
        exec::Batch mutant = batch;
        std::vector<Command>& commands = mutant.streams[s].commands;
        const Command::Kind kind = commands[c].kind;
        const bool is_store =
            kind == Command::Kind::StoreSignal || kind == Command::Kind::StoreReached;
        commands.erase(commands.begin() + static_cast<std::ptrdiff_t>(c));
        ++mutants;
        const auto fault = check_batch(world.table, world.schedule.buffers, bases, mutant);
        if (fault) ++by_invariant[fault->invariant];
        faulty += fault.has_value();
        const std::string where = "IGNIS_TEST_SEED=" + std::to_string(test_seed()) + ", batch " +
                                  std::to_string(i) + "\n" + to_text(batch) + "mutant\n" +
                                  to_text(mutant) + (fault ? fault->to_string() : "no fault");
        if (kind == Command::Kind::StoreReached) {
          ASSERT_TRUE(fault) << where;
        }
        if (is_store) continue;  // I-2 and I-5 show without running
        const BatchFacts facts = collect_facts(world.table, world.schedule.buffers, bases, mutant);
        const auto breaks = some_order_breaks(facts, 2'000);
        undecided += !breaks.has_value();
        if (breaks) {
          ASSERT_EQ(fault.has_value(), *breaks) << where;
        }
      }
    }
  }
  EXPECT_GT(faulty, mutants / 2);
  EXPECT_LT(undecided, mutants / 4);
  for (const char* invariant : {"I-2", "I-3", "I-4", "I-5", "I-6"}) {
    EXPECT_GT(by_invariant[invariant], 0) << invariant;
  }
}

/// A world whose devices reach what a coin says, the same for each pair of device and owner.
TestWorld random_world(uint64_t seed, std::mt19937_64& rng) {
  TestWorld world;
  add_random_devices(world, 1 + static_cast<int>(rng() % 3), rng);
  const DeviceTable table = world.table;
  world.hooks.can_map = [seed, table](const std::string& device, const exec::ScheduleBuffer& buffer,
                                      int lane) -> Result<bool> {
    if (!buffer.stage_for.empty()) return true;
    const std::string& owner = buffer.devices[static_cast<size_t>(lane)];
    uint64_t hash = seed;
    for (const char c : device + ">" + owner) hash = hash * 31 + static_cast<uint8_t>(c);
    hash ^= hash >> 17;
    const bool is_near = owner == "CPU" || table.peer_group(owner) == table.peer_group(device);
    return hash % 10 < (is_near ? 8 : 2);
  };
  world.options.stage = {8 + 8 * (rng() % 2), 1 + static_cast<int>(rng() % 2)};
  world.options.queues = {static_cast<int>(rng() % 2), static_cast<int>(rng() % 4)};
  world.options.is_profiled = rng() % 8 == 0;
  add_random_calls(world, add_random_buffers(world, rng), rng);
  return world;
}

TEST(RandomSchedules, RunInFlightAsTheyDoInOrder) {
  const int64_t count = test_batches(20'000) / 2;
  int64_t batches = 0, host_runs = 0, networks = 0, stages = 0, orders = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::mt19937_64 rng(seed_of(i) ^ 0xa5a5);
    const TestWorld world = random_world(seed_of(i), rng);
    const auto made = world.compile();
    ASSERT_TRUE(made) << made.error().to_string() << "\nIGNIS_TEST_SEED=" << test_seed()
                      << ", schedule " << i;
    TestMemory expected = filled_memory(made->buffers);
    const TestMemory start = expected;
    run_in_order(world.schedule, expected);
    for (const exec::TemplateStep& step : made->steps) {
      (step.is_host ? host_runs : batches) += 1;
      orders += static_cast<int64_t>(step.after.size());
    }
    for (const exec::ScheduleBuffer& buffer : made->buffers) {
      networks += buffer.is_wire;
      stages += !buffer.stage_for.empty();
    }
    for (int run = 0; run < 2; ++run) {
      TestMemory memory = start;
      const auto stuck = run_in_flight(*made, world.table, memory, rng);
      ASSERT_FALSE(stuck) << *stuck << "\nIGNIS_TEST_SEED=" << test_seed() << ", schedule " << i
                          << "\n"
                          << to_text(*made);
      for (size_t b = 0; b < world.schedule.buffers.size(); ++b) {
        ASSERT_EQ(memory[b], expected[b])
            << world.schedule.buffers[b].name << "\nIGNIS_TEST_SEED=" << test_seed()
            << ", schedule " << i << "\n"
            << to_text(*made);
      }
    }
  }
  EXPECT_GT(batches, count);
  EXPECT_GT(host_runs, count / 5);
  EXPECT_GT(networks, count / 50);
  EXPECT_GT(stages, count / 20);
  EXPECT_GT(orders, count / 20);
}

// The steps that a step follows are needed: without them some run differs.
TEST(RandomSchedules, DifferWithoutTheOrderOfSteps) {
  const int64_t count = test_batches(20'000) / 20;
  int64_t differ = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::mt19937_64 rng(seed_of(i) ^ 0xa5a5);
    const TestWorld world = random_world(seed_of(i), rng);
    exec::QueueTemplate made = world.made();
    TestMemory expected = filled_memory(made.buffers);
    TestMemory memory = expected;
    run_in_order(world.schedule, expected);
    for (exec::TemplateStep& step : made.steps) step.after.clear();
    run_in_flight(made, world.table, memory, rng);
    for (size_t b = 0; b < world.schedule.buffers.size(); ++b) {
      if (memory[b] == expected[b]) continue;
      ++differ;
      break;
    }
  }
  EXPECT_GT(differ, 0);
}

/// Makes two buffers of one device inputs, if there are two. Their memory is one block at run, the second's from some byte on.
std::optional<std::vector<std::pair<int, uint64_t>>> alias_two_inputs(TestWorld& world,
                                                                      std::mt19937_64& rng) {
  std::vector<exec::ScheduleBuffer>& buffers = world.schedule.buffers;
  std::vector<std::pair<int, uint64_t>> bindings;
  for (size_t i = 0; i < buffers.size(); ++i) bindings.emplace_back(static_cast<int>(i), 0);
  for (size_t a = 0; a < buffers.size(); ++a) {
    for (size_t b = a + 1; b < buffers.size(); ++b) {
      if (buffers[a].devices.size() != 1 || buffers[a].devices != buffers[b].devices) continue;
      buffers[a].input = 0;
      buffers[b].input = 1;
      bindings[b] = {static_cast<int>(a), rng() % 16};
      return bindings;
    }
  }
  return std::nullopt;
}

TEST(RandomSchedules, TheConservativeTemplateIsRightForInputsOverEachOther) {
  const int64_t count = test_batches(20'000) / 4;
  int64_t runs = 0, differ = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::mt19937_64 rng(seed_of(i) ^ 0x3c3c);
    TestWorld world = random_world(seed_of(i), rng);
    const auto bindings = alias_two_inputs(world, rng);
    if (!bindings) continue;
    ++runs;
    for (const bool knows : {false, true}) {
      world.options.aliased_inputs = {};
      if (knows) world.options.aliased_inputs = {{0, 1}};
      const exec::QueueTemplate made = world.made();
      TestMemory expected = filled_memory(made.buffers);
      for (TestMemory::Lanes& lanes : expected.buffers) {
        for (std::vector<uint8_t>& bytes : lanes) bytes.resize(bytes.size() + 16);
      }
      expected.bindings = *bindings;
      TestMemory memory = expected;
      run_in_order(world.schedule, expected);
      const auto stuck = run_in_flight(made, world.table, memory, rng);
      const auto known = static_cast<std::ptrdiff_t>(world.schedule.buffers.size());
      const bool is_equal = std::equal(memory.buffers.begin(), memory.buffers.begin() + known,
                                       expected.buffers.begin());
      if (!knows) differ += !is_equal;
      ASSERT_TRUE(!knows || (!stuck && is_equal))
          << "IGNIS_TEST_SEED=" << test_seed() << ", schedule " << i << "\n"
          << to_text(made);
    }
  }
  EXPECT_GT(runs, count / 4);
  EXPECT_GT(differ, 0);  // else knowing would be of no use
}

}  // namespace
}  // namespace ignis::engine
