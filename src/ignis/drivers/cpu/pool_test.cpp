#include "ignis/drivers/cpu/pool.h"

#include "ignis/drivers/cpu/denormals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

namespace ignis::cpu {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

Deadline in(std::chrono::nanoseconds time) { return std::chrono::steady_clock::now() + time; }

std::shared_ptr<Pool> make_pool(int threads, std::chrono::nanoseconds spin = microseconds(50)) {
  auto pool = Pool::create({threads, spin});
  EXPECT_TRUE(pool) << pool.error().to_string();
  return *pool;
}

struct Counts {
  std::vector<std::atomic<int>> times;
  std::atomic<int64_t> parts_seen{0};
  explicit Counts(size_t parts) : times(parts) {}
};

void count_part(void* context, int64_t part, int64_t parts) {
  auto* counts = static_cast<Counts*>(context);
  counts->times[static_cast<size_t>(part)].fetch_add(1, std::memory_order_relaxed);
  counts->parts_seen.store(parts, std::memory_order_relaxed);
}

TEST(Pool, RunsEachPartOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    const auto pool = make_pool(threads);
    EXPECT_EQ(pool->threads(), threads);
    auto lease = pool->begin();
    ASSERT_TRUE(lease);
    for (const int64_t parts : {1, 2, 3, 5, 8, 17}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, " << parts << " parts");
      Counts counts(static_cast<size_t>(parts));
      ASSERT_TRUE(lease->run(count_part, &counts, parts, in(seconds(60))));
      for (const auto& times : counts.times) EXPECT_EQ(times.load(), 1);
      EXPECT_EQ(counts.parts_seen.load(), parts);
    }
  }
}

// What a task writes without atomics is visible after the run, and to the next task on any thread.
void add_neighbours(void* context, int64_t part, int64_t parts) {
  auto* rows = static_cast<std::vector<int64_t>*>(context);
  const size_t n = static_cast<size_t>(parts);
  std::vector<int64_t>& from = rows[0];
  rows[1][static_cast<size_t>(part)] =
      from[static_cast<size_t>(part)] + from[(static_cast<size_t>(part) + 1) % n];
}

TEST(Pool, ManyShortRunsSeeEachOthersWrites) {
  for (const auto spin : {microseconds(0), microseconds(50)}) {
    const auto pool = make_pool(4, spin);
    auto lease = pool->begin();
    ASSERT_TRUE(lease);
    constexpr size_t kParts = 4;
    std::vector<int64_t> rows[2] = {{1, 2, 3, 4}, std::vector<int64_t>(kParts)};
    std::vector<int64_t> expected = rows[0];
    for (int i = 0; i < 3000; ++i) {
      ASSERT_TRUE(lease->run(add_neighbours, rows, kParts, in(seconds(60))));
      std::vector<int64_t> next(kParts);
      for (size_t k = 0; k < kParts; ++k)
        next[k] = (expected[k] + expected[(k + 1) % kParts]) % 1000003;
      expected = next;
      for (int64_t& v : rows[1]) v %= 1000003;
      ASSERT_EQ(rows[1], expected) << i;
      std::swap(rows[0], rows[1]);
    }
  }
}

TEST(Pool, RunsBeginAndEndManyTimes) {
  const auto pool = make_pool(3, microseconds(5));
  for (int i = 0; i < 500; ++i) {
    Counts counts(3);
    auto lease = pool->begin();
    ASSERT_TRUE(lease);
    ASSERT_TRUE(lease->run(count_part, &counts, 3, in(seconds(60))));
    for (const auto& times : counts.times) ASSERT_EQ(times.load(), 1);
    if (i % 50 == 0) std::this_thread::sleep_for(milliseconds(1));  // lets the workers fall asleep
  }
}

TEST(Pool, ASecondCallerGetsItsOwnThreadOnly) {
  const auto pool = make_pool(2);
  auto first = pool->begin();
  auto second = pool->begin();
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_EQ(first->threads(), 2);
  EXPECT_EQ(second->threads(), 1);
  Counts counts(4);
  ASSERT_TRUE(second->run(count_part, &counts, 4, in(seconds(60))));
  for (const auto& times : counts.times) EXPECT_EQ(times.load(), 1);
  {
    const auto ended = std::move(*first);
  }
  EXPECT_EQ(pool->begin()->threads(), 2);
}

