// Capture spec, section 5: f = sum of x, inputs [1,1], [2,2], [3,3] and so on.

#include "ignis/exec/outputs.h"

#include "ignis/exec/host_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>

namespace ignis::exec {
namespace {

constexpr runtime::WaitLimits kNoWait{0, 0};
constexpr runtime::WaitLimits kLong{20'000'000'000, 20'000'000'000};

Placement host_place(uint64_t size_bytes = sizeof(float)) {
  return {allocate_host_memory("CPU", size_bytes).value(), 0, size_bytes};
}

Outputs make_outputs(OutputMode mode, OutputOptions options = {}) {
  options.mode = mode;
  if (mode == OutputMode::Borrow) options.borrowed = {host_place()};
  return Outputs::create({{"sum", sizeof(float)}}, std::move(options)).value();
}

float* floats(const Placement& at) {
  return reinterpret_cast<float*>(at.memory->host() + at.offset_bytes);
}

/// A replay on the host.
OutputHandle replay(Outputs& outputs, std::array<float, 2> x,
                    std::span<const Placement> callers = {}) {
  OutputTurn turn = outputs.begin(kNoWait, callers).value();
  *floats(turn.places()[0]) = x[0] + x[1];
  return std::move(turn).finish();
}

Result<float> read(const OutputHandle& handle) {
  float value = 0;
  IGNIS_TRY(handle.read(0, std::as_writable_bytes(std::span(&value, 1)), kNoWait));
  return value;
}

void expect_stale(const OutputHandle& handle) {
  EXPECT_TRUE(handle.is_stale());
  const auto value = read(handle);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(value.error().reason(), "StaleOutput");
  EXPECT_EQ(handle.place(0).error().reason(), "StaleOutput");
  EXPECT_EQ(handle.pin().error().reason(), "StaleOutput");
}

TEST(CaptureOutputs, OU2_ABorrowedResultIsStaleWhenTheNextReplayStarts) {
  // Call 1 is direct: its result is its own. Calls 2 and 3 replay.
  Outputs outputs = make_outputs(OutputMode::Borrow);
  const float r1 = 2;
  const OutputHandle r2 = replay(outputs, {2, 2});
  EXPECT_EQ(*read(r2), 4);
  const OutputHandle r3 = replay(outputs, {3, 3});
  EXPECT_EQ(r1, 2);
  EXPECT_EQ(*read(r3), 6);
  expect_stale(r2);
}

TEST(CaptureOutputs, OU3_ACopiedResultStays) {
  Outputs outputs = make_outputs(OutputMode::Copy);
  const OutputHandle r2 = replay(outputs, {2, 2});
  const OutputHandle r3 = replay(outputs, {3, 3});
  EXPECT_EQ(*read(r3), 6);
  EXPECT_EQ(*read(r2), 4);
}

TEST(CaptureOutputs, OU4_ARingKeepsItsLastResults) {
  OutputOptions options;
  options.ring_size = 3;
  Outputs outputs = make_outputs(OutputMode::Ring, options);
  std::vector<OutputHandle> handles;
  for (int i = 1; i <= 5; ++i) {
    handles.push_back(replay(outputs, {static_cast<float>(i), static_cast<float>(i)}));
  }
  expect_stale(handles[0]);
  expect_stale(handles[1]);
  EXPECT_EQ(*read(handles[2]), 6);
  EXPECT_EQ(*read(handles[3]), 8);
  EXPECT_EQ(*read(handles[4]), 10);
}

TEST(CaptureOutputs, OU5_AResultClonedBeforeTheNextCallStays) {
  Outputs outputs = make_outputs(OutputMode::Borrow);
  std::vector<float> clones;
  for (const float x : {1.0F, 2.0F, 3.0F}) clones.push_back(*read(replay(outputs, {x, x})));
  EXPECT_EQ(clones, (std::vector<float>{2, 4, 6}));
}

TEST(CaptureOutputs, OU6_BorrowedResultsHaveOneStorageAndRisingSequence) {
  Outputs outputs = make_outputs(OutputMode::Borrow);
  const OutputHandle capture = replay(outputs, {2, 2});
  const Placement first = capture.place(0).value();
  const OutputHandle later = replay(outputs, {3, 3});
  EXPECT_EQ(later.place(0)->memory, first.memory);
  EXPECT_EQ(capture.sequence(), 1U);
  EXPECT_EQ(later.sequence(), 2U);
  EXPECT_EQ(outputs.next_sequence(), 3U);
}

TEST(CaptureOutputs, OU8_ACaptureMayReturnNothing) {
  for (const OutputMode mode :
       {OutputMode::Borrow, OutputMode::Copy, OutputMode::Ring, OutputMode::Caller}) {
    OutputOptions options;
    options.mode = mode;
    Outputs outputs = Outputs::create({}, options).value();
    for (uint64_t k = 1; k <= 5; ++k) {
      OutputTurn turn = outputs.begin(kNoWait).value();
      EXPECT_TRUE(turn.places().empty());
      const OutputHandle nothing = std::move(turn).finish();
      EXPECT_EQ(nothing.sequence(), k);
      EXPECT_FALSE(nothing.place(0));
    }
  }
}

TEST(CaptureOutputs, TheSequenceGoesOnAfterARebind) {
  OutputOptions options;
  options.first_sequence = 7;
  Outputs outputs = make_outputs(OutputMode::Ring, options);
  EXPECT_EQ(replay(outputs, {1, 1}).sequence(), 7U);
  EXPECT_EQ(replay(outputs, {1, 1}).sequence(), 8U);
}

TEST(CaptureOutputs, TheCallerOwnsItsStorage) {
  Outputs outputs = make_outputs(OutputMode::Caller);
  const Placement a = host_place(), b = host_place();
  const OutputHandle r2 = replay(outputs, {2, 2}, std::array{a});
  const OutputHandle r3 = replay(outputs, {3, 3}, std::array{b});
  EXPECT_EQ(*floats(a), 4);
  EXPECT_EQ(*floats(b), 6);
  EXPECT_EQ(*read(r2), 4);
  EXPECT_EQ(*read(r3), 6);
  // Into the same again: the caller has decided.
  const OutputHandle r4 = replay(outputs, {4, 4}, std::array{a});
  EXPECT_EQ(*read(r2), 8);
  EXPECT_FALSE(r2.is_stale());

  for (const std::vector<Placement>& wrong :
       {std::vector<Placement>{}, std::vector<Placement>{a, b},
        std::vector<Placement>{host_place(8)}, std::vector<Placement>{Placement{}},
        std::vector<Placement>{{a.memory, 2, 4}}, std::vector<Placement>{{a.memory, 1ULL << 63, 4}},
        std::vector<Placement>{{a.memory, 0, 8}}}) {
    const auto turn = outputs.begin(kNoWait, wrong);
    ASSERT_FALSE(turn);
    EXPECT_EQ(turn.error().reason(), "OutputMismatch");
  }
}

TEST(CaptureOutputs, ACallersMemoryIsLetGoWithItsHandle) {
  Outputs outputs = make_outputs(OutputMode::Caller);
  Placement mine = host_place();
  std::weak_ptr<runtime::Memory> watch = mine.memory;
  {
    const OutputHandle result = replay(outputs, {1, 1}, std::array{mine});
    const OutputHandle second = result;
    mine = {};
    EXPECT_EQ(*read(second), 2);
  }
  EXPECT_TRUE(watch.expired());
}

TEST(CaptureOutputs, APinHoldsTheRingUpWithinLimits) {
  OutputOptions options;
  options.ring_size = 2;
  Outputs outputs = make_outputs(OutputMode::Ring, options);
  const OutputHandle r1 = replay(outputs, {1, 1});
  std::optional<OutputPin> pin = std::move(r1.pin()).value();
  const OutputHandle r2 = replay(outputs, {2, 2});
  for (int i = 0; i < 2; ++i) {
    const auto turn = outputs.begin({1'000'000, 0});
    ASSERT_FALSE(turn);
    EXPECT_EQ(turn.error().code(), ErrorCode::Timeout);
    EXPECT_EQ(turn.error().reason(), "OutputPinned");
  }
  // Nothing changed: no number was used up and no result is gone.
  EXPECT_EQ(outputs.next_sequence(), 3U);
  EXPECT_EQ(*read(r1), 2);
  EXPECT_EQ(*read(r2), 4);
  // A pin that another thread drops lets the replay go on.
  std::atomic<bool> is_begun{false};
  std::thread reader([&] {
    while (!is_begun.load()) std::this_thread::yield();
    pin.reset();
  });
  is_begun = true;
  auto turn = outputs.begin(kLong);
  reader.join();
  ASSERT_TRUE(turn);
  EXPECT_EQ(turn->sequence(), 3U);
  expect_stale(r1);
}

TEST(CaptureOutputs, AFailedReplayLeavesNoResult) {
  OutputOptions options;
  options.ring_size = 2;
  Outputs outputs = make_outputs(OutputMode::Ring, options);
  const OutputHandle r1 = replay(outputs, {1, 1});
  const OutputHandle r2 = replay(outputs, {2, 2});
  {
    OutputTurn turn = outputs.begin(kNoWait).value();
    *floats(turn.places()[0]) = 99;
  }
  expect_stale(r1);
  EXPECT_EQ(*read(r2), 4);
  const OutputHandle r4 = replay(outputs, {4, 4});
  EXPECT_EQ(r4.sequence(), 4U);
  EXPECT_EQ(*read(r4), 8);
  expect_stale(r2);
}

TEST(CaptureOutputs, StorageThatADeviceMayStillWriteIsNotUsedAgain) {
  for (const OutputMode mode : {OutputMode::Copy, OutputMode::Ring}) {
    OutputOptions options;
    options.ring_size = 1;
    options.max_sets = 1;
    Outputs outputs = make_outputs(mode, options);
    OutputTurn turn = outputs.begin(kNoWait).value();
    const runtime::Memory* const lost = turn.places()[0].memory.get();
    float* const still_written = floats(turn.places()[0]);
    std::move(turn).abandon();
    *still_written = 5;  // the late device; the memory is kept
    const OutputHandle next = replay(outputs, {1, 1});
    EXPECT_NE(next.place(0)->memory.get(), lost);
    EXPECT_EQ(*read(next), 2);
  }
}

TEST(CaptureOutputs, APoolGivesStorageAgainAndIsBounded) {
  OutputOptions options;
  options.max_sets = 3;
  int allocations = 0;
  options.allocate = [&](int output, uint64_t size_bytes) {
    EXPECT_EQ(output, 0);
    ++allocations;
    return allocate_host_memory("CPU", size_bytes);
  };
  Outputs outputs = make_outputs(OutputMode::Copy, options);
  for (int i = 0; i < 100; ++i) {
    const OutputHandle one = replay(outputs, {1, 1});
    const OutputHandle two = replay(outputs, {2, 2});
    EXPECT_EQ(*read(one), 2);
    EXPECT_EQ(*read(two), 4);
  }
  EXPECT_EQ(allocations, 2);
  EXPECT_EQ(outputs.set_count(), 2U);
  {
    std::vector<OutputHandle> held;
    for (int i = 0; i < 3; ++i) held.push_back(replay(outputs, {1, 1}));
    const auto turn = outputs.begin(kNoWait);
    ASSERT_FALSE(turn);
    EXPECT_EQ(turn.error().code(), ErrorCode::OutOfMemory);
    EXPECT_EQ(turn.error().reason(), "OutputPoolFull");
    EXPECT_EQ(outputs.release_idle(), 0U);
    held.erase(held.begin());
    EXPECT_EQ(outputs.release_idle(), sizeof(float));
    EXPECT_EQ(outputs.release_idle(), 0U);
    EXPECT_EQ(*read(held[0]), 2);
  }
  EXPECT_EQ(outputs.release_idle(), 2 * sizeof(float));
  EXPECT_EQ(*read(replay(outputs, {5, 5})), 10);
}

TEST(CaptureOutputs, AnAllocationThatFailsIsReportedAndTriedAgain) {
  OutputOptions options;
  bool is_full = true;
  options.allocate = [&](int, uint64_t size_bytes) -> Result<runtime::MemoryRef> {
    if (is_full) return Error(ErrorCode::OutOfMemory, "The heap is full.");
    return allocate_host_memory("CPU", size_bytes);
  };
  Outputs outputs = make_outputs(OutputMode::Copy, options);
  EXPECT_EQ(outputs.begin(kNoWait).error().code(), ErrorCode::OutOfMemory);
  is_full = false;
  EXPECT_EQ(*read(replay(outputs, {1, 1})), 2);
}

TEST(CaptureOutputs, ProofIsAskedOnceBeforeTheFirstRead) {
  int asked = 0;
  bool is_lost = true;
  OutputOptions options;
  options.make_readable = [&](uint64_t sequence, int output, const Placement& at,
                              const runtime::WaitLimits&) -> Result<runtime::DataReadable> {
    ++asked;
    EXPECT_EQ(sequence, 1U);
    EXPECT_EQ(output, 0);
    if (is_lost) return Error(ErrorCode::DeviceLost, "The device is gone.", "DeviceUnavailable");
    const runtime::MemoryBytes bytes{at.memory.get(), at.offset_bytes,
                                     at.offset_bytes + at.size_bytes};
    return runtime::DataReadable::prove(bytes, {}, {}).value();
  };
  Outputs outputs = make_outputs(OutputMode::Ring, options);
  const OutputHandle result = replay(outputs, {1, 1});
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(read(result).error().reason(), "DeviceUnavailable");
  is_lost = false;
  EXPECT_EQ(*read(result), 2);
  EXPECT_EQ(*read(result), 2);
  EXPECT_EQ(asked, 2);
}

TEST(CaptureOutputs, HandlesOutliveTheirCapture) {
  std::optional<Outputs> outputs = make_outputs(OutputMode::Copy);
  const OutputHandle result = replay(*outputs, {1, 1});
  const OutputPin pin = result.pin().value();
  outputs.reset();
  EXPECT_EQ(*read(result), 2);
  EXPECT_EQ(pin.bytes(0, kNoWait)->size(), sizeof(float));
}

TEST(CaptureOutputs, BadOptionsAreRefused) {
  OutputOptions ring;
  ring.mode = OutputMode::Ring;
  ring.ring_size = 0;
  OutputOptions copy;
  copy.mode = OutputMode::Copy;
  copy.max_sets = 0;
  OutputOptions borrow;  // without storage
  OutputOptions small;
  small.borrowed = {host_place(2)};
  OutputOptions zero;
  zero.mode = OutputMode::Copy;
  zero.first_sequence = 0;
  for (const OutputOptions& options : {ring, copy, borrow, small, zero}) {
    const auto made = Outputs::create({{"sum", sizeof(float)}}, options);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), ErrorCode::InvalidArgument);
  }
  Outputs outputs = make_outputs(OutputMode::Copy);
  const OutputHandle result = replay(outputs, {1, 1});
  std::array<std::byte, 8> wide{};
  EXPECT_FALSE(result.read(0, wide, kNoWait));
  EXPECT_FALSE(result.read(1, std::span(wide).first(4), kNoWait));
  EXPECT_FALSE(result.read(-1, std::span(wide).first(4), kNoWait));
}

