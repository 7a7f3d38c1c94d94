// The CPU as a device of the queue chain: its ring, its worker and its faults, without the chain around it.

#include "ignis/drivers/cpu/queue.h"

#include "ignis/drivers/cpu/parts.h"
#include "ignis/drivers/cpu/queue_encode.h"
#include "ignis/drivers/cpu/test_function.h"
#include "ignis/runtime/reasons.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <list>
#include <numeric>
#include <thread>

namespace ignis::cpu {
namespace {

using runtime::Command;
using runtime::EncodedCall;
using runtime::Patch;
using runtime::QueueId;
using std::chrono::milliseconds;
using test::function_program;

constexpr runtime::WaitLimits kPatient{60'000'000'000, 60'000'000'000};

PoolSource pool_of(int threads) {
  return [threads] { return Pool::create({.threads = threads}); };
}

/// A batch that grows by calls, encoded and given addresses by hand.
class HandBatch {
 public:
  explicit HandBatch(CpuQueue& queue) : queue_(queue) {}

  void exec(const ProgramImage& image, const std::vector<void*>& buffers, int64_t parts = 1) {
    EncodedCall call;
    call.program = address_of(queue_.load_image(image).value());
    call.parts = parts;
    for (void* buffer : buffers) call.arguments.push_back(hole(reinterpret_cast<uint64_t>(buffer)));
    add(Command::Kind::Exec, std::move(call));
  }
  void copy(void* to, void* from, uint64_t size_bytes) {
    EncodedCall call;
    call.size_bytes = size_bytes;
    call.arguments = {hole(reinterpret_cast<uint64_t>(to)), hole(reinterpret_cast<uint64_t>(from))};
    add(Command::Kind::Copy, std::move(call));
  }

  /// The words, ending with a store of `value` on the timeline.
  std::vector<std::byte> words(uint64_t value) {
    const int timeline = number(reinterpret_cast<uint64_t>(queue_.timeline().reached));
    const std::vector<int> timelines = {timeline};
    const runtime::QueuedDevice::Encoding encoding{calls_, {}, {}, timelines};
    runtime::EncodedQueue encoded;
    const auto encode = [&](Command::Kind kind, int tag) {
      Command command;
      command.kind = kind;
      command.tag = tag;
      command.device = 0;
      const Status status = queue_.encode(command, encoding, encoded);
      EXPECT_TRUE(status) << status.error().to_string();
    };
    encode(Command::Kind::Barrier, -1);
    for (size_t i = 0; i < kinds_.size(); ++i) encode(kinds_[i], static_cast<int>(i));
    encode(Command::Kind::StoreReached, -1);
    std::vector<uint64_t> parts;
    for (runtime::EncodedPart& part : encoded.parts) {
      fill(part.bytes, part.patches, value, {});
      tables_.push_back(part.bytes);
      parts.push_back(reinterpret_cast<uint64_t>(tables_.back().data()));
    }
    fill(encoded.bytes, encoded.patches, value, parts);
    return encoded.bytes;
  }

 private:
  int number(uint64_t address) {
    addresses_.push_back(address);
    return static_cast<int>(addresses_.size()) - 1;
  }
  Patch hole(uint64_t address) { return {.index = number(address)}; }
  int address_of(const runtime::MemoryRef& memory) {
    programs_.push_back(memory);
    return number(queue_.map(memory).value());
  }
  void add(Command::Kind kind, EncodedCall call) {
    kinds_.push_back(kind);
    calls_.push_back(std::move(call));
  }
  void fill(std::vector<std::byte>& bytes, const std::vector<Patch>& patches, uint64_t value,
            const std::vector<uint64_t>& parts) const {
    for (const Patch& patch : patches) {
      const auto index = static_cast<size_t>(patch.index);
      uint64_t word = patch.source == Patch::Source::Timeline ? value - 1
                      : patch.source == Patch::Source::Part   ? parts[index]
                                                              : addresses_[index];
      word += static_cast<uint64_t>(patch.addend);
      std::memcpy(bytes.data() + patch.offset_bytes, &word, sizeof word);
    }
  }

  CpuQueue& queue_;
  std::vector<Command::Kind> kinds_;
  std::vector<EncodedCall> calls_;
  std::vector<uint64_t> addresses_;
  std::vector<runtime::MemoryRef> programs_;
  std::list<std::vector<std::byte>> tables_;
};

runtime::WaitEnd wait_for(CpuQueue& queue, uint64_t value, runtime::WaitLimits limits = kPatient) {
  return runtime::wait_at_least(
      queue.clock(), [&] { return queue.timeline().reached->load(); }, value, limits,
      [&] { return !queue.is_online(); });
}

ProgramImage add_one() {
  return function_program("add_one", 1, [](void* const* buffers, int64_t, int64_t) {
    ++*static_cast<int64_t*>(buffers[0]);
  });
}

class CpuQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_function_programs()) GTEST_SKIP() << "The programs are for x86-64.";
  }
};

