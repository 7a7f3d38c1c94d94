#include "ignis/engine/queues/dependencies.h"

#include "ignis/engine/queues/test_world.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <random>

namespace ignis::engine {
namespace {

using Tags = std::vector<int>;
using Uses = std::vector<std::pair<int, int>>;

Access reads(uint64_t begin, uint64_t end) { return {0, begin, end, false}; }
Access writes(uint64_t begin, uint64_t end) { return {0, begin, end, true}; }

/// A tracker that numbers its calls; each on a queue of its own.
class Steps {
 public:
  Tags operator()(std::initializer_list<Access> accesses) {
    const int tag = next_++;
    return tracker_.add(tag, tag, true, std::vector<Access>(accesses));
  }

 private:
  DependencyTracker tracker_;
  int next_ = 0;
};

TEST(Dependencies, DP1_ApartInBytes) {
  Steps call;
  call({writes(0, 4)});
  EXPECT_EQ(call({reads(8, 12)}), Tags{});
}

TEST(Dependencies, DP2_ReadAfterWrite) {
  Steps call;
  call({writes(0, 4)});
  EXPECT_EQ(call({reads(2, 6)}), Tags{0});
}

TEST(Dependencies, DP3_RangesAreHalfOpen) {
  Steps call;
  call({writes(0, 4)});
  EXPECT_EQ(call({reads(4, 8)}), Tags{});
}

TEST(Dependencies, DP4_ReadAfterRead) {
  Steps call;
  call({reads(0, 4)});
  EXPECT_EQ(call({reads(0, 4)}), Tags{});
}

TEST(Dependencies, DP5_AWriteFollowsAllReadersAndHidesThem) {
  Steps call;
  call({reads(0, 4)});
  call({reads(0, 4)});
  EXPECT_EQ(call({writes(0, 4)}), (Tags{0, 1}));
  EXPECT_EQ(call({reads(0, 4)}), Tags{2});
}

TEST(Dependencies, DP6_AWriteBesideCutsNothing) {
  for (const bool first_writes : {false, true}) {
    Steps call;
    call({first_writes ? writes(0, 4) : reads(0, 4)});
    EXPECT_EQ(call({writes(4, 8)}), Tags{});
    EXPECT_EQ(call({writes(0, 4)}), Tags{0});
  }
}

TEST(Dependencies, DP7_CutRecordsKeepTheirEnds) {
  for (const bool first_writes : {false, true}) {
    Steps call;
    call({first_writes ? writes(0, 16) : reads(0, 16)});
    EXPECT_EQ(call({writes(4, 12)}), Tags{0});
    EXPECT_EQ(call({writes(0, 4)}), Tags{0});
    EXPECT_EQ(call({writes(12, 16)}), Tags{0});
    EXPECT_EQ(call({reads(4, 12)}), Tags{1});
  }
}

/// Adds calls by views, through the whole key function.
class ViewSteps {
 public:
  explicit ViewSteps(const exec::Schedule& schedule)
      : schedule_(schedule), bases_(schedule.buffers) {}
  Tags operator()(const exec::BufferView& view, bool is_written) {
    std::vector<Access> accesses;
    bases_.append(resolve_view(schedule_.buffers, view).value(), is_written, &accesses);
    const int tag = next_++;
    return tracker_.add(tag, tag, true, accesses);
  }

