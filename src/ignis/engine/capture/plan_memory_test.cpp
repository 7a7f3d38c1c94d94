// Capture spec, section 8.

#include "ignis/engine/capture/plan_memory.h"

#include "ignis/engine/capture/test_calls.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace ignis::engine {
namespace {

/// A call that names these buffers, in the words of the spec's table.
exec::ScheduleCall& names(TestCalls& calls, const std::vector<int>& buffers) {
  return calls.sum(buffers.back(), {buffers.begin(), buffers.end() - 1});
}

const PlannedBuffer* find(const MemoryPlan& plan, int buffer) {
  for (const PlannedBuffer& planned : plan.buffers) {
    if (planned.buffer == buffer) return &planned;
  }
  return nullptr;
}

TEST(CaptureMemory, MP1_BuffersWhoseLivesDoNotMeetShareBytes) {
  TestCalls calls;
  const int a = calls.buffer("a", 1000), b = calls.buffer("b", 1000), c = calls.buffer("c", 1000),
            d = calls.buffer("d", 1000);
  names(calls, {a, b});
  names(calls, {b, c});
  names(calls, {c, d});
  const MemoryPlan plan = plan_memory(calls.schedule).value();
  ASSERT_EQ(plan.arenas.size(), 1U);
  EXPECT_EQ(plan.arenas[0].size_bytes, 2048U);
  EXPECT_EQ(plan.arenas[0].unplanned_bytes, 4096U);
  EXPECT_EQ(find(plan, a)->offset_bytes, find(plan, c)->offset_bytes);
  EXPECT_EQ(find(plan, b)->offset_bytes, find(plan, d)->offset_bytes);
  using Peak = std::vector<std::pair<std::string, uint64_t>>;
  EXPECT_EQ(plan.peak_bytes, (Peak{{"G", 2048}}));
  MemoryPlanOptions off;
  off.is_enabled = false;
  EXPECT_EQ(plan_memory(calls.schedule, off)->peak_bytes, (Peak{{"G", 4096}}));
}

TEST(CaptureMemory, MP2_HeldBuffersKeepMemoryOfTheirOwn) {
  TestCalls calls;
  const int a = calls.buffer("a", 1000), x = calls.input("x", 0), w = calls.implicit("w"),
            b = calls.buffer("b", 1000), unused = calls.buffer("unused", 1000),
            empty = calls.buffer("empty", 0), far = calls.buffer("far", 1000, "DISK"),
            odd = calls.buffer("odd", 24);
  names(calls, {x, w, a, b});
  names(calls, {far, b});
  names(calls, {odd, b}).arguments[1].item_bytes = 3;
  exec::ScheduleCall& with_empty = names(calls, {empty, b});
  with_empty.arguments[1] = TestCalls::whole(empty);
  MemoryPlanOptions options;
  options.held = {a};
  options.devices_without_views = {"DISK"};
  const MemoryPlan plan = plan_memory(calls.schedule, options).value();
  ASSERT_EQ(plan.buffers.size(), 1U);
  EXPECT_EQ(plan.buffers[0].buffer, b);
  for (const int fixed : {a, x, w, unused, empty, far, odd}) EXPECT_EQ(find(plan, fixed), nullptr);
  using Peak = std::vector<std::pair<std::string, uint64_t>>;
  // b's arena, a and odd; far. Not the caller's x and w.
  EXPECT_EQ(plan.peak_bytes, (Peak{{"DISK", 1024}, {"G", 1024 + 1024 + 256}}));
}

TEST(CaptureMemory, MP3_BuffersOfCopiesHaveAnArenaOfTheirOwn) {
  TestCalls calls;
  const int a = calls.input("a", 0), b = calls.buffer("b", 1000), c = calls.buffer("c", 1000);
  calls.copy(b, a);
  names(calls, {b, c});
  const MemoryPlan plan = plan_memory(calls.schedule).value();
  ASSERT_EQ(plan.arenas.size(), 2U);
  EXPECT_NE(find(plan, b)->arena, find(plan, c)->arena);
  EXPECT_TRUE(plan.arenas[static_cast<size_t>(find(plan, b)->arena)].is_for_copies);
  EXPECT_FALSE(plan.arenas[static_cast<size_t>(find(plan, c)->arena)].is_for_copies);
}

TEST(CaptureMemory, MP4_ABufferOfACopyIsHeldTwiceAsLong) {
  TestCalls calls;
  const int x = calls.input("x", 0), b = calls.buffer("b", 1000), c = calls.buffer("c", 1000);
  calls.copy(b, x);
  names(calls, {b, c});
  const MemoryPlan plan = plan_memory(calls.schedule).value();
  EXPECT_EQ(find(plan, b)->first, 0);
  EXPECT_EQ(find(plan, b)->free_at, 4);
  EXPECT_EQ(find(plan, c)->first, 1);
  EXPECT_EQ(find(plan, c)->free_at, 2);
}

TEST(CaptureMemory, MP5_SmallBuffersAreABlockApart) {
  TestCalls calls;
  const int a = calls.buffer("a", 4), b = calls.buffer("b", 6);
  names(calls, {a, b});
  for (exec::BufferView& view : calls.schedule.calls[0].arguments) view.item_bytes = 1;
  const MemoryPlan plan = plan_memory(calls.schedule).value();
  const auto low = std::min(find(plan, a)->offset_bytes, find(plan, b)->offset_bytes);
  const auto high = std::max(find(plan, a)->offset_bytes, find(plan, b)->offset_bytes);
  EXPECT_EQ(high - low, 256U);
  EXPECT_EQ(plan.arenas[0].size_bytes, 512U);
}

TEST(CaptureMemory, DevicesAndLanesHaveArenasOfTheirOwn) {
  TestCalls calls;
  const int a = calls.buffer("a", 1000, "G"), b = calls.buffer("b", 1000, "G:1"),
            s = calls.buffer("s", 1000);
  calls.schedule.buffers[static_cast<size_t>(s)].devices = {"G", "G:1"};
  names(calls, {a, b, s});
  const MemoryPlan plan = plan_memory(calls.schedule).value();
  ASSERT_EQ(plan.arenas.size(), 3U);
  using Peak = std::vector<std::pair<std::string, uint64_t>>;
  EXPECT_EQ(plan.peak_bytes, (Peak{{"G", 2048}, {"G:1", 2048}}));
  // A view of lanes looks through the arena.
  calls.schedule.calls[0].arguments[0] = select_lane(slice(TestCalls::whole(s), 2, 4), 1);
  const exec::Schedule planned = apply_memory_plan(calls.schedule, plan);
  const exec::BufferRange range =
      resolve_view(planned.buffers, planned.calls[0].arguments[0]).value();
  EXPECT_EQ(range.lane, 1);
  EXPECT_EQ(range.offset_bytes, find(plan, s)->offset_bytes + 16);
  EXPECT_EQ(range.size_bytes, 16U);
  EXPECT_EQ(range.item_bytes, 8);
}

struct RandomSchedule {
  TestCalls calls;
  explicit RandomSchedule(std::mt19937_64& rng) {
    std::vector<int> buffers;
    const uint64_t count = 2 + rng() % 20;
    buffers.push_back(calls.input("x", 0, 64));
    for (uint64_t i = 0; i < count; ++i) {
      buffers.push_back(
          calls.buffer("b" + std::to_string(i), 8 * (1 + rng() % 300), rng() % 4 == 0 ? "H" : "G"));
    }
    // Elements that were written; a buffer is read when all of it was.
    std::vector<int> whole = {buffers[0]};
    const uint64_t steps = 1 + rng() % 30;
    for (uint64_t i = 0; i < steps; ++i) {
      const int out = buffers[1 + rng() % count];
      std::vector<int> ins;
      for (uint64_t k = rng() % 3; k > 0; --k) {
        // Mostly young buffers, so that lives are short.
        const size_t back = 1 + rng() % std::min<size_t>(whole.size(), 4);
        ins.push_back(whole[whole.size() - back]);
      }
      if (rng() % 4 == 0 && !ins.empty()) {
        calls.copy(out, ins[0]);
      } else {
        calls.sum(out, ins, static_cast<int64_t>(rng() % 1000));
      }
      whole.push_back(out);
    }
  }
};

TEST(CaptureMemory, MP6_NoTwoLiveBuffersEverOverlap) {
  uint64_t planned_bytes = 0, unplanned_bytes = 0, copies = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    std::mt19937_64 rng(test_seed() * 1'000'003 + i);
    const RandomSchedule random(rng);
    const exec::Schedule& schedule = random.calls.schedule;
    const MemoryPlan plan = plan_memory(schedule).value();
    SCOPED_TRACE("IGNIS_TEST_SEED=" + std::to_string(test_seed()) + ", schedule " +
                 std::to_string(i));
    // Lives again, from the calls alone.
    std::map<int, std::pair<int64_t, int64_t>> lives;
    std::map<int, bool> is_copied;
    for (size_t call = 0; call < schedule.calls.size(); ++call) {
      for (const exec::BufferView& view : schedule.calls[call].arguments) {
        const auto at = static_cast<int64_t>(call);
        const auto life = lives.emplace(view.buffer, std::pair(at, at)).first;
        life->second.second = at;
        is_copied[view.buffer] |= schedule.calls[call].kind == exec::CallKind::Copy;
      }
    }
    lives.erase(0);  // the input
    ASSERT_EQ(plan.buffers.size(), lives.size());
    for (const PlannedBuffer& a : plan.buffers) {
      const auto [first, last] = lives.at(a.buffer);
      ASSERT_EQ(a.first, first);
      ASSERT_EQ(a.free_at, last + 1 + (is_copied[a.buffer] ? last - first + 1 : 0));
      const PlannedArena& arena = plan.arenas[static_cast<size_t>(a.arena)];
      ASSERT_EQ(arena.is_for_copies, is_copied[a.buffer]);
      ASSERT_EQ(arena.devices, schedule.buffers[static_cast<size_t>(a.buffer)].devices);
      ASSERT_EQ(a.offset_bytes % 256, 0U);
      ASSERT_GE(a.size_bytes, schedule.buffers[static_cast<size_t>(a.buffer)].size_bytes);
      ASSERT_LE(a.offset_bytes + a.size_bytes, arena.size_bytes);
      copies += is_copied[a.buffer] ? 1 : 0;
      for (const PlannedBuffer& b : plan.buffers) {
        if (&a == &b || a.arena != b.arena) continue;
        const bool meet_in_time = a.first < b.free_at && b.first < a.free_at;
        const bool meet_in_bytes = a.offset_bytes < b.offset_bytes + b.size_bytes &&
                                   b.offset_bytes < a.offset_bytes + a.size_bytes;
        ASSERT_FALSE(meet_in_time && meet_in_bytes) << a.buffer << " and " << b.buffer;
      }
    }
    for (const PlannedArena& arena : plan.arenas) {
      planned_bytes += arena.size_bytes;
      unplanned_bytes += arena.unplanned_bytes;
      ASSERT_LE(arena.size_bytes, arena.unplanned_bytes);
    }
  }
  EXPECT_LT(planned_bytes, unplanned_bytes * 9 / 10);  // or nothing was shared worth a test
  EXPECT_GT(copies, 1000U);
}

