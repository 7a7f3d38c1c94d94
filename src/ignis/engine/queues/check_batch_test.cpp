#include "ignis/engine/queues/check_batch.h"

#include "ignis/engine/queues/test_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace ignis::engine {
namespace {

using runtime::Command;

/// Streams of a small batch in which nothing is redundant, and what is wrong when something is taken away.
class CheckBatch : public ::testing::Test {
 protected:
  CheckBatch() {
    // G/COPY:0: c0 into G1's memory, c2; G/COMPUTE:0: k1 reads what c2 overwrites; G1/COMPUTE:0: k3 reads what c0 wrote.
    world_.peers(2);
    const exec::BufferView a = world_.buffer("a", {"G"}), b = world_.buffer("b", {"G1"}),
                           x = world_.buffer("x", {"G"}), y = world_.buffer("y", {"G1"}),
                           h = world_.buffer("h", {"CPU"});
    world_.copy(b, a);
    world_.kernel({x}, {a});
    world_.copy(a, h);
    world_.kernel({y}, {b});
    batch_ = world_.made().steps[0].batch;
  }

  std::string fault(const exec::Batch& batch) const {
    CheckOptions options;
    options.random_orders = 20;
    options.max_states = 100'000;
    const auto found = check_batch(world_.table, world_.schedule.buffers,
                                   BaseTable(world_.schedule.buffers), batch, options);
    return found ? found->invariant : "";
  }

  /// The batch without the command that the text names, on that stream; the last of several.
  exec::Batch without(const std::string& queue, const std::string& command) const {
    exec::Batch batch = batch_;
    for (exec::QueueStream& stream : batch.streams) {
      if (!to_text(batch, stream).starts_with(queue + ":")) continue;
      for (size_t i = stream.commands.size(); i-- > 0;) {
        if (to_text(batch, stream.commands[i]) != command) continue;
        stream.commands.erase(stream.commands.begin() + static_cast<std::ptrdiff_t>(i));
        return batch;
      }
    }
    ADD_FAILURE() << queue << " has no " << command << "\n" << to_text(batch_);
    return batch;
  }

  TestWorld world_;
  exec::Batch batch_;
};

TEST_F(CheckBatch, AWholeBatchHasNoFault) {
  EXPECT_EQ(to_text(batch_),
            "G/COPY:0: B; W R[G]>=N; W R[G1]>=N; c0; T S=1; W S[G/COMPUTE:0]>=2; c2; T S=3\n"
            "G/COMPUTE:0: B; W R[G]>=N; k1; T S=2; W S[G/COPY:0]>=3; T R[G]=N+1\n"
            "G1/COMPUTE:0: B; W R[G1]>=N; W S[G/COPY:0]>=1; k3; W S[G/COPY:0]>=3; T R[G1]=N+1\n");
  EXPECT_EQ(fault(batch_), "");
}

TEST_F(CheckBatch, I1_AWaitForWhatComesLater) {
  // Each of two queues waits for the other's last call in front of its own first.
  exec::Batch batch = batch_;
  Command wait;
  wait.kind = Command::Kind::WaitSignal;
  wait.signal = 0;
  wait.value = 3;
  std::vector<Command>& commands = batch.streams[1].commands;
  commands.insert(commands.begin() + 2, wait);
  EXPECT_EQ(fault(batch), "I-1");
}

TEST_F(CheckBatch, I2_ATimelineStoreIsMissingOrDouble) {
  EXPECT_EQ(fault(without("G/COMPUTE:0", "T R[G]=N+1")), "I-2");
  EXPECT_EQ(fault(without("G1/COMPUTE:0", "T R[G1]=N+1")), "I-2");
  exec::Batch batch = batch_;
  batch.streams[1].commands.push_back(batch.streams[1].commands.back());
  EXPECT_EQ(fault(batch), "I-2");
}

TEST_F(CheckBatch, I3_AClosingWaitIsMissing) {
  EXPECT_EQ(fault(without("G/COMPUTE:0", "W S[G/COPY:0]>=3")), "I-3");
}

TEST_F(CheckBatch, I4_AStartWaitIsMissing) {
  EXPECT_EQ(fault(without("G/COPY:0", "W R[G]>=N")), "I-4");
  EXPECT_EQ(fault(without("G/COPY:0", "W R[G1]>=N")), "I-4");
  EXPECT_EQ(fault(without("G/COMPUTE:0", "W R[G]>=N")), "I-4");
}

TEST_F(CheckBatch, I5_AMarkIsMissing) {
  EXPECT_EQ(fault(without("G/COPY:0", "T S=3")), "I-5");
  EXPECT_EQ(fault(without("G/COMPUTE:0", "T S=2")), "I-5");
}

TEST_F(CheckBatch, I6_ADependencyWaitIsMissing) {
  EXPECT_EQ(fault(without("G/COPY:0", "W S[G/COMPUTE:0]>=2")), "I-6");
  EXPECT_EQ(fault(without("G1/COMPUTE:0", "W S[G/COPY:0]>=1")), "I-6");
}

TEST_F(CheckBatch, I6_ACallIsMissingOrTwice) {
  EXPECT_EQ(fault(without("G/COMPUTE:0", "k1")), "I-6");
  exec::Batch batch = batch_;
  std::vector<Command>& commands = batch.streams[1].commands;
  commands.insert(commands.begin() + 2, commands[2]);
  EXPECT_EQ(fault(batch), "I-6");
}

TEST_F(CheckBatch, AFaultTellsTheOrder) {
  const exec::Batch batch = without("G/COPY:0", "W S[G/COMPUTE:0]>=2");
  const auto found =
      check_batch(world_.table, world_.schedule.buffers, BaseTable(world_.schedule.buffers), batch);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, "Call 2 runs before call 1, which touches the same bytes, is complete.");
  EXPECT_FALSE(found->order.empty());
  EXPECT_NE(found->to_string().find("(order 0 "), std::string::npos) << found->to_string();
}

TEST_F(CheckBatch, AnOutOfOrderQueueNeedsItsBarriers) {
  TestWorld world;
  world.peers(1);
  world.device("G").is_in_order = false;
  const exec::BufferView a = world.buffer("a", {"G"});
  world.kernel({a});
  world.kernel({world.buffer("b", {"G"})}, {a});
  exec::Batch batch = world.made().steps[0].batch;
  EXPECT_EQ(to_text(batch), "G/COMPUTE:0: B; W R[G]>=N; k0; B; k1; B; T R[G]=N+1\n");
  const auto check = [&] {
    const auto found =
        check_batch(world.table, world.schedule.buffers, BaseTable(world.schedule.buffers), batch);
    return found ? found->invariant : "";
  };
  EXPECT_EQ(check(), "");
  std::vector<Command>& commands = batch.streams[0].commands;
  const std::vector<Command> whole = commands;
  commands.erase(commands.begin() + 3);
  EXPECT_EQ(check(), "I-6");
  commands = whole;
  commands.erase(commands.begin() + 5);
  EXPECT_EQ(check(), "I-3");
}

TEST_F(CheckBatch, VerifySaysWhichInvariantAndShowsTheStreams) {
  const Status status =
      verify_batch(world_.table, world_.schedule.buffers, BaseTable(world_.schedule.buffers),
                   without("G/COMPUTE:0", "T S=2"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::Internal);
  EXPECT_EQ(status.error().reason(), "I-5");
  EXPECT_NE(status.error().message().find("G/COPY:0: B; W R[G]>=N"), std::string::npos);
}

}  // namespace
}  // namespace ignis::engine
