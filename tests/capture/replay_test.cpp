// What capture decides on plain data, run on simulated devices: grouping (capture spec 9), outputs (5), memory (8), pruning (7).

#include "ignis/engine/capture/group.h"
#include "ignis/engine/capture/plan_memory.h"
#include "ignis/engine/capture/prune.h"
#include "ignis/exec/outputs.h"

#include "tests/queues/test_rig.h"
#include "tests/support/seed.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>

namespace ignis::testing {
namespace {

constexpr runtime::WaitLimits kNoWait{0, 0};
constexpr runtime::WaitLimits kLong{20'000'000'000, 20'000'000'000};

/// A device G and programs on buffers of 4 floats. Values stay small whole numbers, which floats hold exactly.
struct ReplayRig : Rig {
  std::vector<int>
      by_reads;  ///< programs that write a sum of so many buffers, wrapped to [0, 1000)
  int add_one, times_two;

  ReplayRig() {
    add_device("G", 1);
    add_one = add_program("add_one", 2, float_map(4, [](float x) { return x + 1; }));
    times_two = add_program("times_two", 2, float_map(4, [](float x) { return x * 2; }));
    for (int reads = 0; reads <= 3; ++reads) {
      by_reads.push_back(add_program("sum_" + std::to_string(reads), reads + 1,
                                     [](std::span<std::byte* const> buffers) {
                                       for (size_t i = 0; i < 4; ++i) {
                                         float sum = static_cast<float>(7 + 3 * buffers.size());
                                         for (size_t k = 1; k < buffers.size(); ++k) {
                                           sum += 2 * reinterpret_cast<float*>(buffers[k])[i];
                                         }
                                         while (sum >= 1000) sum -= 1000;
                                         reinterpret_cast<float*>(buffers[0])[i] = sum;
                                       }
                                     }));
    }
  }

  void call(int program, const exec::BufferView& to, const std::vector<exec::BufferView>& from) {
    kernel({to}, from);
    schedule.calls.back().program = program;
  }
  exec::Placement block(const std::vector<float>& values) {
    const exec::Placement at = whole(memory("G", 16));
    write_floats(at, values);
    return at;
  }
  exec::OutputOptions output_options(exec::OutputMode mode) {
    exec::OutputOptions made;
    made.mode = mode;
    made.allocate = [this](int, uint64_t size_bytes) -> Result<runtime::MemoryRef> {
      return memory("G", size_bytes);
    };
    made.make_readable = [this](
                             uint64_t, int, const exec::Placement& at,
                             const runtime::WaitLimits& limits) -> Result<runtime::DataReadable> {
      IGNIS_TRY(exec::make_readable(*machine, at, limits));
      const runtime::MemoryBytes bytes{at.memory.get(), at.offset_bytes,
                                       at.offset_bytes + at.size_bytes};
      return runtime::DataReadable::prove(bytes, {}, {}).value();
    };
    return made;
  }
};

std::vector<float> read(const exec::OutputHandle& handle) {
  std::vector<float> values(4);
  const Status status = handle.read(0, std::as_writable_bytes(std::span(values)), kLong);
  EXPECT_TRUE(status) << (status ? "" : status.error().to_string());
  return values;
}

exec::BoundInput bound(const exec::Placement& at) { return {{at}}; }

// step = 2 (x + 1): its output is fed back, and then another one.
TEST(CaptureGroups, GG10_AddressesComeFromTheInputsOfEachRun) {
  ReplayRig rig;
  const exec::BufferView x = rig.input(0, "G"), out = rig.input(1, "G"), t = rig.buffer("t", {"G"});
  rig.call(rig.add_one, t, {x});
  rig.call(rig.times_two, out, {t});
  const engine::MemoryPlan plan = engine::plan_memory(rig.schedule).value();
  rig.schedule = engine::apply_memory_plan(rig.schedule, plan);
  const exec::TemplateRef made = rig.compile_shared().value();
  EXPECT_EQ(engine::report_batches(made->queues()).to_text(), "graph 2 (end)");
  const auto linked = exec::link(rig.machine, made, {}).value();
  for (const exec::OutputMode mode : {exec::OutputMode::Ring, exec::OutputMode::Copy}) {
    exec::Outputs outputs = exec::Outputs::create({{"out", 16}}, rig.output_options(mode)).value();
    const auto step = [&](const exec::Placement& from) {
      exec::OutputTurn turn = outputs.begin(kNoWait).value();
      const std::array<exec::BoundInput, 2> inputs = {bound(from), bound(turn.places()[0])};
      const Status status = exec::run(*linked, inputs, {.waits = false, .limits = kLong});
      EXPECT_TRUE(status) << (status ? "" : status.error().to_string());
      return std::move(turn).finish();
    };
    std::vector<float> values;
    for (const float start : {20.0F, 100.0F}) {
      exec::OutputHandle last = step(rig.block({start, 0, 0, 0}));
      values.push_back(read(last)[0]);
      for (int i = 1; i < (start == 20.0F ? 4 : 3); ++i) {
        last = step(last.place(0).value());
        values.push_back(read(last)[0]);
      }
    }
    EXPECT_EQ(values, (std::vector<float>{42, 86, 174, 350, 202, 406, 814}));
  }
}

/// A random program over an input, weights, state and temporaries; its last call writes its output, input number 1.
struct RandomCapture {
  exec::BufferView x, out, weights, state;
  std::vector<exec::BufferView> temporaries;