TEST(CaptureMemory, MP7_ResultsAreTheSameWithAndWithoutPlan) {
  for (uint64_t i = 0; i < 1000; ++i) {
    std::mt19937_64 rng(test_seed() * 1'000'003 + i);
    const RandomSchedule random(rng);
    const exec::Schedule& schedule = random.calls.schedule;
    MemoryPlanOptions off;
    off.is_enabled = false;
    const MemoryPlan no_plan = plan_memory(schedule, off).value();
    EXPECT_TRUE(no_plan.arenas.empty());
    EXPECT_TRUE(no_plan.buffers.empty());
    EXPECT_EQ(apply_memory_plan(schedule, no_plan).buffers, schedule.buffers);

    MemoryPlanOptions options;
    options.held = {schedule.calls.back().arguments[0].buffer};
    const int out = options.held[0];
    const MemoryPlan plan = plan_memory(schedule, options).value();
    const exec::Schedule planned = apply_memory_plan(schedule, plan);
    TestHost apart(schedule), shared(planned);
    for (int frame = 0; frame < 3; ++frame) {
      apart.at(0) = shared.at(0) = std::vector<int64_t>(8, frame + static_cast<int64_t>(i));
      apart.run(schedule);
      shared.run(planned);
      ASSERT_EQ(shared.at(out), apart.at(out))
          << "IGNIS_TEST_SEED=" << test_seed() << ", schedule " << i;
    }
  }
}