TEST_F(CpuQueueTest, IsTheHostsDeviceAndNobodysPeer) {
  CpuQueue queue(pool_of(1), {});
  EXPECT_EQ(queue.name(), "CPU");
  EXPECT_FALSE(queue.capabilities().is_queued);
  EXPECT_EQ(queue.ring_bytes(QueueId{}), uint64_t{16'384} * 64 * 8);
  EXPECT_EQ(queue.free_bytes(QueueId{}), queue.ring_bytes(QueueId{}));
  EXPECT_EQ(queue.ring_bytes({QueueId::Kind::Copy, 0}), 0u);
  EXPECT_TRUE(queue.is_online());
}

TEST_F(CpuQueueTest, EntriesRunInOrderAndEndWithTheTimeline) {
  CpuQueue queue(pool_of(2), std::chrono::microseconds(50));
  std::vector<int64_t> order;
  int64_t from[3] = {1, 2, 3}, to[3] = {};
  HandBatch batch(queue);
  for (int64_t i = 0; i < 4; ++i) {
    batch.exec(function_program(
                   "note", 0, [&order, i](void* const*, int64_t, int64_t) { order.push_back(i); }),
               {});
  }
  batch.copy(to, from, sizeof from);
  batch.exec(function_program("twice", 1,
                              [](void* const* buffers, int64_t, int64_t) {
                                static_cast<int64_t*>(buffers[0])[1] *= 2;
                              }),
             {to});
  for (uint64_t run = 1; run <= 3; ++run) {
    order.clear();
    ASSERT_TRUE(queue.submit(QueueId{}, batch.words(run)));
    ASSERT_EQ(wait_for(queue, run), runtime::WaitEnd::Reached);
    EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3}));
    EXPECT_EQ(to[1], 4);
  }
  EXPECT_EQ(queue.free_bytes(QueueId{}), queue.ring_bytes(QueueId{}));
}

TEST_F(CpuQueueTest, NoCallerRunsAProgram) {
  CpuQueue queue(pool_of(2), {});
  std::thread::id worker;
  HandBatch batch(queue);
  batch.exec(function_program("who", 0,
                              [&](void* const*, int64_t part, int64_t) {
                                if (part == 0) worker = std::this_thread::get_id();
                              }),
             {}, 2);
  ASSERT_TRUE(queue.submit(QueueId{}, batch.words(1)));
  ASSERT_EQ(wait_for(queue, 1), runtime::WaitEnd::Reached);
  EXPECT_NE(worker, std::thread::id());
  EXPECT_NE(worker, std::this_thread::get_id());
}

TEST_F(CpuQueueTest, PartsTakeThisMachinesThreads) {
  CpuQueue queue(pool_of(3), {});
  std::atomic<int64_t> parts{0}, calls{0};
  HandBatch batch(queue);
  batch.exec(
      function_program("parts", 0, [&](void* const*, int64_t, int64_t of) { parts = of, ++calls; }),
      {}, 16);
  ASSERT_TRUE(queue.submit(QueueId{}, batch.words(1)));
  ASSERT_EQ(wait_for(queue, 1), runtime::WaitEnd::Reached);
  EXPECT_EQ(parts, 3);
  EXPECT_EQ(calls, 3);
}

TEST_F(CpuQueueTest, MoreThan63ArgumentsLieInATable) {
  CpuQueue queue(pool_of(1), {});
  for (const size_t count : {size_t{63}, size_t{64}, size_t{200}}) {
    std::vector<int64_t> values(count);
    std::iota(values.begin(), values.end(), 1);
    std::vector<void*> buffers;
    for (int64_t& value : values) buffers.push_back(&value);
    HandBatch batch(queue);
    batch.exec(function_program("sum", static_cast<int>(count),
                                [count](void* const* all, int64_t, int64_t) {
                                  int64_t sum = 0;
                                  for (size_t i = 0; i < count; ++i) {
                                    sum += *static_cast<int64_t*>(all[i]);
                                  }
                                  *static_cast<int64_t*>(all[0]) = sum;
                                }),
               buffers);
    const uint64_t value = queue.timeline().reached->load() + 1;
    ASSERT_TRUE(queue.submit(QueueId{}, batch.words(value)));
    ASSERT_EQ(wait_for(queue, value), runtime::WaitEnd::Reached);
    EXPECT_EQ(values[0], static_cast<int64_t>(count * (count + 1) / 2));
  }
}

