// Replays allocate nothing once they are under way (capture spec RP-6, W-9).

#include "tests/capture/capture_rig.h"
#include "tests/support/count_allocations.h"

#include <array>
#include <optional>
#include <string>

namespace ignis::testing {
namespace {

using exec::OutputMode;

/// next = 2 * last + x, on a device or the host.
struct StepRig : CaptureRig {
  /// A thread of its own serves the device: what that allocates is no replay's.
  StepRig(OutputMode mode, const std::string& where, bool copies)
      : CaptureRig(1, {}, {.clock = &runtime::Clock::real()}) {
    world.start_worker();
    device = where;
    parts.output_mode = mode;
    copies_to_shadows = copies;
    const int step = add_program("step", 3, [](std::span<std::byte* const> buffers) {
      float value = 2 * floats(buffers[1])[0] + floats(buffers[2])[0];
      while (value >= 1000) value -= 1000;
      floats(buffers[0])[0] = value;
    });
    const exec::BufferView last = in("last", 1), x = in("x", 1);
    call(step, out("next", 1), {last, x});
  }
};

TEST(CaptureAllocations, RP6_FedBackForManyRounds) {
  for (const std::string where : {"G", "CPU"}) {
    for (const auto mode : {OutputMode::Borrow, OutputMode::Ring, OutputMode::Copy}) {
      for (const bool copies : {true, false}) {
        StepRig rig(mode, where, copies);
        const auto replay = rig.replay();
        exec::Placement last = rig.block({0});
        const exec::Placement x = rig.block({1});
        TestCall call(rig, {last, x});
        float expected = 0;
        std::optional<exec::OutputHandle> kept;
        int64_t before = 0;
        for (int round = 0; round < 300; ++round) {
          // Copy: a third set is made in the third round.
          if (round == 3) before = thread_allocation_count();
          Result<exec::OutputHandle> result = replay->run(call.call);
          ASSERT_TRUE(result) << result.error().to_string();
          float value = 0;
          ASSERT_TRUE(result->read(0, std::as_writable_bytes(std::span(&value, 1)), kLong));
          expected = 2 * expected + 1;
          while (expected >= 1000) expected -= 1000;
          ASSERT_EQ(value, expected);
          kept = *result;
          call.memory[0].lanes[0] = kept->place(0).value();
        }
        EXPECT_EQ(thread_allocation_count() - before, 0)
            << where << " " << to_string(mode) << (copies ? "" : ", copied by the host");
      }
    }
  }
}

TEST(CaptureAllocations, ReplaysByAddress) {
  StepRig rig(OutputMode::Caller, "CPU", true);
  const auto replay = rig.replay();
  std::array<float, 3> values = {3, 4, 0};
  const auto port = [&](size_t i) {
    return exec::RawPort{reinterpret_cast<std::byte*>(&values[i]), sizeof(float)};
  };
  const std::array<exec::RawPort, 2> inputs = {port(0), port(1)};
  const std::array<exec::RawPort, 1> outputs = {port(2)};
  ASSERT_TRUE(replay->run_raw(inputs, outputs, kLong));
  EXPECT_EQ(values[2], 10);
  ASSERT_TRUE(replay->run_raw(inputs, outputs, kLong));
  constexpr int kCount = 300;
  const int64_t before = thread_allocation_count();
  for (int i = 0; i < kCount; ++i) ASSERT_TRUE(replay->run_raw(inputs, outputs, kLong));
  EXPECT_EQ(thread_allocation_count() - before, 0);
  // Other places of the same ports.
  values = {7, 4, 1};
  const std::array<exec::RawPort, 2> swapped = {port(1), port(2)};
  const std::array<exec::RawPort, 1> to = {port(0)};
  ASSERT_TRUE(replay->run_raw(swapped, to, kLong));
  EXPECT_EQ(values[0], 9);

  std::array<exec::RawPort, 2> wrong = inputs;
  wrong[1].size_bytes = 8;
  EXPECT_EQ(replay->run_raw(wrong, outputs, kLong).error().reason(), "SignatureMismatch");
  wrong[1] = {nullptr, 4};
  EXPECT_EQ(replay->run_raw(wrong, outputs, kLong).error().reason(), "SignatureMismatch");
  EXPECT_EQ(replay->run_raw(inputs, {}, kLong).error().reason(), "MissingInput");
  // An output over an input that is read.
  const std::array<exec::RawPort, 1> over = {port(0)};
  EXPECT_EQ(replay->run_raw(inputs, over, kLong).error().reason(), "AliasedArguments");
  StepRig borrowed(OutputMode::Borrow, "CPU", true);
  EXPECT_EQ(borrowed.replay()->run_raw(inputs, outputs, kLong).error().reason(), "RawPorts");
}

}  // namespace
}  // namespace ignis::testing
