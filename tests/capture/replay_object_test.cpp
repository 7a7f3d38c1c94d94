// The replay of a capture (capture spec 5, 6, 10, 14), on simulated devices.

#include "tests/capture/capture_rig.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

namespace ignis::testing {
namespace {

using exec::OutputMode;

/// new = cat(window[1:], frame), returned as it is and its first item apart. Four items.
struct WindowRig : CaptureRig {
  explicit WindowRig(OutputMode mode = OutputMode::Borrow) {
    parts.output_mode = mode;
    const int shift = add_program("shift", 3, [](std::span<std::byte* const> buffers) {
      for (int i = 0; i < 3; ++i) floats(buffers[0])[i] = floats(buffers[1])[i + 1];
      floats(buffers[0])[3] = floats(buffers[2])[0];
    });
    const int first = add_program("first", 2, [](std::span<std::byte* const> buffers) {
      floats(buffers[0])[0] = floats(buffers[1])[0];
    });
    const exec::BufferView window = in("window", 4), frame = in("frame", 1);
    const exec::BufferView made = out("new", 4), head = out("head", 1);
    call(shift, made, {window, frame});
    call(first, head, {made});
  }
};

/// out = sum of x, two items.
struct SumRig : CaptureRig {
  explicit SumRig(OutputMode mode = OutputMode::Borrow, vdev::DeviceSpec spec = {})
      : CaptureRig(1, std::move(spec)) {
    parts.output_mode = mode;
    const int sum = add_program("sum", 2, [](std::span<std::byte* const> buffers) {
      floats(buffers[0])[0] = floats(buffers[1])[0] + floats(buffers[1])[1];
    });
    const exec::BufferView x = in("x", 2);
    call(sum, out("sum", 1), {x});
  }
};

TEST(Replay, RP1_AnOutputIsFedBack) {
  for (const auto mode : {OutputMode::Borrow, OutputMode::Ring, OutputMode::Copy}) {
    for (const bool copies : {true, false}) {
      WindowRig rig(mode);
      rig.copies_to_shadows = copies;
      const auto replay = rig.replay();
      exec::Placement window = rig.block({-4, -3, -2, -1});
      const exec::Placement frame = rig.block({0});
      std::vector<exec::OutputHandle> kept;
      for (int round = 0; round < 8; ++round) {
        write_floats(frame, {static_cast<float>(round)});
        const exec::OutputHandle result = run(rig, *replay, {window, frame});
        ASSERT_EQ(read(result, 1, 1)[0], static_cast<float>(round - 3));
        window = result.place(0).value();
        kept.assign(1, result);
      }
      EXPECT_EQ(replay->counts().shadow_copies, mode == OutputMode::Borrow ? 7U : 0U);
      EXPECT_EQ(replay->counts().links, 1U);
    }
  }
}

TEST(Replay, RP2_HalfOfAFedBackBufferIsTheNewOneOfTheRoundBefore) {
  constexpr int64_t kCount = int64_t{1} << 20;
  CaptureRig rig;
  const int join = rig.add_program("join", 3, [](std::span<std::byte* const> buffers) {
    float* to = floats(buffers[0]);
    for (int64_t i = 0; i < kCount / 2; ++i) {
      to[i] = floats(buffers[1])[kCount / 2 + i];
      to[kCount / 2 + i] = floats(buffers[2])[0];
    }
  });
  const exec::BufferView before = rig.in("before", kCount), x = rig.in("x", 1);
  rig.call(join, rig.out("joined", kCount), {before, x});
  const auto replay = rig.replay();
  exec::Placement joined = rig.block(std::vector<float>(kCount));
  for (int round = 0; round < 10; ++round) {
    const exec::OutputHandle result =
        run(rig, *replay, {joined, rig.block({static_cast<float>(round + 1)})});
    const std::vector<float> values = read(result, 0, kCount);
    const std::vector<float> half(values.begin(), values.begin() + kCount / 2);
    ASSERT_EQ(half, std::vector<float>(kCount / 2, static_cast<float>(round)));
    joined = result.place(0).value();
  }
}

TEST(Replay, RP3_IntermediatesAreFreedAndMadeAnew) {
  for (const auto mode : {OutputMode::Borrow, OutputMode::Ring, OutputMode::Copy}) {
    CaptureRig rig;
    rig.parts.output_mode = mode;
    const int twice = rig.add_program("twice", 2, float_map(5, [](float x) { return 2 * x; }));
    const int add = rig.add_program("add", 2, [](std::span<std::byte* const> buffers) {
      constexpr std::array<float, 5> kAdded = {1, 24, 23, 45, 1};
      for (size_t i = 0; i < 5; ++i) floats(buffers[0])[i] = floats(buffers[1])[i] + kAdded[i];
    });
    const int sum = rig.add_program("sum", 2, [](std::span<std::byte* const> buffers) {
      float total = 0;
      for (size_t i = 0; i < 5; ++i) total += floats(buffers[1])[i];
      floats(buffers[0])[0] = total;
    });
    const exec::BufferView x = rig.in("x", 5);
    const exec::BufferView result = rig.out("sum", 1);
    const exec::BufferView t1 = rig.temporary("t1", 5), t2 = rig.temporary("t2", 5);
    rig.call(twice, t1, {x});
    rig.call(add, t2, {t1});
    rig.call(sum, result, {t2});
    const auto replay = rig.replay();
    const auto call = [&](float i) {
      const exec::OutputHandle made = run(rig, *replay, {rig.block({i, 1, 2, 3, 4})});
      return read(made, 0, 1)[0];
    };
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(call(static_cast<float>(i)), 114 + 2.0F * static_cast<float>(i));
    const exec::OutputHandle last = run(rig, *replay, {rig.block({0, 1, 2, 3, 4})});
    const uint64_t in_use = rig.world.memory_in_use_bytes("G");
    EXPECT_GE(replay->free_intermediates(kLong).value(), 44U);
    EXPECT_LT(rig.world.memory_in_use_bytes("G"), in_use);
    EXPECT_EQ(last.is_stale(), mode != OutputMode::Copy);
    EXPECT_EQ(call(11), 136);
    EXPECT_EQ(replay->counts().links, 2U);
    EXPECT_GE(replay->free_intermediates(kLong).value(), 44U);
    EXPECT_EQ(replay->free_intermediates(kLong).value(), 0U);
    const exec::OutputHandle next = run(rig, *replay, {rig.block({11, 1, 2, 3, 4})});
    EXPECT_EQ(read(next, 0, 1)[0], 136);
    EXPECT_GT(next.sequence(), last.sequence() + 1) << "numbers go on";
  }
}

TEST(Replay, RP4_WhatIsUpdatedInPlaceIsNotFreed) {
  CaptureRig rig;
  const int add = rig.add_program("add", 3, [](std::span<std::byte* const> buffers) {
    floats(buffers[0])[0] = floats(buffers[1])[0] + floats(buffers[2])[0];
  });
  const exec::BufferView y = rig.in("y", 1), x = rig.state("x", {1});
  rig.call(add, x, {x, y});
  const exec::Placement at = rig.place_of(x);
  const auto replay = rig.replay();
  for (int i = 0; i < 5; ++i) run(rig, *replay, {rig.block({1})});
  EXPECT_EQ(read_floats(at, 1)[0], 6);
  EXPECT_EQ(replay->free_intermediates(kLong).value(), 0U);
  run(rig, *replay, {rig.block({2})});
  EXPECT_EQ(read_floats(at, 1)[0], 8);
  EXPECT_EQ(replay->captured()->implicit_state(), std::vector<std::string_view>{"x"});
}

TEST(Replay, RP5_InputsInNewStorageEachTime) {
  SumRig rig;
  const auto replay = rig.replay();
  for (int i = 0; i < 1000; ++i) {
    const auto x = static_cast<float>(i);
    const exec::OutputHandle result = run(rig, *replay, {rig.block({x, 1})});
    ASSERT_EQ(read(result, 0, 1)[0], x + 1);
  }
  EXPECT_EQ(replay->counts().links, 1U);
  EXPECT_EQ(rig.cache.counts().misses, 0U) << "captured schedules are in no cache";
}

TEST(Replay, RP7_AStuckDeviceIsATypedErrorWithinTheLimit) {
  constexpr int64_t kLimitNs = 100'000'000;
  for (const bool keeps : {true, false}) {
    SumRig rig(OutputMode::Ring);
    const auto replay = rig.replay();
    const exec::OutputHandle good = run(rig, *replay, {rig.block({1, 1})});
    rig.world.inject("G", {vdev::FaultKind::StuckSignal});
    const exec::Placement x = rig.block({2, 2});
    TestCall call(rig, {x});
    call.call.limits = {kLimitNs, kLimitNs};
    call.call.waits = keeps;
    const int64_t begin_ns = rig.world.clock().now_ns();
    Result<exec::OutputHandle> result = replay->run(call.call);
    if (!keeps) {
      // Submitted is not done: who reads the result learns it.
      ASSERT_TRUE(result);
      float value = 0;
      const Status status =
          result->read(0, std::as_writable_bytes(std::span(&value, 1)), {kLimitNs, kLimitNs});
      ASSERT_FALSE(status);
      result = status.error();
    }
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::DeviceLost) << result.error().to_string();
    const int64_t took_ns = rig.world.clock().now_ns() - begin_ns;
    EXPECT_GE(took_ns, kLimitNs);
    EXPECT_LE(took_ns, 2 * kLimitNs);
    EXPECT_EQ(run_error(rig, *replay, {x}).reason(), "DeviceUnavailable");
    EXPECT_EQ(read(good, 0, 1)[0], 2) << "what was complete before stays good";
  }
}

TEST(ReplayOutputs, OU2_BorrowedResultsAreStaleAfterTheNextReplay) {
  SumRig rig;
  const auto replay = rig.replay();
  const exec::OutputHandle r2 = run(rig, *replay, {rig.block({2, 2})});
  const uint64_t second = r2.sequence();
  const exec::Placement at = r2.place(0).value();
  const exec::OutputHandle r3 = run(rig, *replay, {rig.block({3, 3})});
  EXPECT_EQ(read(r3, 0, 1)[0], 6);
  float value = 0;
  EXPECT_EQ(r2.read(0, std::as_writable_bytes(std::span(&value, 1)), kLong).error().reason(),
            "StaleOutput");
  // OU-6: the same storage, rising numbers.
  EXPECT_EQ(r3.sequence(), second + 1);
  EXPECT_EQ(r3.place(0).value().memory, at.memory);
  EXPECT_EQ(r3.place(0).value().offset_bytes, at.offset_bytes);
}

TEST(ReplayOutputs, OU3_CopiesStay) {
  SumRig rig(OutputMode::Copy);
  const auto replay = rig.replay();
  const exec::OutputHandle r2 = run(rig, *replay, {rig.block({2, 2})});
  const exec::OutputHandle r3 = run(rig, *replay, {rig.block({3, 3})});
  EXPECT_EQ(read(r3, 0, 1)[0], 6);
  EXPECT_EQ(read(r2, 0, 1)[0], 4);
}

TEST(ReplayOutputs, OU4_ARingKeepsTheLastThree) {
  SumRig rig(OutputMode::Ring);
  rig.parts.ring_size = 3;
  const auto replay = rig.replay();
  std::vector<exec::OutputHandle> results;
  for (int i = 0; i < 5; ++i) {
    results.push_back(run(rig, *replay, {rig.block({static_cast<float>(i), 1})}, i % 2 == 0));
  }
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(results[i].is_stale(), i < 2);
    if (i >= 2) {
      EXPECT_EQ(read(results[i], 0, 1)[0], static_cast<float>(i + 1));
    }
  }
}

