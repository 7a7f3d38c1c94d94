#include "ignis/engine/queues/streams.h"

#include "ignis/engine/queues/batch_machine.h"
#include "ignis/engine/queues/check_batch.h"
#include "ignis/engine/queues/test_world.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace ignis::engine {
namespace {

/// G and G1 with one copy queue each.
class QueueStreams : public ::testing::Test {
 protected:
  QueueStreams() { world_.peers(2); }
  exec::BufferView on(const std::string& device) {
    return world_.buffer("b" + std::to_string(world_.schedule.buffers.size()), {device});
  }
  TestWorld world_;
};

TEST_F(QueueStreams, QS1_OneKernel) {
  world_.kernel({on("G")});
  EXPECT_EQ(world_.streams(), "G/COMPUTE:0: B; W R[G]>=N; k0; T R[G]=N+1\n");
}

TEST_F(QueueStreams, QS2_CopyThenKernel) {
  const exec::BufferView a = on("G");
  world_.copy(a, on("CPU"));
  world_.kernel({on("G")}, {a});
  EXPECT_EQ(world_.streams(),
            "G/COPY:0: B; W R[G]>=N; c0; T S=1\n"
            "G/COMPUTE:0: B; W R[G]>=N; W S[G/COPY:0]>=1; k1; W S[G/COPY:0]>=1; T R[G]=N+1\n");
}

TEST_F(QueueStreams, QS3_KernelThenCopy) {
  const exec::BufferView a = on("G");
  world_.kernel({a});
  world_.copy(on("CPU"), a);
  EXPECT_EQ(world_.streams(),
            "G/COMPUTE:0: B; W R[G]>=N; k0; T S=1; W S[G/COPY:0]>=2; T R[G]=N+1\n"
            "G/COPY:0: B; W R[G]>=N; W S[G/COMPUTE:0]>=1; c1; T S=2\n");
}

TEST_F(QueueStreams, QS4_OnlyTheNewestOwnerOfAQueueIsWaitedFor) {
  const exec::BufferView a = on("G");
  world_.kernel({slice(a, 0, 8)});
  world_.kernel({slice(a, 8, 16)});
  world_.copy(on("CPU"), a);
  EXPECT_EQ(world_.streams(),
            "G/COMPUTE:0: B; W R[G]>=N; k0; k1; T S=2; W S[G/COPY:0]>=3; T R[G]=N+1\n"
            "G/COPY:0: B; W R[G]>=N; W S[G/COMPUTE:0]>=2; c2; T S=3\n");
}

TEST_F(QueueStreams, QS5_IndependentCallsMeetAtTheEnd) {
  world_.copy(on("G"), on("CPU"));
  world_.kernel({on("G")});
  EXPECT_EQ(world_.streams(),
            "G/COPY:0: B; W R[G]>=N; c0; T S=1\n"
            "G/COMPUTE:0: B; W R[G]>=N; k1; W S[G/COPY:0]>=1; T R[G]=N+1\n");
}

TEST_F(QueueStreams, QS6_OnlyCopiesOnTwoQueues) {
  world_.copy(on("G"), on("CPU"));
  world_.copy(on("G"), on("CPU"));
  exec::Batch batch = world_.made().steps[0].batch;
  batch.calls[1].queue.index = 1;
  build_streams(world_.table, world_.schedule.buffers, BaseTable(world_.schedule.buffers), false,
                batch);
  EXPECT_EQ(to_text(batch),
            "G/COPY:0: B; W R[G]>=N; c0; T S=1\n"
            "G/COPY:1: B; W R[G]>=N; c1; T S=2\n"
            "G/COMPUTE:0: W S[G/COPY:0]>=1; W S[G/COPY:1]>=2; T R[G]=N+1\n");
}

TEST_F(QueueStreams, QS7_CopyIntoAPeersMemory) {
  world_.copy(on("G1"), on("G"));
  EXPECT_EQ(world_.streams(),
            "G/COPY:0: B; W R[G]>=N; W R[G1]>=N; c0; T S=1; T R[G]=N+1\n"
            "G1/COMPUTE:0: B; W R[G1]>=N; W S[G/COPY:0]>=1; T R[G1]=N+1\n");
}

TEST_F(QueueStreams, QS8_CopyIntoAPeersMemoryThenAKernelThere) {
  const exec::BufferView b = on("G1");
  world_.copy(b, on("G"));
  world_.kernel({on("G1")}, {b});
  EXPECT_EQ(world_.streams(),
            "G/COPY:0: B; W R[G]>=N; W R[G1]>=N; c0; T S=1; T R[G]=N+1\n"
            "G1/COMPUTE:0: B; W R[G1]>=N; W S[G/COPY:0]>=1; k1; W S[G/COPY:0]>=1; T R[G1]=N+1\n");
}

/// Every order in which the calls of a batch can start.
std::set<std::vector<int>> all_orders(const TestWorld& world, const exec::QueueTemplate& made,
                                      const std::function<void(BatchMachine&)>& prepare = {}) {
  const BaseTable bases(made.buffers);
  const exec::Batch& batch = made.steps[0].batch;
  const BatchFacts facts = collect_facts(world.table, made.buffers, bases, batch);
  std::set<std::vector<int>> orders;
  const std::function<void(const BatchMachine&, const std::vector<int>&)> walk =
      [&](const BatchMachine& machine, const std::vector<int>& started) {
        bool is_stuck = true;
        for (int stream = 0; stream < static_cast<int>(machine.stream_count()); ++stream) {
          if (!machine.can_step(stream)) continue;
          is_stuck = false;
          BatchMachine next = machine;
          EXPECT_EQ(next.step(stream), std::nullopt);
          std::vector<int> order = started;
          for (const exec::BatchCall& call : batch.calls) {
            if (next.has_started(call.tag) && !machine.has_started(call.tag)) {
              order.push_back(call.tag);
            }
          }
          walk(next, order);
        }
        if (is_stuck) orders.insert(started);
      };
  BatchMachine machine(facts);
  if (prepare) prepare(machine);
  walk(machine, {});
  return orders;
}

TEST_F(QueueStreams, QS9_ChainedKernelsNeedNoWaits) {
  const exec::BufferView a = on("G"), b = on("G");
  world_.kernel({a});
  world_.kernel({b}, {a});
  world_.kernel({on("G")}, {b});
  EXPECT_EQ(world_.streams(), "G/COMPUTE:0: B; W R[G]>=N; k0; k1; k2; T R[G]=N+1\n");
  EXPECT_EQ(all_orders(world_, world_.made()), (std::set<std::vector<int>>{{0, 1, 2}}));
}

TEST_F(QueueStreams, QS10_AWaitBreaksAChainOfLaunches) {
  const exec::BufferView a = on("G");
  world_.copy(a, on("CPU"));
  world_.kernel({on("G")});
  world_.kernel({on("G")}, {a});
  const std::string copies = "G/COPY:0: B; W R[G]>=N; c0; T S=1\n";
  EXPECT_EQ(world_.streams(),
            copies +
                "G/COMPUTE:0: B; W R[G]>=N; k1; W S[G/COPY:0]>=1; k2; W S[G/COPY:0]>=1; T "
                "R[G]=N+1\n");
  world_.device("G").chains_launches = true;
  EXPECT_EQ(world_.streams(),
            copies +
                "G/COMPUTE:0: B; W R[G]>=N; k1; T S=2; W S[G/COMPUTE:0]>=2; W S[G/COPY:0]>=1; k2; "
                "W S[G/COPY:0]>=1; T R[G]=N+1\n");
}

TEST_F(QueueStreams, QS11_ALateDeviceHoldsUpItsOwnLaneOnly) {
  const exec::BufferView sharded = world_.buffer("s", {"G", "G1"});
  world_.kernel({sharded});
  const exec::QueueTemplate made = world_.made();
  EXPECT_EQ(all_orders(world_, made, [](BatchMachine& machine) { machine.set_late(0); }),
            (std::set<std::vector<int>>{{1}}));
}

TEST_F(QueueStreams, BA3_LanesRunInAnyOrder) {
  world_.kernel({world_.buffer("s", {"G", "G1"})});
  const exec::QueueTemplate made = world_.made();
  ASSERT_EQ(made.steps[0].batch.calls.size(), 2u);
  for (int lane = 0; lane < 2; ++lane) {
    const exec::BatchCall& call = made.steps[0].batch.calls[static_cast<size_t>(lane)];
    EXPECT_EQ(call.arguments[0].lane, lane);
    ASSERT_EQ(call.variables.size(), 1u);
    EXPECT_EQ(call.variables[0], (exec::CallVariable{"lane", lane}));
  }
  EXPECT_EQ(all_orders(world_, made), (std::set<std::vector<int>>{{0, 1}, {1, 0}}));
}

TEST_F(QueueStreams, AMarkedCallSignals) {
  world_.kernel({on("G")}).wants_signal = true;
  world_.kernel({on("G")});
  EXPECT_EQ(world_.streams(), "G/COMPUTE:0: B; W R[G]>=N; k0; T S=1; k1; T R[G]=N+1\n");
}

// A queue that does not complete in order: barriers say what the order would.
TEST_F(QueueStreams, OutOfOrderQueuesGetBarriers) {
  world_.device("G").is_in_order = false;
  const exec::BufferView a = on("G"), b = on("G");
  world_.kernel({a});
  world_.kernel({b});
  world_.kernel({on("G")}, {a});
  world_.copy(on("CPU"), b);
  EXPECT_EQ(world_.streams(),
            "G/COMPUTE:0: B; W R[G]>=N; k0; k1; B; T S=2; B; k2; W S[G/COPY:0]>=4; B; T R[G]=N+1\n"
            "G/COPY:0: B; W R[G]>=N; W S[G/COMPUTE:0]>=2; c3; B; T S=4\n");
}

TEST_F(QueueStreams, PR2_TimeSlotsFollowTheSignals) {
  world_.options.is_profiled = true;
  const exec::BufferView a = on("G");
  world_.copy(a, on("CPU"));
  world_.kernel({on("G")}, {a});
  world_.kernel({on("G")});
  const exec::Batch batch = world_.made().steps[0].batch;
  EXPECT_EQ(to_text(batch),
            "G/COPY:0: B; W R[G]>=N; @3; c0; @4; T S=1\n"
            "G/COMPUTE:0: B; W R[G]>=N; W S[G/COPY:0]>=1; @5; k1; @6; @7; k2; @8; "
            "W S[G/COPY:0]>=1; T R[G]=N+1\n");
  for (const exec::BatchCall& call : batch.calls) {
    EXPECT_EQ(call.start_slot, 3 + 2 * call.tag);
    EXPECT_EQ(call.end_slot, 4 + 2 * call.tag);
  }
  EXPECT_EQ(signal_bytes(batch, 0, true), 144u);
  EXPECT_EQ(signal_bytes(batch, 0, false), 48u);
}

}  // namespace
}  // namespace ignis::engine