TEST(CaptureMemory, EqualSchedulesGiveEqualPlans) {
  for (uint64_t i = 0; i < 100; ++i) {
    std::mt19937_64 rng(i), again(i);
    const RandomSchedule a(rng), b(again);
    const MemoryPlan one = plan_memory(a.calls.schedule).value();
    const MemoryPlan two = plan_memory(b.calls.schedule).value();
    ASSERT_EQ(one.buffers.size(), two.buffers.size());
    for (size_t k = 0; k < one.buffers.size(); ++k) {
      EXPECT_EQ(one.buffers[k].arena, two.buffers[k].arena);
      EXPECT_EQ(one.buffers[k].offset_bytes, two.buffers[k].offset_bytes);
    }
    EXPECT_EQ(one.peak_bytes, two.peak_bytes);
  }
}

TEST(CaptureMemory, BadNumbersAndSizesAreRefused) {
  TestCalls calls;
  const int a = calls.buffer("a", 8), b = calls.buffer("b", 8);
  names(calls, {a, b});
  for (int i = 0; i < 5; ++i) {
    exec::Schedule schedule = calls.schedule;
    MemoryPlanOptions options;
    if (i == 0) schedule.calls[0].arguments[0].buffer = 2;
    if (i == 1) schedule.calls[0].arguments[0].buffer = -1;
    if (i == 2) options.held = {2};
    if (i == 3) schedule.buffers[0].size_bytes = UINT64_MAX;
    if (i == 4) schedule.buffers[0].size_bytes = schedule.buffers[1].size_bytes = 1ULL << 62U;
    const auto plan = plan_memory(schedule, options);
    ASSERT_FALSE(plan) << i;
    EXPECT_EQ(plan.error().reason(), "BadSchedule");
  }
}

}  // namespace
}  // namespace ignis::engine