TEST(ReplayOutputs, TheCallersStorageIsWrittenWhereItLies) {
  SumRig rig(OutputMode::Caller);
  const auto replay = rig.replay();
  const exec::Placement mine = rig.block({0, 7});
  TestCall call(rig, {rig.block({4, 5})});
  const std::array<exec::Placement, 1> outputs = {{{mine.memory, 0, 4}}};
  call.call.outputs = outputs;
  const exec::OutputHandle result = replay->run(call.call).value();
  EXPECT_EQ(read_floats(mine, 2), (std::vector<float>{9, 7}));
  EXPECT_EQ(run_error(rig, *replay, {rig.block({4, 5})}).reason(), "OutputMismatch");
}

TEST(ReplaySignature, SG10_FreshBuffersOfEqualDescription) {
  SumRig rig;
  const auto replay = rig.replay();
  EXPECT_EQ(read(run(rig, *replay, {rig.block({2, 2})}), 0, 1)[0], 4);
  EXPECT_EQ(read(run(rig, *replay, {rig.block({2, 5})}), 0, 1)[0], 7);
}

TEST(ReplaySignature, SG11_AFailedCheckChangesNothing) {
  SumRig rig;
  const auto replay = rig.replay();
  const exec::OutputHandle before = run(rig, *replay, {rig.block({2, 2})});
  SumRig wide;  // for its description: four items
  const std::array<exec::SymbolicNumber, 1> shape = {{{4}}};
  wide.described[0].size_bytes = {16};
  wide.described[0].base_bytes = 16;
  wide.described[0].shape = shape;
  const Error error = run_error(wide, *replay, {rig.block({1, 2, 3, 4})});
  EXPECT_EQ(error.reason(), "SignatureMismatch");
  EXPECT_NE(error.message().find("total bytes 8 -> 16"), std::string::npos) << error.message();
  EXPECT_EQ(read(before, 0, 1)[0], 4) << "it is good until the next replay starts";
  // What is described rightly and brought wrongly is no replay either.
  EXPECT_EQ(run_error(rig, *replay, {rig.block({1, 2, 3})}).reason(), "InputTooSmall");
  EXPECT_EQ(read(run(rig, *replay, {rig.block({1, 2})}), 0, 1)[0], 3);
  EXPECT_EQ(replay->counts().links, 1U);
}

