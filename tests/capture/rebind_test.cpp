// Device loss and what follows (capture spec 12), on simulated devices.

#include "tests/capture/capture_rig.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace ignis::testing {
namespace {

/// state = state + x; out = state * w. One item each; w is 3.
struct StateRig : CaptureRig {
  exec::BufferView state_view;

  explicit StateRig(bool keeps_memory = true, int copy_queues = 2)
      : CaptureRig(copy_queues, spec(keeps_memory)) {
    const int add = add_program("add", 3, [](std::span<std::byte* const> buffers) {
      floats(buffers[0])[0] = floats(buffers[1])[0] + floats(buffers[2])[0];
    });
    const int times = add_program("times", 3, [](std::span<std::byte* const> buffers) {
      floats(buffers[0])[0] = floats(buffers[1])[0] * floats(buffers[2])[0];
    });
    const exec::BufferView x = in("x", 1), y = out("y", 1);
    state_view = state("state", {10});
    const exec::BufferView w = held("w", exec::HeldKind::Weights, {3});
    call(add, state_view, {state_view, x});
    call(times, y, {state_view, w});
  }
  static vdev::DeviceSpec spec(bool keeps_memory) {
    vdev::DeviceSpec made;
    made.keeps_memory = keeps_memory;
    return made;
  }
  /// Out and in again: whatever lay on the device is lost.
  void unplug() {
    world.inject("G", {vdev::FaultKind::RemovedDuringWait, 1, 1});
    world.pass(1000);
    world.heal("G");
    EXPECT_TRUE(world.find("G")->reopen());
    describe_again();
  }
};

std::span<const std::byte> bytes_of(const float& value) {
  return std::as_bytes(std::span(&value, 1));
}
std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

TEST(Rebind, RC1_RC2_AfterUnplugAndPlug) {
  StateRig rig;
  const auto replay = rig.replay();
  EXPECT_EQ(read(run(rig, *replay, {rig.block({1})}), 0, 1)[0], 33);
  const exec::OutputHandle before = run(rig, *replay, {rig.block({1})});
  rig.unplug();
  EXPECT_EQ(run_error(rig, *replay, {rig.block({1})}).reason(), "StaleCapture");
  EXPECT_EQ(replay->prepare(kLong).error().reason(), "StaleCapture");

  const exec::RebindReport report = replay->rebind().value();
  EXPECT_EQ(report.lost_state, std::vector<std::string>{"state"});
  EXPECT_EQ(report.kept_bytes, 0U);
  EXPECT_EQ(report.uploaded.bytes, 4U) << "the weights";
  EXPECT_TRUE(before.is_stale());
  // State is never left with stale bytes.
  const Error lost = run_error(rig, *replay, {rig.block({1})});
  EXPECT_EQ(lost.reason(), "StateLost");
  EXPECT_NE(lost.message().find("'state'"), std::string::npos);
  EXPECT_EQ(replay->lost_state().value(), std::vector<std::string>{"state"});
  EXPECT_EQ(replay->supply_state("none", bytes_of(1.0F)).error().reason(), "NoSuchState");
  EXPECT_EQ(replay->supply_state("state", {}).error().reason(), "StateMismatch");
  ASSERT_TRUE(replay->supply_state("state", bytes_of(11.0F)));
  const exec::OutputHandle result = run(rig, *replay, {rig.block({1})});
  EXPECT_EQ(read(result, 0, 1)[0], 36) << "as the second replay before the loss";
  EXPECT_EQ(result.sequence(), before.sequence() + 1) << "sequence numbers go on";
  EXPECT_EQ(read_floats(replay->held_place("state").value(), 1)[0], 12);
}

TEST(Rebind, MemoryThatIsWholeStays) {
  StateRig rig;
  const auto replay = rig.replay();
  const exec::Placement x = rig.block({1});
  EXPECT_EQ(read(run(rig, *replay, {x}), 0, 1)[0], 33);
  // Another user's hang, while nothing of this capture is under way.
  rig.world.find("G")->report_hang("somebody else's work");
  EXPECT_EQ(run_error(rig, *replay, {x}).reason(), "DeviceUnavailable");
  EXPECT_EQ(replay->rebind().error().reason(), "DeviceUnavailable");
  ASSERT_TRUE(rig.world.find("G")->reopen());
  rig.describe_again();
  const exec::RebindReport report = replay->rebind().value();
  EXPECT_EQ(report.kept_bytes, 8U);
  EXPECT_EQ(report.uploaded.bytes, 0U);
  EXPECT_TRUE(report.lost_state.empty());
  EXPECT_EQ(read(run(rig, *replay, {x}), 0, 1)[0], 36);
}

TEST(Rebind, StateThatAReplayWasWritingIsLost) {
  StateRig rig;
  const auto replay = rig.replay();
  run(rig, *replay, {rig.block({1})});
  rig.world.inject("G", {vdev::FaultKind::StuckSignal});
  TestCall call(rig, {rig.block({1})});
  call.call.limits = {1'000'000, 1'000'000};
  EXPECT_FALSE(replay->run(call.call));
  rig.world.heal("G");
  ASSERT_TRUE(rig.world.find("G")->reopen());
  rig.describe_again();
  EXPECT_EQ(replay->rebind().value().lost_state, std::vector<std::string>{"state"});
}

TEST(Rebind, RC3_ADeviceThatCanDoLessNeedsANewCapture) {
  StateRig rig;
  const auto replay = rig.replay();
  StateRig other(true, 1);
  other.start();
  exec::RebindOptions options;
  options.machine = other.machine;
  const Error error = replay->rebind(options).error();
  EXPECT_EQ(error.reason(), "NeedsRecapture");
  EXPECT_NE(error.message().find("copy queues 2 -> 1"), std::string::npos) << error.message();
  EXPECT_EQ(exec::Replay::create(replay->captured(), other.machine).error().reason(),
            "NeedsRecapture");
  EXPECT_EQ(read(run(rig, *replay, {rig.block({1})}), 0, 1)[0], 33) << "nothing has changed";
}

TEST(Rebind, RC4_NotWhileAReplayIsUnderWay) {
  StateRig rig;
  const auto replay = rig.replay();
  const exec::OutputHandle result = run(rig, *replay, {rig.block({1})}, /*waits=*/false);
  EXPECT_EQ(replay->rebind().error().reason(), "Busy");
  EXPECT_EQ(read(result, 0, 1)[0], 33);
  EXPECT_TRUE(replay->rebind());
}

TEST(Rebind, AnotherMachineWithSuchADevice) {
  StateRig rig, other;
  const auto replay = rig.replay();
  run(rig, *replay, {rig.block({1})});
  const exec::CapturedRef unused = other.capture();
  exec::RebindOptions options;
  options.machine = other.machine;
  const exec::RebindReport report = replay->rebind(options).value();
  EXPECT_EQ(report.lost_state, std::vector<std::string>{"state"});
  ASSERT_TRUE(replay->supply_state("state", bytes_of(1.0F)));
  EXPECT_EQ(read(run(other, *replay, {other.block({1})}), 0, 1)[0], 6);
}

/// y = x, whose four bytes are two values of another format.
struct HalvesRig : CaptureRig {
  explicit HalvesRig(DType dtype) : CaptureRig(2, StateRig::spec(true)) {
    const int copy = add_program("copy", 2, [](std::span<std::byte* const> buffers) {
      std::copy_n(buffers[1], 4, buffers[0]);
    });
    const exec::BufferView x = in("x", 1), y = out("y", 1);
    parts.outputs.back().dtype = dtype;
    call(copy, y, {x});
  }
};

TEST(Rebind, ReferencesHaveATolerance_WhateverTheFormat) {
  // 1 and 2, and 1 with the last bit set: 1 + 2^-10 and 1 + 2^-7; integers are equal or not.
  for (const auto& [dtype, low, high, step, is_near] :
       {std::tuple(DType::Float16, 0x3c00, 0x4000, 0.001, true),
        std::tuple(DType::BFloat16, 0x3f80, 0x4000, 0.008, true),
        std::tuple(DType::UInt16, 1000, 2000, 1.0, false)}) {
    SCOPED_TRACE(to_string(dtype));
    HalvesRig rig(dtype);
    const auto replay = rig.replay();
    const auto frame = [](int first, int second) {
      exec::ReferenceFrame made;
      const std::array<uint16_t, 2> values = {static_cast<uint16_t>(first),
                                              static_cast<uint16_t>(second)};
      const auto bytes = std::as_bytes(std::span(values));
      made.inputs = {{bytes.begin(), bytes.end()}};
      made.outputs = made.inputs;
      return made;
    };
    std::vector<exec::ReferenceFrame> frames = {frame(low, high), frame(high, low)};
    exec::RebindOptions options;
    options.references = frames;
    EXPECT_TRUE(replay->rebind(options));
    frames[1].outputs = frame(high, low + 1).outputs;
    const Error error = replay->rebind(options).error();
    EXPECT_EQ(error.reason(), "ReferenceMismatch");
    EXPECT_NE(error.message().find("element 1 of output 'y'"), std::string::npos)
        << error.message();
    frames[1].absolute = step;
    EXPECT_EQ(replay->rebind(options).has_value(), is_near);
  }
}

TEST(Rebind, ReferencesAreHeldAgainstBeforeItIsAvailable) {
  StateRig rig;
  const auto replay = rig.replay();
  run(rig, *replay, {rig.block({1})});
  rig.unplug();
  const auto frame = [](float state, float x, float y) {
    exec::ReferenceFrame made;
    made.inputs = {bytes_of(std::vector<float>{x})};
    made.outputs = {bytes_of(std::vector<float>{y})};
    made.state = {{"state", bytes_of(std::vector<float>{state})}};
    return made;
  };
  exec::RebindOptions options;
  const std::vector<exec::ReferenceFrame> one = {frame(1, 1, 6)};
  options.references = one;
  EXPECT_EQ(replay->rebind(options).error().reason(), "BadReference");
  std::vector<exec::ReferenceFrame> two = {frame(1, 1, 6), frame(2, 5, 22)};
  options.references = two;
  EXPECT_EQ(replay->rebind(options).error().reason(), "ReferenceMismatch");
  EXPECT_EQ(run_error(rig, *replay, {rig.block({1})}).reason(), "StaleCapture");
  two[1].absolute = 1;  // 21 within 1 of 22
  const exec::RebindReport report = replay->rebind(options).value();
  EXPECT_EQ(report.checked_frames, 2U);
  EXPECT_EQ(report.lost_state, std::vector<std::string>{"state"}) << "the frames left theirs";
  ASSERT_TRUE(replay->supply_state("state", bytes_of(0.0F)));
  EXPECT_EQ(read(run(rig, *replay, {rig.block({1})}), 0, 1)[0], 3);
}

TEST(Rebind, AFailedReplayLeavesNoStateThatReadsAsGood) {
  StateRig rig;
  const auto replay = rig.replay();
  run(rig, *replay, {rig.block({1})});
  // Late, not lost: the device comes to its end after the caller has given up.
  rig.world.inject("G", {vdev::FaultKind::LateSignal, 1, 50'000'000});
  TestCall call(rig, {rig.block({1})});
  call.call.limits = {10'000'000, 0};
  EXPECT_EQ(replay->run(call.call).error().code(), ErrorCode::Timeout);
  rig.world.heal("G");
  rig.world.pass(100'000'000);
  EXPECT_EQ(run_error(rig, *replay, {rig.block({1})}).reason(), "StateLost");
  ASSERT_TRUE(replay->supply_state("state", bytes_of(10.0F)));
  EXPECT_EQ(read(run(rig, *replay, {rig.block({1})}), 0, 1)[0], 33);
}

}  // namespace
}  // namespace ignis::testing