/// Holds its worker until it is let go.
struct Gate {
  std::atomic<bool> is_open{false}, is_entered{false};
  ProgramImage program() {
    return function_program("gate", 0, [this](void* const*, int64_t, int64_t) {
      is_entered = true;
      while (!is_open) std::this_thread::sleep_for(milliseconds(1));
    });
  }
  void wait_until_entered() const {
    while (!is_entered) std::this_thread::sleep_for(milliseconds(1));
  }
};

TEST_F(CpuQueueTest, AFullRingRefusesAndComesAround) {
  CpuQueue queue(pool_of(1), {});
  Gate gate;
  int64_t count = 0;
  HandBatch first(queue), many(queue);
  first.exec(gate.program(), {});
  for (int i = 0; i < 1000; ++i) many.exec(add_one(), {&count});
  ASSERT_TRUE(queue.submit(QueueId{}, first.words(1)));
  gate.wait_until_entered();
  uint64_t value = 1;
  Status status;
  while (status) {  // the last of them lies across the ring's end once the first are gone
    status = queue.submit(QueueId{}, many.words(value + 1));
    value += status.has_value();
  }
  EXPECT_EQ(status.error().code(), ErrorCode::OutOfMemory);
  EXPECT_EQ(status.error().reason(), runtime::reason::kQueueFull);
  EXPECT_LT(queue.free_bytes(QueueId{}), many.words(1).size());
  gate.is_open = true;
  ASSERT_EQ(wait_for(queue, 2), runtime::WaitEnd::Reached);
  for (int i = 0; i < 50; ++i) {
    const std::vector<std::byte> words = many.words(value + 1);
    while (queue.free_bytes(QueueId{}) < words.size()) std::this_thread::yield();
    ASSERT_TRUE(queue.submit(QueueId{}, words));
    ++value;
  }
  ASSERT_EQ(wait_for(queue, value), runtime::WaitEnd::Reached);
  EXPECT_EQ(count, static_cast<int64_t>(value - 1) * 1000);
  const Status too_large =
      queue.submit(QueueId{}, std::vector<std::byte>(queue.ring_bytes(QueueId{}) + 8));
  EXPECT_EQ(too_large.error().reason(), runtime::reason::kSubmitTooLarge);
}

TEST_F(CpuQueueTest, AProgramThatHangsIsCutOffAndReopenWorks) {
  CpuQueue queue(pool_of(2), {});
  static Gate gate;  // outlives the test: the old thread looks at it
  static std::atomic<int64_t> late{0};
  HandBatch batch(queue);
  batch.exec(gate.program(), {}, 2);
  batch.exec(function_program("late", 0, [](void* const*, int64_t, int64_t) { ++late; }), {});
  queue.timeline().announced = 1;
  ASSERT_TRUE(queue.submit(QueueId{}, batch.words(1)));
  gate.wait_until_entered();
  EXPECT_EQ(wait_for(queue, 1, {20'000'000, 20'000'000}), runtime::WaitEnd::Stalled);
  EXPECT_NE(queue.report_hang("a test").find("a test"), std::string::npos);
  EXPECT_FALSE(queue.is_online());
  EXPECT_FALSE(queue.is_quiet(1));
  EXPECT_EQ(queue.submit(QueueId{}, batch.words(2)).error().reason(),
            runtime::reason::kDeviceUnavailable);

  ASSERT_TRUE(queue.reopen());
  EXPECT_EQ(queue.generation(), 2u);
  EXPECT_EQ(queue.timeline().announced.load(), 0u);
  EXPECT_FALSE(queue.is_quiet(1));
  int64_t value = 0;
  HandBatch again(queue);
  again.exec(add_one(), {&value});
  ASSERT_TRUE(queue.submit(QueueId{}, again.words(1)));
  ASSERT_EQ(wait_for(queue, 1), runtime::WaitEnd::Reached);
  EXPECT_EQ(value, 1);
  // The old thread comes back: it does nothing more and stores nothing.
  gate.is_open = true;
  while (!queue.is_quiet(1)) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(late, 0);
  EXPECT_EQ(queue.timeline().reached->load(), 1u);
}

TEST_F(CpuQueueTest, HostWorkerDead) {
  CpuQueue queue(pool_of(2), std::chrono::microseconds(50));
  int64_t value = 0;
  HandBatch batch(queue);
  batch.exec(add_one(), {&value});
  ASSERT_TRUE(queue.submit(QueueId{}, batch.words(1)));
  ASSERT_EQ(wait_for(queue, 1), runtime::WaitEnd::Reached);
  queue.kill_worker();
  (void)queue.submit(QueueId{}, batch.words(2));
  EXPECT_EQ(wait_for(queue, 2, {20'000'000, 20'000'000}), runtime::WaitEnd::Stalled);
  while (!queue.is_quiet(1)) std::this_thread::sleep_for(milliseconds(1));
  queue.report_hang("a test");
  EXPECT_NE(queue.state().reason.find("thread has ended"), std::string::npos);
  ASSERT_TRUE(queue.reopen());
  ASSERT_TRUE(queue.submit(QueueId{}, batch.words(1)));
  ASSERT_EQ(wait_for(queue, 1), runtime::WaitEnd::Reached);
  EXPECT_EQ(value, 2);
}