TEST(ReplayGuards, AChangedHostValueIsNoReplay) {
  SumRig rig;
  rig.guards = {{"driver_side", std::string_view("left")}, {"model_size", int64_t{2}}};
  const auto replay = rig.replay();
  EXPECT_EQ(read(run(rig, *replay, {rig.block({1, 2})}), 0, 1)[0], 3);
  rig.guards[1].value = int64_t{3};
  EXPECT_EQ(run_error(rig, *replay, {rig.block({1, 2})}).reason(), "GuardMismatch");
}

TEST(ReplayVariables, EachRunBindsItsOwn) {
  CaptureRig rig;
  const int add = rig.add_program("add", 3, [](std::span<std::byte* const> buffers) {
    int64_t value = 0;
    std::memcpy(&value, buffers[2], sizeof value);
    floats(buffers[0])[0] = floats(buffers[1])[0] + static_cast<float>(value);
  });
  const exec::BufferView x = rig.in("x", 1), y = rig.out("y", 1);
  const exec::BufferView cell = rig.buffer("i", {"CPU"}, exec::kVariableBytes);
  rig.schedule.buffers.back().variable = 0;
  rig.call(add, y, {x, cell});
  std::array<exec::VariableBinding, 1> variables = {{{"i", 2, 1, 10}}};
  rig.variables = variables;
  const auto replay = rig.replay();
  for (const int64_t i : {2, 7, 10}) {
    variables[0].value = i;
    EXPECT_EQ(read(run(rig, *replay, {rig.block({1})}), 0, 1)[0], 1 + static_cast<float>(i));
  }
  variables[0].value = 11;
  EXPECT_EQ(run_error(rig, *replay, {rig.block({1})}).reason(), "SignatureMismatch");
}

