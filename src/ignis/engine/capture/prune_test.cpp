// Capture spec, section 7.

#include "ignis/engine/capture/prune.h"

#include "ignis/engine/capture/test_calls.h"

#include <gtest/gtest.h>

#include <random>

namespace ignis::engine {
namespace {

using exec::BufferView;
using Numbers = std::vector<int>;

PruneOptions constant(const Numbers& buffers) {
  PruneOptions options;
  options.constant_buffers = buffers;
  return options;
}

TEST(CapturePruning, PN1_WorkOnWeightsIsDoneOnce) {
  TestCalls calls;
  const int x = calls.input("x", 0), w = calls.implicit("w"), t = calls.buffer("t"),
            out = calls.buffer("out");
  calls.sum(t, {w, w});
  calls.sum(out, {t, x});
  EXPECT_EQ(calls.schedule.calls.size(), 2U);
  const Pruned pruned = prune(calls.schedule, constant({w})).value();
  EXPECT_EQ(pruned.one_time, (Numbers{0}));
  EXPECT_EQ(pruned.kept, (Numbers{1}));
  EXPECT_EQ(pruned.held_buffers, (Numbers{t}));

  TestHost host(calls.schedule);
  host.at(w) = {10, 20};
  host.run(select_calls(calls.schedule, pruned.one_time));
  for (int64_t i = 1; i <= 3; ++i) {
    host.at(x) = {i, i};
    host.run(select_calls(calls.schedule, pruned.kept));
    EXPECT_EQ(host.at(out), (std::vector<int64_t>{20 + i, 40 + i}));
  }
}

TEST(CapturePruning, PN2_AnInputsCopyStays) {
  TestCalls calls;
  const int x = calls.input("x", 0), w = calls.implicit("w"), t = calls.buffer("t"),
            c = calls.buffer("c"), out = calls.buffer("out");
  calls.sum(t, {w, w});
  calls.copy(c, x);
  calls.sum(out, {t, c});
  const Pruned pruned = prune(calls.schedule, constant({w})).value();
  EXPECT_EQ(pruned.kept, (Numbers{1, 2}));
  TestHost whole(calls.schedule), parts(calls.schedule);
  whole.at(w) = parts.at(w) = {3, 4};
  parts.run(select_calls(calls.schedule, pruned.one_time));
  for (int64_t i = 1; i <= 3; ++i) {
    whole.at(x) = parts.at(x) = {i, 2 * i};
    whole.run(calls.schedule);
    parts.run(select_calls(calls.schedule, pruned.kept));
    EXPECT_EQ(whole.at(out), (std::vector<int64_t>{6 + i, 8 + 2 * i}));
    EXPECT_EQ(parts.at(out), whole.at(out));
  }
}

TEST(CapturePruning, PN3_AChainOfOneTimeCallsIsDoneOnce) {
  TestCalls calls;
  const int x = calls.input("x", 0), w = calls.implicit("w"), t = calls.buffer("t"),
            c = calls.buffer("c"), out = calls.buffer("out");
  calls.sum(t, {w, w});
  calls.copy(c, t);
  calls.sum(out, {c, x});
  const Pruned pruned = prune(calls.schedule, constant({w})).value();
  EXPECT_EQ(pruned.kept, (Numbers{2}));
  EXPECT_EQ(pruned.held_buffers, (Numbers{c}));
}

TEST(CapturePruning, PN4_AStartValueThatKeptCallsOverwriteIsMadeAnew) {
  TestCalls calls;
  const int x = calls.input("x", 0, 8), acc = calls.buffer("acc", 8);
  calls.sum(acc, {}, 0);
  calls.sum(acc, {acc, x});
  const Pruned pruned = prune(calls.schedule).value();
  EXPECT_EQ(pruned.kept, (Numbers{0, 1}));
  EXPECT_EQ(pruned.calls[0].fate, CallFate::WritesWithKept);
  EXPECT_EQ(pruned.calls[0].buffer, acc);
  TestHost host(calls.schedule);
  host.at(x) = {1};
  host.run(calls.schedule);  // direct
  EXPECT_EQ(host.at(acc)[0], 1);
  host.run(select_calls(calls.schedule, pruned.one_time));
  for (const int64_t value : {2, 3}) {
    host.at(x) = {value};
    host.run(select_calls(calls.schedule, pruned.kept));
    EXPECT_EQ(host.at(acc)[0], value);
  }
}

TEST(CapturePruning, PN5_AnImplicitInputMayChangeUnlessItIsMarked) {
  TestCalls calls;
  const int x = calls.input("x", 0), w = calls.implicit("w"), t = calls.buffer("t"),
            out = calls.buffer("out");
  calls.sum(t, {w});
  calls.sum(out, {t, x});
  const Pruned follows = prune(calls.schedule).value();
  EXPECT_EQ(follows.kept, (Numbers{0, 1}));
  EXPECT_EQ(follows.calls[0].fate, CallFate::ReadsState);
  EXPECT_EQ(prune(calls.schedule, constant({w}))->kept, (Numbers{1}));
  // What the function itself writes is not constant, whatever was marked.
  calls.sum(w, {x});
  EXPECT_EQ(prune(calls.schedule, constant({w}))->kept, (Numbers{0, 1, 2}));
}

TEST(CapturePruning, PN6_NothingThatDependsOnAnInputIsAnErrorWithAHint) {
  TestCalls calls;
  const int w = calls.implicit("w"), t = calls.buffer("t");
  calls.input("x", 0);
  calls.sum(t, {w});
  const auto pruned = prune(calls.schedule, constant({w}));
  ASSERT_FALSE(pruned);
  EXPECT_EQ(pruned.error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(pruned.error().reason(), "NothingCaptured");
  EXPECT_NE(pruned.error().message().find("Pass what changes as an argument"), std::string::npos);
  EXPECT_EQ(prune(exec::Schedule{}).error().reason(), "NothingCaptured");
}

TEST(CapturePruning, RandomNumbersVariablesAndUnknownEffectsStay) {
  TestCalls calls;
  const int x = calls.input("x", 0);
  std::vector<int> t;
  for (int i = 0; i < 5; ++i) {
    t.push_back(calls.buffer("t" + std::to_string(i)));
    calls.sum(t.back(), {}, i);
  }
  calls.schedule.calls[1].variables.push_back({"v", 1});
  calls.schedule.calls[2].kind = exec::CallKind::Other;
  calls.sum(t[4], {t[3]});
  calls.sum(x, {t[0]});
  PruneOptions options;
  options.random_calls = {0};
  options.run_time_variables = {"v"};
  const Pruned pruned = prune(calls.schedule, options).value();
  EXPECT_EQ(pruned.calls[0].fate, CallFate::DrawsRandom);
  EXPECT_EQ(pruned.calls[1].fate, CallFate::BindsVariable);
  EXPECT_EQ(pruned.calls[2].fate, CallFate::HasOtherEffect);
  EXPECT_EQ(pruned.one_time, (Numbers{3, 4, 5}));
}

TEST(CapturePruning, WhatReadsFromAMovedCallMovesToo) {
  TestCalls calls;
  const int x = calls.input("x", 0), r = calls.buffer("r"), s = calls.buffer("s"),
            out = calls.buffer("out");
  calls.sum(r, {});
  calls.sum(s, {r});
  calls.sum(out, {s, x});
  PruneOptions options;
  options.random_calls = {0};
  const Pruned pruned = prune(calls.schedule, options).value();
  EXPECT_TRUE(pruned.one_time.empty());
  EXPECT_EQ(pruned.calls[1].fate, CallFate::ReadsFromKept);
}

TEST(CapturePruning, ALaterWriterOfWhatAKeptCallReadsStays) {
  // t = 1; s = state + t; t = 2. Run once and first, the last call would change s.
  TestCalls calls;
  const int x = calls.input("x", 0), state = calls.implicit("state"), t = calls.buffer("t"),
            s = calls.buffer("s"), u = calls.buffer("u");
  calls.sum(t, {}, 1);
  calls.sum(s, {state, t});
  calls.sum(t, {}, 2);
  calls.sum(u, {t});
  calls.sum(x, {x});
  const Pruned pruned = prune(calls.schedule).value();
  EXPECT_EQ(pruned.calls[2].fate, CallFate::WritesAfterKept);
  EXPECT_TRUE(pruned.one_time.empty());
}

TEST(CapturePruning, BuffersOfOneMemoryAreOne) {
  TestCalls calls;
  const int x = calls.input("x", 0), a = calls.implicit("a"), b = calls.implicit("b"),
            same_x = calls.input("same_x", 0), t = calls.buffer("t"), u = calls.buffer("u");
  calls.schedule.buffers[static_cast<size_t>(b)].memory =
      calls.schedule.buffers[static_cast<size_t>(a)].memory;
  calls.sum(t, {a});
  calls.sum(b, {x});
  calls.sum(u, {same_x});
  const Pruned pruned = prune(calls.schedule, constant({a})).value();
  EXPECT_TRUE(pruned.one_time.empty());
}

TEST(CapturePruning, TheReportSaysWhy) {
  TestCalls calls;
  const int x = calls.input("x", 0), w = calls.implicit("w"), t = calls.buffer("t");
  calls.sum(t, {w});
  calls.sum(x, {x, t});
  const std::string text = prune(calls.schedule, constant({w}))->to_text(calls.schedule);
  EXPECT_EQ(text,
            "once  0 call_0: depends on no input and nothing changes what it reads or writes\n"
            "keep  1 call_1: touches an input or what comes of one ('x')\n");
}

TEST(CapturePruning, NumbersThatNameNothingAreRefused) {
  TestCalls calls;
  const int x = calls.input("x", 0);
  calls.sum(x, {x});
  for (int i = 0; i < 6; ++i) {
    exec::Schedule schedule = calls.schedule;
    PruneOptions options;
    if (i == 0) schedule.calls[0].arguments[0].buffer = 1;
    if (i == 1) schedule.calls[0].outs = {2};
    if (i == 2) schedule.calls[0].ins = {-1};
    if (i == 3) options.constant_buffers = {-1};
    if (i == 4) options.exposed_buffers = {1};
    if (i == 5) options.random_calls = {1};
    const auto pruned = prune(schedule, options);
    ASSERT_FALSE(pruned) << i;
    EXPECT_EQ(pruned.error().reason(), "BadSchedule");
  }
}

/// A random program that reads no element that nobody wrote.
struct RandomProgram {
  TestCalls calls;
  Numbers inputs, weights, states, temporaries;
  int exposed = 0;
  PruneOptions options;
  std::vector<bool> is_random;
  std::vector<std::vector<bool>> is_written;  ///< by temporary, by element: at the end

  explicit RandomProgram(std::mt19937_64& rng) {
    for (int i = 0; i < 2; ++i) inputs.push_back(calls.input("x" + std::to_string(i), i));
    for (int i = 0; i < 2; ++i) weights.push_back(calls.implicit("w" + std::to_string(i)));
    for (int i = 0; i < 2; ++i) states.push_back(calls.implicit("s" + std::to_string(i)));
    for (int i = 0; i < 6; ++i) temporaries.push_back(calls.buffer("t" + std::to_string(i)));
    is_written.assign(6, {false, false});
    exposed = temporaries[rng() % 6];
    options.constant_buffers = weights;
    options.exposed_buffers = {exposed};
    options.run_time_variables = {"v"};
    const auto count = static_cast<int>(3 + rng() % 10);
    for (int i = 0; i < count; ++i) add_call(rng, i);
  }

 private:
  int pick(const Numbers& from, std::mt19937_64& rng) { return from[rng() % from.size()]; }
  BufferView view(int buffer, uint64_t which) {
    return which < 2 ? calls.element(buffer, static_cast<int64_t>(which)) : calls.whole(buffer);
  }
  size_t temporary(int buffer) const { return static_cast<size_t>(buffer - temporaries.front()); }

  void add_call(std::mt19937_64& rng, int number) {
    std::vector<BufferView> ins;
    const uint64_t reads = rng() % 4;
    for (uint64_t i = 0; i < reads; ++i) {
      const uint64_t kind = rng() % 16, which = rng() % 3;
      int buffer = kind == 0   ? pick(inputs, rng)
                   : kind == 1 ? pick(states, rng)
                   : kind < 7  ? pick(weights, rng)
                               : pick(temporaries, rng);
      if (kind >= 7) {
        const std::vector<bool>& written = is_written[temporary(buffer)];
        const bool is_whole = which == 2;
        if (is_whole ? !(written[0] && written[1]) : !written[which]) continue;
      }
      ins.push_back(view(buffer, which));
    }
    const uint64_t kind = rng() % 30, which = rng() % 3;
    const int out = kind == 0   ? pick(inputs, rng)
                    : kind == 1 ? pick(states, rng)
                                : pick(temporaries, rng);
    if (kind > 1) {
      std::vector<bool>& written = is_written[temporary(out)];
      for (size_t e = 0; e < 2; ++e) {
        if (which == 2 || which == e) written[e] = true;
      }
    }
    exec::ScheduleCall& call =
        calls.sum(view(out, which), std::move(ins), static_cast<int64_t>(rng() % 1000));
    if (rng() % 30 == 0) call.variables.push_back({"v", 0});
    if (rng() % 40 == 0) call.kind = exec::CallKind::Other;
    is_random.push_back(rng() % 30 == 0);
    if (is_random.back()) options.random_calls.push_back(number);
  }
};

std::vector<bool> choose(const std::vector<bool>& from, const Numbers& numbers) {
  std::vector<bool> result;
  for (const int i : numbers) result.push_back(from[static_cast<size_t>(i)]);
  return result;
}

TEST(CapturePruning, RandomProgramsGiveTheResultsOfDirectRuns) {
  int64_t once = 0, kept = 0, moved = 0, programs = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    std::mt19937_64 rng(test_seed() * 1'000'003 + i);
    RandomProgram program(rng);
    const exec::Schedule& schedule = program.calls.schedule;
    const auto result = prune(schedule, program.options);
    if (!result) {
      ASSERT_EQ(result.error().reason(), "NothingCaptured");
      continue;
    }
    ++programs;
    once += static_cast<int64_t>(result->one_time.size());
    kept += static_cast<int64_t>(result->kept.size());
    for (const PrunedCall& call : result->calls) {
      moved += call.fate != CallFate::OneTime && call.fate != CallFate::TouchesInput;
    }
    const exec::Schedule first = select_calls(schedule, result->one_time);
    const exec::Schedule each = select_calls(schedule, result->kept);
    std::vector<bool> is_seen(schedule.buffers.size());
    for (const exec::ScheduleCall& call : each.calls) {
      for (const BufferView& view : call.arguments)
        is_seen[static_cast<size_t>(view.buffer)] = true;
    }
    TestHost direct(schedule), replayed(schedule);
    for (const int buffer : program.weights) {
      direct.at(buffer) = replayed.at(buffer) = {static_cast<int64_t>(rng() % 1000),
                                                 static_cast<int64_t>(rng() % 1000)};
    }
    for (int frame = 0; frame < 4; ++frame) {
      const auto fresh = [&] {
        return std::vector<int64_t>{static_cast<int64_t>(rng() % 100000),
                                    static_cast<int64_t>(rng() % 100000)};
      };
      for (const int buffer : program.inputs) direct.at(buffer) = replayed.at(buffer) = fresh();
      for (const int buffer : program.states) {
        if (frame == 0 || rng() % 2 == 0) direct.at(buffer) = replayed.at(buffer) = fresh();
      }
      direct.run_time_variable = replayed.run_time_variable = static_cast<int64_t>(rng() % 1000);
      if (frame == 0) replayed.run(first, choose(program.is_random, result->one_time));
      // Temporaries are made anew; only what is held keeps its memory, and others write to what is exposed.
      for (const int buffer : program.temporaries) {
        direct.at(buffer) = fresh();
        const auto& held = result->held_buffers;
        const bool is_held = std::find(held.begin(), held.end(), buffer) != held.end();
        if (!is_held || buffer == program.exposed) replayed.at(buffer) = fresh();
      }
      direct.run(schedule, program.is_random);
      replayed.run(each, choose(program.is_random, result->kept));
      const auto expect_equal = [&](int buffer, size_t e) {
        ASSERT_EQ(replayed.at(buffer)[e], direct.at(buffer)[e])
            << "IGNIS_TEST_SEED=" << test_seed() << ", program " << i << ", frame " << frame
            << ", buffer " << schedule.buffers[static_cast<size_t>(buffer)].name << "[" << e
            << "]\n"
            << result->to_text(schedule);
      };
      for (size_t e = 0; e < 2; ++e) {
        for (const int buffer : program.inputs) expect_equal(buffer, e);
        for (const int buffer : program.states) expect_equal(buffer, e);
        for (size_t t = 0; t < program.temporaries.size(); ++t) {
          const int buffer = program.temporaries[t];
          if (!program.is_written[t][e]) continue;
          if (is_seen[static_cast<size_t>(buffer)] || buffer == program.exposed)
            expect_equal(buffer, e);
        }
      }
      if (HasFatalFailure()) return;
    }
  }
  // The programs are worth running: calls of all three sorts.
  EXPECT_GT(programs, 8'000);
  EXPECT_GT(once, 10'000);
  EXPECT_GT(kept, 10'000);
  EXPECT_GT(moved, 5'000);
}

}  // namespace
}  // namespace ignis::engine