// What each mode promises, told by a list of all that was ever written.
TEST(CaptureOutputs, RandomOrdersOfReplaysAndDropsKeepThePromise) {
  for (const OutputMode mode : {OutputMode::Borrow, OutputMode::Copy, OutputMode::Ring}) {
    std::mt19937_64 rng(5);
    OutputOptions options;
    options.ring_size = 3;
    options.max_sets = 5;
    Outputs outputs = make_outputs(mode, options);
    std::vector<std::pair<OutputHandle, float>> held;
    uint64_t started = 0;
    for (int step = 0; step < 3000; ++step) {
      const bool is_full = mode == OutputMode::Copy && [&] {
        std::set<uint64_t> alive;
        for (const auto& [handle, value] : held) alive.insert(handle.sequence());
        return alive.size() == 5;
      }();
      switch (rng() % 4) {
        case 0:
        case 1: {
          auto turn = outputs.begin(kNoWait);
          ASSERT_EQ(turn.has_value(), !is_full);
          if (is_full) break;
          EXPECT_EQ(turn->sequence(), ++started);
          if (rng() % 8 == 0) break;  // it fails
          const auto value = static_cast<float>(rng() % 1000);
          *floats(turn->places()[0]) = value;
          held.emplace_back(std::move(*turn).finish(), value);
          break;
        }
        case 2:
          if (!held.empty()) held.erase(held.begin() + static_cast<long>(rng() % held.size()));
          break;
        default:
          if (!held.empty()) held.push_back(held[rng() % held.size()]);
          break;
      }
      if (held.size() > 20) held.erase(held.begin());
      for (const auto& [handle, value] : held) {
        const uint64_t lasts = mode == OutputMode::Borrow ? 1 : 3;
        const bool is_valid = mode == OutputMode::Copy || handle.sequence() + lasts > started;
        ASSERT_EQ(!handle.is_stale(), is_valid);
        if (is_valid) {
          ASSERT_EQ(*read(handle), value);
        }
      }
    }
  }
}