TEST(Replay, ReadyBeforeTheFirstFrame) {
  SumRig rig;
  const auto replay = rig.replay();
  EXPECT_EQ(replay->counts().links, 0U);
  const exec::PrepareReport report = replay->prepare(kLong).value();
  EXPECT_TRUE(report.made_dry_run);
  EXPECT_EQ(replay->counts().links, 1U);
  EXPECT_EQ(replay->counts().replays, 0U);
  EXPECT_FALSE(replay->prepare(kLong).value().made_dry_run);
  const exec::OutputHandle result = run(rig, *replay, {rig.block({1, 2})});
  EXPECT_EQ(result.sequence(), 1U) << "a dry run has no number";
  EXPECT_EQ(read(result, 0, 1)[0], 3);
  EXPECT_EQ(replay->counts().links, 1U);
}

/// out = once + x, and once = 2 w.
struct OnceRig : CaptureRig {
  exec::BufferView once;
  explicit OnceRig(bool knows_bytes, vdev::DeviceSpec spec = {}) : CaptureRig(1, std::move(spec)) {
    const int twice = add_program("twice", 2, float_map(1, [](float x) { return 2 * x; }));
    const int add = add_program("add", 3, [](std::span<std::byte* const> buffers) {
      floats(buffers[0])[0] = floats(buffers[1])[0] + floats(buffers[2])[0];
    });
    const exec::BufferView x = in("x", 1), y = out("y", 1);
    const exec::BufferView w = held("w", exec::HeldKind::Weights,
                                    knows_bytes ? std::vector<float>{5} : std::vector<float>(), 1);
    once = held("once", exec::HeldKind::OneTime, {}, 1);
    call(twice, once, {w});
    call(add, y, {once, x});
    one_time_calls = {0};
  }
};