TEST(Pool, CallersOnManyThreads) {
  const auto pool = make_pool(3, microseconds(20));
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&pool] {
      for (int i = 0; i < 200; ++i) {
        auto lease = pool->begin();
        ASSERT_TRUE(lease);
        Counts counts(6);
        ASSERT_TRUE(lease->run(count_part, &counts, 6, in(seconds(60))));
        for (const auto& times : counts.times) ASSERT_EQ(times.load(), 1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(Pool, AForkedChildRunsAllPartsItself) {
  const auto pool = make_pool(2);
  EXPECT_TRUE(pool->is_of_this_process());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Counts counts(2);
    auto lease = pool->begin();
    const bool is_right = !pool->is_of_this_process() && lease.has_value() &&
                          lease->run(count_part, &counts, 2, in(seconds(60))).has_value() &&
                          counts.times[0] == 1 && counts.times[1] == 1;
    _exit(is_right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

struct Nested {
  Pool* pool;
  std::atomic<int> refused{0};
};

TEST(Pool, RefusesARunInsideATask) {
  const auto pool = make_pool(2);
  Nested nested{pool.get(), {}};
  auto lease = pool->begin();
  ASSERT_TRUE(lease);
  const auto begin_again = [](void* context, int64_t, int64_t) {
    auto* n = static_cast<Nested*>(context);
    const auto inner = n->pool->begin();
    if (!inner && inner.error().code() == ErrorCode::InvalidArgument &&
        inner.error().reason() == "NestedRun") {
      n->refused.fetch_add(1);
    }
  };
  ASSERT_TRUE(lease->run(begin_again, &nested, 2, in(seconds(60))));
  EXPECT_EQ(nested.refused.load(), 2);
}

struct Stuck {
  std::atomic<bool> worker_began{false};
  std::atomic<bool> may_return{false};
  std::atomic<bool> returned{false};
};

// Part 1 waits, for a bounded time, until the test lets it go; part 0 makes sure that a worker has taken part 1.
void spin_in_part_one(void* context, int64_t part, int64_t) {
  auto* stuck = static_cast<Stuck*>(context);
  const Deadline give_up = in(seconds(60));
  if (part == 0) {
    while (!stuck->worker_began.load() && in(seconds(0)) < give_up) std::this_thread::yield();
    return;
  }
  stuck->worker_began.store(true);
  while (!stuck->may_return.load() && in(seconds(0)) < give_up) std::this_thread::yield();
  stuck->returned.store(true);
}

TEST(Pool, AStuckWorkerLosesThePoolButNotTheProcess) {
  // Outlives the abandoned worker, as the pool asks.
  static Stuck stuck;
  {
    const auto pool = make_pool(3);
    auto lease = pool->begin();
    ASSERT_TRUE(lease);
    const Status status = lease->run(spin_in_part_one, &stuck, 2, in(milliseconds(20)));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::Timeout);
    EXPECT_TRUE(pool->is_lost());
    Counts counts(2);
    const Status again = lease->run(count_part, &counts, 2, in(seconds(60)));
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code(), ErrorCode::DeviceLost);
    const auto later = pool->begin();
    ASSERT_FALSE(later);
    EXPECT_EQ(later.error().code(), ErrorCode::DeviceLost);
    EXPECT_FALSE(stuck.returned.load());
  }  // destroying the lost pool does not wait
  stuck.may_return.store(true);
  const Deadline give_up = in(seconds(30));
  while (!stuck.returned.load() && in(seconds(0)) < give_up) std::this_thread::yield();
  EXPECT_TRUE(stuck.returned.load());
  // A new pool works.
  const auto pool = make_pool(2);
  Counts counts(2);
  EXPECT_TRUE(pool->begin()->run(count_part, &counts, 2, in(seconds(60))));
}

struct Denormal {
  float value = std::numeric_limits<float>::denorm_min();
  float results[2] = {-1, -1};
};

TEST(Pool, WorkersFlushDenormalsAndTheCallerGetsItsModeBack) {
  const auto pool = make_pool(2, microseconds(0));
  Denormal denormal;
  volatile float smallest = denormal.value;
  const auto add = [](void* context, int64_t part, int64_t) {
    auto* d = static_cast<Denormal*>(context);
    volatile float x = d->value;
    d->results[part] = x + x;
    if (part == 0) std::this_thread::sleep_for(milliseconds(50));  // lets the worker take part 1
  };
  {
    const FlushDenormals flush;
    ASSERT_TRUE(pool->begin()->run(add, &denormal, 2, in(seconds(60))));
  }
  EXPECT_EQ(denormal.results[0], 0.0f);
  EXPECT_EQ(denormal.results[1], 0.0f);
  EXPECT_GT(smallest + smallest, 0.0f);
}

TEST(Pool, RefusesAbsurdThreadCounts) {
  for (const int threads : {-1, 100'000}) {
    const auto pool = Pool::create({threads, microseconds(0)});
    ASSERT_FALSE(pool);
    EXPECT_EQ(pool.error().code(), ErrorCode::InvalidArgument);
    EXPECT_NE(pool.error().message().find(std::to_string(threads)), std::string::npos);
  }
}

}  // namespace
}  // namespace ignis::cpu