  RandomCapture(ReplayRig& rig, std::mt19937_64& rng) {
    x = rig.input(0, "G");
    out = rig.input(1, "G");
    weights = rig.buffer("weights", {"G"});
    state = rig.buffer("state", {"G"});
    rig.give(weights);
    rig.give(state);
    for (int i = 0; i < 6; ++i) {
      temporaries.push_back(rig.buffer("t" + std::to_string(i), {"G"}));
    }
    std::vector<exec::BufferView> written;
    const uint64_t count = 3 + rng() % 12;
    for (uint64_t i = 0; i <= count; ++i) {
      std::vector<exec::BufferView> from;
      for (uint64_t k = rng() % 4; k > 0; --k) {
        const uint64_t kind = rng() % 10;
        if (kind == 0) from.push_back(x);
        if (kind == 1) from.push_back(state);
        if (kind == 2 || kind == 3) from.push_back(weights);
        if (kind > 3 && !written.empty()) from.push_back(written[rng() % written.size()]);
      }
      if (i == count) {
        from.resize(std::min<size_t>(from.size(), 2));
        from.push_back(x);
      }
      const bool is_state = i < count && rng() % 20 == 0;
      const exec::BufferView& to = i == count ? out
                                   : is_state ? state
                                              : temporaries[rng() % temporaries.size()];
      if (from.size() == 1 && i < count && rng() % 3 == 0) {
        rig.copy(to, from[0]);
      } else {
        rig.call(rig.by_reads[from.size()], to, from);
      }
      if (i < count && !is_state) written.push_back(to);
    }
  }
};

TEST(Captures, RandomProgramsGiveTheResultsOfDirectRuns) {
  int64_t once = 0, shared_bytes = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t seed = test_seed() * 1'000'003 + i;
    const std::string where =
        "IGNIS_TEST_SEED=" + std::to_string(test_seed()) + ", program " + std::to_string(i);
    // The same program twice, each on memory of its own: once as it is, once pruned, planned and linked once.
    ReplayRig direct, captured;
    std::mt19937_64 rng(seed), again(seed), values(seed + 1);
    const RandomCapture a(direct, rng), b(captured, again);
    direct.start();
    captured.start();
    engine::PruneOptions options;
    options.constant_buffers = {b.weights.buffer};
    const engine::Pruned pruned = engine::prune(captured.schedule, options).value();
    once += static_cast<int64_t>(pruned.one_time.size());
    const exec::Schedule first = engine::select_calls(captured.schedule, pruned.one_time);
    exec::Schedule each = engine::select_calls(captured.schedule, pruned.kept);
    // One-time results live in memory of their own from here on, known to both parts.
    captured.schedule = first;
    for (const int held : pruned.held_buffers) {
      exec::BufferView view;
      view.buffer = held;
      captured.give(view);
      each.buffers[static_cast<size_t>(held)] =
          captured.schedule.buffers[static_cast<size_t>(held)];
    }
    const auto one_time = captured.link().value();
    const engine::MemoryPlan plan = engine::plan_memory(each).value();
    for (const engine::PlannedArena& arena : plan.arenas) {
      shared_bytes += static_cast<int64_t>(arena.unplanned_bytes - arena.size_bytes);
    }
    captured.schedule = engine::apply_memory_plan(each, plan);
    const auto replay = captured.link().value();
    const auto whole_program = direct.link().value();
    exec::Outputs outputs =
        exec::Outputs::create({{"out", 16}}, captured.output_options(exec::OutputMode::Ring))
            .value();
    const auto fresh = [&] {
      std::vector<float> made;
      for (int k = 0; k < 4; ++k) made.push_back(static_cast<float>(values() % 500));
      return made;
    };
    const auto at = [](ReplayRig& rig, const exec::BufferView& view) {
      return whole(rig.schedule.buffers[static_cast<size_t>(view.buffer)].memory[0]);
    };
    const std::vector<float> weights = fresh();
    write_floats(at(direct, a.weights), weights);
    write_floats(at(captured, b.weights), weights);
    const exec::Placement direct_out = direct.block({0, 0, 0, 0});
    for (int frame = 0; frame < 3; ++frame) {
      const std::vector<float> x = fresh();
      if (frame != 1) {
        const std::vector<float> state = fresh();
        write_floats(at(direct, a.state), state);
        write_floats(at(captured, b.state), state);
      }
      const std::array<exec::BoundInput, 2> direct_inputs = {bound(direct.block(x)),
                                                             bound(direct_out)};
      ASSERT_TRUE(exec::run(*whole_program, direct_inputs)) << where;
      exec::OutputTurn turn = outputs.begin(kNoWait).value();
      const std::array<exec::BoundInput, 2> inputs = {bound(captured.block(x)),
                                                      bound(turn.places()[0])};
      if (frame == 0) {
        const Status status = exec::run(*one_time, inputs);
        ASSERT_TRUE(status) << where << status.error().to_string();
      }
      ASSERT_TRUE(exec::run(*replay, inputs)) << where;
      const exec::OutputHandle result = std::move(turn).finish();
      ASSERT_EQ(read(result), read_floats(direct_out, 4)) << where << ", frame " << frame << "\n"
                                                          << pruned.to_text(direct.schedule);
      ASSERT_EQ(read_floats(at(captured, b.state), 4), read_floats(at(direct, a.state), 4))
          << where << ", frame " << frame;
    }
  }
  EXPECT_GT(once, 1000);
  EXPECT_GT(shared_bytes, 0);
}

}  // namespace
}  // namespace ignis::testing