TEST(Replay, OneTimeCallsRunBeforeTheFirstReplay) {
  OnceRig rig(true);
  const auto replay = rig.replay();
  EXPECT_EQ(read(run(rig, *replay, {rig.block({1})}), 0, 1)[0], 11);
  EXPECT_EQ(read(run(rig, *replay, {rig.block({2})}), 0, 1)[0], 12);
  // Weights that nobody has bytes of have to be supplied.
  OnceRig unknown(false);
  const auto lost = unknown.replay();
  EXPECT_EQ(run_error(unknown, *lost, {unknown.block({1})}).reason(), "StateLost");
}

TEST(Replay, SE6_AReplacedScheduleRunsThoughTheOldOneWasLinked) {
  for (const bool touches : {true, false}) {  // SE-7: not
    SumRig rig;
    const auto replay = rig.replay();
    if (touches) {
      EXPECT_EQ(read(run(rig, *replay, {rig.block({1, 2})}), 0, 1)[0], 3);
    }
    const exec::CapturedRef old = replay->captured();
    const int product = rig.add_program("product", 2, [](std::span<std::byte* const> buffers) {
      floats(buffers[0])[0] = floats(buffers[1])[0] * floats(buffers[1])[1];
    });
    rig.schedule.calls[0].program = product;
    const exec::CapturedRef other = rig.capture();
    const exec::CapturedRef replaced = old->with_schedule(other->queues).value();
    ASSERT_TRUE(replay->use(replaced));
    EXPECT_EQ(read(run(rig, *replay, {rig.block({4, 2})}), 0, 1)[0], 8);
    EXPECT_EQ(replay->counts().links, touches ? 2U : 1U);
    EXPECT_NE(replay->captured(), old);
    // Another capture is refused.
    WindowRig window;
    EXPECT_EQ(replay->use(window.capture()).error().reason(), "OtherCapture");
  }
}