TEST(CaptureOutputs, ReadersInOtherThreadsSeeWholeResults) {
  OutputOptions options;
  options.mode = OutputMode::Ring;
  options.ring_size = 2;
  Outputs outputs = Outputs::create({{"frame", 4096}}, options).value();
  std::mutex mutex;
  std::optional<OutputHandle> newest;
  std::atomic<bool> is_over{false};
  std::vector<std::thread> readers;
  std::atomic<int64_t> reads{0};
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      std::array<std::byte, 4096> frame{};
      while (!is_over.load()) {
        std::optional<OutputHandle> handle;
        {
          const std::lock_guard lock(mutex);
          handle = newest;
        }
        if (!handle || !handle->read(0, frame, kNoWait)) continue;
        for (const std::byte value : frame) {
          ASSERT_EQ(std::to_integer<uint64_t>(value), handle->sequence() % 251);
        }
        ++reads;
      }
    });
  }
  for (int i = 0; i < 3000 || reads.load() < 10; ++i) {
    auto turn = outputs.begin(kLong);
    ASSERT_TRUE(turn);
    const auto value = static_cast<int>(turn->sequence() % 251);
    std::memset(turn->places()[0].memory->host(), value, 4096);
    const std::lock_guard lock(mutex);
    newest = std::move(*turn).finish();
  }
  is_over = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace ignis::exec