TEST_F(CpuQueueTest, TheChildOfAForkOpensItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "The thread sanitizer knows no threads in a fork's child.";
#endif
  CpuQueue queue(pool_of(1), {});
  int64_t value = 0;
  HandBatch batch(queue);
  batch.exec(add_one(), {&value});
  ASSERT_TRUE(queue.submit(QueueId{}, batch.words(1)));
  ASSERT_EQ(wait_for(queue, 1), runtime::WaitEnd::Reached);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool is_refused =
        queue.submit(QueueId{}, batch.words(2)).error().reason() == "DeviceUnavailable";
    const bool is_well = is_refused && queue.reopen().has_value() &&
                         queue.submit(QueueId{}, batch.words(1)).has_value() &&
                         wait_for(queue, 1) == runtime::WaitEnd::Reached && value == 2;
    _exit(is_well ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(CpuQueueTest, AWaiterIsWokenByAFinishAndByALoss) {
  CpuQueue queue(pool_of(1), {});
  Gate gate;
  HandBatch batch(queue);
  batch.exec(gate.program(), {});
  ASSERT_TRUE(queue.submit(QueueId{}, batch.words(1)));
  gate.wait_until_entered();
  std::thread opener([&] {
    std::this_thread::sleep_for(milliseconds(5));
    gate.is_open = true;
  });
  EXPECT_EQ(wait_for(queue, 1), runtime::WaitEnd::Reached);
  opener.join();
  std::thread loser([&] {
    std::this_thread::sleep_for(milliseconds(5));
    queue.report_hang("a test");
  });
  EXPECT_EQ(wait_for(queue, 2), runtime::WaitEnd::Abandoned);
  loser.join();
}

TEST(CpuQueue, RefusesWhatItCannotRun) {
  CpuQueue queue(pool_of(1), {});
  ProgramImage broken;
  broken.name = "broken";
  broken.object.resize(40);
  const auto refused = queue.load_image(broken);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidArgument);
  EXPECT_NE(refused.error().to_string().find("broken"), std::string::npos);
  EXPECT_FALSE(queue.submit({QueueId::Kind::Copy, 0}, {}));
  const std::vector<std::byte> odd(12);
  EXPECT_FALSE(queue.submit(QueueId{}, odd));
  runtime::EncodedQueue words;
  EncodedCall variable;
  variable.program = 0;
  variable.variables = {{.index = 0}};
  Command command;
  command.kind = Command::Kind::Exec;
  command.tag = 0;
  EXPECT_EQ(encode_command(command, {{&variable, 1}, {}, {}, {}}, words).error().reason(),
            "BadCall");
  command.tag = 1;
  EXPECT_FALSE(encode_command(command, {{&variable, 1}, {}, {}, {}}, words));
}

// Hand work with 80 operations and 40 bytes in a nanosecond, 2.5 us a part, 50 us a run.
TEST(CpuParts, AreWorthHandingOver) {
  EXPECT_EQ(estimate_ns(0, 0), 0u);
  EXPECT_EQ(estimate_ns(8e5, 0), 10'000u);
  EXPECT_EQ(estimate_ns(8e5, 8e5), 20'000u);
  EXPECT_EQ(estimate_ns(1, 0), 1u);
  EXPECT_EQ(choose_parts(16, 0, 4), 4);
  EXPECT_EQ(choose_parts(2, 0, 4), 2);
  EXPECT_EQ(choose_parts(16, 10'000, 8), 4);
  EXPECT_EQ(choose_parts(16, 2'499, 8), 1);
  EXPECT_EQ(choose_parts(0, 0, 8), 1);
  EXPECT_EQ(choose_parts(8, estimate_ns(100, 0), 3), 1);
  EXPECT_EQ(choose_parts(8, estimate_ns(1e9, 0), 3), 3);
  EXPECT_EQ(choose_parts(1, estimate_ns(1e9, 0), 3), 1);
  EXPECT_TRUE(is_short_run(estimate_ns(800e3, 0)));
  EXPECT_TRUE(is_short_run(49'999));
  EXPECT_FALSE(is_short_run(50'000));
  EXPECT_FALSE(is_short_run(0));
}

}  // namespace
}  // namespace ignis::cpu