// A camera's slots are leased to the replays that read them.
TEST(ReplayInCar, CI1_ASlotIsNotRefilledBeforeItsReplayIsReadable) {
  struct Slot {
    alignas(4096) std::array<float, 64> pixels{};
    std::weak_ptr<const void> lease;
  };
  std::vector<Slot> slots(4);  // outlives the rig, whose last replay is read out of it
  CaptureRig rig;
  rig.parts.output_mode = OutputMode::Ring;
  rig.parts.ring_size = 3;
  rig.device = "CPU";
  const exec::BufferView frame = rig.in("frame", 64);
  rig.device = "G";
  const exec::BufferView here = rig.temporary("here", 64), mean = rig.out("mean", 1);
  const int average = rig.add_program("average", 2, [](std::span<std::byte* const> buffers) {
    float sum = 0;
    for (int i = 0; i < 64; ++i) sum += floats(buffers[1])[i];
    floats(buffers[0])[0] = sum / 64;
  });
  rig.copy(here, frame);
  rig.call(average, mean, {here});
  const auto replay = rig.replay();

  int refused = 0;
  std::map<uint64_t, float> expected;
  std::vector<exec::OutputHandle> results;
  for (int i = 0; i < 100; ++i) {
    Slot& slot = slots[static_cast<size_t>(i) % 4];
    // The camera comes a slot too early: the one before is still read.
    if (i > 0 && !slots[static_cast<size_t>(i - 1) % 4].lease.expired()) ++refused;
    while (!slot.lease.expired()) {
      ++refused;
      rig.world.pass(100'000);
      ASSERT_TRUE(read(results.back(), 0, 1).size() == 1);
    }
    slot.pixels.fill(static_cast<float>(i));
    const std::shared_ptr<const void> lease = std::make_shared<int>(i);
    slot.lease = lease;
    const auto memory = std::make_shared<exec::ExternalMemory>(
        "CPU", reinterpret_cast<std::byte*>(slot.pixels.data()), sizeof slot.pixels, lease);
    const exec::OutputHandle result = run(rig, *replay, {whole(memory)}, /*waits=*/false);
    expected[result.sequence()] = static_cast<float>(i);
    results.push_back(result);
    if (results.size() < 3) continue;
    const exec::OutputHandle& done = results[results.size() - 2];
    ASSERT_EQ(read(done, 0, 1)[0], expected[done.sequence()]) << "a torn frame";
  }
  EXPECT_GE(refused, 99);
}

TEST(ReplayInCar, CI2_ARingOfAnotherPitchAtTheSameAddressIsRefused) {
  SumRig rig;
  const std::string captured = exec::frame_layout("NV12", 1928, 1208, 1920);
  const std::string now = exec::frame_layout("NV12", 1928, 1208, 2048);
  rig.described[0].layout = captured;
  const auto replay = rig.replay();
  const exec::Placement at = rig.block({1, 2});
  EXPECT_EQ(read(run(rig, *replay, {at}), 0, 1)[0], 3);
  rig.described[0].layout = now;
  const Error error = run_error(rig, *replay, {at});
  EXPECT_EQ(error.reason(), "SignatureMismatch");
  EXPECT_NE(error.message().find("layout"), std::string::npos) << error.message();
}

// IGNIS_TEST_REPLAYS=1000000 runs longer.
TEST(ReplaySoak, AnswersAndMemoryStayAsTheyAre) {
  const char* text = std::getenv("IGNIS_TEST_REPLAYS");
  const int count = text == nullptr ? 100'000 : std::atoi(text);
  for (const auto mode : {OutputMode::Ring, OutputMode::Copy}) {
    SumRig rig(mode);
    const auto replay = rig.replay();
    std::vector<exec::Placement> inputs;
    for (int i = 0; i < 7; ++i) inputs.push_back(rig.block({0, 1}));
    uint64_t in_use = 0;
    for (int i = 0; i < count / 2; ++i) {
      const exec::Placement& x = inputs[static_cast<size_t>(i) % inputs.size()];
      // The replay that read it last is complete: every seventh waits.
      write_floats(x, {static_cast<float>(i % 1000), 1});
      const exec::OutputHandle result = run(rig, *replay, {x}, i % 5 == 0);
      ASSERT_EQ(read(result, 0, 1)[0], static_cast<float>(i % 1000 + 1));
      if (i == 100) in_use = rig.world.memory_in_use_bytes("G");
    }
    EXPECT_EQ(rig.world.memory_in_use_bytes("G"), in_use);
    EXPECT_EQ(replay->counts().links, 1U);
    EXPECT_EQ(replay->counts().replays, static_cast<uint64_t>(count / 2));
  }
}

TEST(ReplayThreads, CallersFollowEachOther) {
  SumRig rig(OutputMode::Copy);
  const auto replay = rig.replay();
  std::vector<std::vector<exec::Placement>> inputs(4);
  for (std::vector<exec::Placement>& of : inputs) {
    for (int i = 0; i < 25; ++i) of.push_back(rig.block({static_cast<float>(i), 1}));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < inputs.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < inputs[t].size(); ++i) {
        TestCall call(rig, {inputs[t][i]});
        const Result<exec::OutputHandle> result = replay->run(call.call);
        float value = 0;
        if (!result || !result->read(0, std::as_writable_bytes(std::span(&value, 1)), kLong) ||
            value != static_cast<float>(i + 1)) {
          ++wrong;
        }
        if (i % 8 == 0 && !replay->free_intermediates(kLong)) ++wrong;
        if (replay->counts().replays == 0) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(replay->counts().replays, 100U);
  EXPECT_EQ(replay->next_sequence(), 101U);
}

}  // namespace
}  // namespace ignis::testing