 private:
  const exec::Schedule& schedule_;
  BaseTable bases_;
  DependencyTracker tracker_;
  int next_ = 0;
};

TEST(Dependencies, DP8_LanesAndSlicesInAnyNesting) {
  TestWorld world;
  const exec::BufferView all = world.buffer("B", {"G", "G1"}, 64 * 4, 4);
  const exec::BufferView forms[] = {
      slice(select_lane(all, 0), 8, 16),
      select_lane(slice(all, 8, 16), 0),
      slice(select_lane(slice(all, 4, 32), 0), 4, 12),
  };
  for (const exec::BufferView& form : forms) {
    ViewSteps call(world.schedule);
    call(form, true);
    EXPECT_EQ(call(select_lane(all, 1), false), Tags{});
    EXPECT_EQ(call(select_lane(slice(all, 16, 24), 0), false), Tags{});
    EXPECT_EQ(call(slice(select_lane(all, 0), 12, 20), false), Tags{0});
  }
}

TEST(Dependencies, DP9_ReinterpretedBytes) {
  TestWorld world;
  const exec::BufferView floats = world.buffer("B", {"G"}, 16, 4);
  exec::BufferView bytes = floats;
  bytes.item_bytes = 1;
  ViewSteps call(world.schedule);
  call(slice(floats, 2, 3), true);
  EXPECT_EQ(call(slice(bytes, 11, 12), false), Tags{0});
}

TEST(Dependencies, DP10_ACallNeverFollowsItself) {
  Steps call;
  EXPECT_EQ(call({reads(0, 8), writes(4, 12)}), Tags{});
  EXPECT_EQ(call({writes(4, 12), reads(0, 8)}), Tags{0});
}

TEST(Dependencies, DP11_AnEmptyAccessMeetsNothing) {
  Steps call;
  call({writes(0, 8)});
  EXPECT_EQ(call({reads(4, 4)}), Tags{});
  EXPECT_EQ(call({writes(4, 4)}), Tags{});
  EXPECT_EQ(call({reads(0, 8)}), Tags{0});  // and was not recorded
  TestWorld world;
  const exec::BufferView bytes = world.buffer("B", {"G"});
  std::vector<Access> accesses;
  BaseTable(world.schedule.buffers)
      .append(resolve_view(world.schedule.buffers, slice(bytes, 4, 4)).value(), true, &accesses);
  EXPECT_TRUE(accesses.empty());
}

TEST(Dependencies, DP12_NoLaneMeetsEveryLane) {
  TestWorld world;
  const exec::BufferView all = world.buffer("B", {"G", "G1"});
  ViewSteps call(world.schedule);
  call(select_lane(all, 0), true);
  EXPECT_EQ(call(all, false), Tags{0});
  EXPECT_EQ(call(select_lane(all, 1), true), Tags{1});
  EXPECT_EQ(call(all, true), (Tags{0, 1, 2}));
}

TEST(Dependencies, DP13_InputsThatMayNotLieOverEachOther) {
  TestWorld world;
  world.peers(1);
  const exec::BufferView a = world.input(0, "G"), b = world.input(1, "G"), c = world.input(2, "G");
  world.kernel({slice(a, 0, 8)}, {b});
  world.kernel({world.buffer("t", {"G"})}, {slice(c, 0, 4), slice(c, 4, 8), slice(a, 12, 16)});
  exec::QueueTemplate made = world.made();
  const std::vector<exec::InputUse> expected = {
      {0, 0, 12, 16, false}, {0, 0, 0, 8, true}, {1, 0, 0, 16, false}, {2, 0, 0, 8, false}};
  EXPECT_EQ(made.input_uses, expected);
  EXPECT_EQ(must_not_alias(made), (Uses{{0, 1}, {0, 2}}));
  // The conservative template: the set is one base, so the second kernel's read of c follows the write of a.
  EXPECT_EQ(to_text(made.steps[0].batch), "G/COMPUTE:0: B; W R[G]>=N; k0; k1; T R[G]=N+1\n");
  world.options.aliased_inputs = {{0, 2}};
  made = world.made();
  EXPECT_EQ(must_not_alias(made), (Uses{{0, 1}}));
}

TEST(Dependencies, DP13_TheConservativeTemplateOrdersWhatMayMeet) {
  TestWorld world;
  world.peers(1);
  const exec::BufferView a = world.input(0, "G"), b = world.input(1, "G");
  world.kernel({a});
  world.copy(world.buffer("h", {"CPU"}), b);
  EXPECT_EQ(world.streams(),
            "G/COMPUTE:0: B; W R[G]>=N; k0; W S[G/COPY:0]>=2; T R[G]=N+1\n"
            "G/COPY:0: B; W R[G]>=N; c1; T S=2\n");
  world.options.aliased_inputs = {{0, 1}};
  EXPECT_EQ(world.streams(),
            "G/COMPUTE:0: B; W R[G]>=N; k0; T S=1; W S[G/COPY:0]>=2; T R[G]=N+1\n"
            "G/COPY:0: B; W R[G]>=N; W S[G/COMPUTE:0]>=1; c1; T S=2\n");
}

TEST(Dependencies, ReadsOfOneQueueCollapseToTheNewest) {
  DependencyTracker tracker;
  const std::vector<Access> read = {reads(0, 8)}, write = {writes(0, 8)};
  for (int tag = 0; tag < 10; ++tag) tracker.add(tag, 0, true, read);
  EXPECT_EQ(tracker.record_count(), 1u);
  tracker.add(10, 1, true, read);
  EXPECT_EQ(tracker.record_count(), 2u);
  EXPECT_EQ(tracker.add(11, 2, true, write), (Tags{9, 10}));
  // Out of order the newest says nothing of the others.
  DependencyTracker out_of_order;
  out_of_order.add(0, 0, false, read);
  out_of_order.add(1, 0, false, read);
  EXPECT_EQ(out_of_order.add(2, 1, true, write), (Tags{0, 1}));
}

TEST(Dependencies, OneInputOrOneMemoryTwiceIsOneBase) {
  TestWorld world;
  const exec::BufferView a = world.input(0, "G"), again = world.input(0, "G"),
                         other = world.input(1, "G");
  ViewSteps call(world.schedule);
  call(a, true);
  EXPECT_EQ(call(again, false), Tags{0});
  EXPECT_EQ(call(other, false), Tags{});
}

// Against the plainest rule: byte by byte, the last writer and the readers since.
TEST(Dependencies, MatchesALedgerOfSingleBytes) {
  std::mt19937_64 rng(5);
  for (int round = 0; round < 500; ++round) {
    DependencyTracker tracker;
    std::vector<int> writer(16, -1);
    std::vector<std::set<int>> readers(16);
    for (int tag = 0; tag < 12; ++tag) {
      std::vector<Access> accesses;
      for (uint64_t i = 0; i <= rng() % 3; ++i) {
        const uint64_t begin = rng() % 17;
        accesses.push_back({0, begin, begin + rng() % (17 - begin), rng() % 2 == 0});
      }
      std::set<int> expected;
      for (const Access& access : accesses) {
        for (uint64_t byte = access.begin_bytes; byte < access.end_bytes; ++byte) {
          if (writer[byte] >= 0) expected.insert(writer[byte]);
          if (access.is_written) expected.insert(readers[byte].begin(), readers[byte].end());
        }
      }
      for (const Access& access : accesses) {
        for (uint64_t byte = access.begin_bytes; byte < access.end_bytes; ++byte) {
          if (access.is_written) {
            writer[byte] = tag;
            readers[byte].clear();
          } else {
            readers[byte].insert(tag);
          }
        }
      }
      EXPECT_EQ(tracker.add(tag, tag, true, accesses), Tags(expected.begin(), expected.end()));
    }
  }
}

}  // namespace
}  // namespace ignis::engine
