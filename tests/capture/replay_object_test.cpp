// The replay of a capture (capture spec 5, 6, 10), on simulated devices.

#include "tests/capture/capture_rig.h"

namespace ignis::testing {
namespace {

/// new = cat(window[1:], frame), returned as it is and its first item apart. Four items.
struct WindowRig : CaptureRig {
  explicit WindowRig(exec::OutputMode mode = exec::OutputMode::Borrow, int copy_queues = 1)
      : CaptureRig(copy_queues) {
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

/// `rounds` rounds, the first on a window of its own; the window after round k ends with k, so its head is k - 3.
void feed_back(WindowRig& rig, exec::Replay& replay, int rounds) {
  exec::Placement window = rig.block({-4, -3, -2, -1});
  const exec::Placement frame = rig.block({0});
  std::vector<exec::OutputHandle> kept;
  for (int round = 0; round < rounds; ++round) {
    write_floats(frame, {static_cast<float>(round)});
    const exec::OutputHandle result = run(rig, replay, {window, frame});
    ASSERT_EQ(read(result, 1, 1)[0], static_cast<float>(round - 3));
    window = result.place(0).value();
    kept.assign(1, result);
  }
}

TEST(Replay, RP1_AnOutputIsFedBack) {
  for (const auto mode :
       {exec::OutputMode::Borrow, exec::OutputMode::Ring, exec::OutputMode::Copy}) {
    for (const bool copies : {true, false}) {
      WindowRig rig(mode);
      rig.copies_to_shadows = copies;
      const auto replay = rig.replay();
      feed_back(rig, *replay, 8);
      const uint64_t shadows = replay->counts().shadow_copies;
      EXPECT_EQ(shadows, mode == exec::OutputMode::Borrow ? 7U : 0U);
      EXPECT_EQ(replay->counts().links, 1U);
    }
  }
}

}  // namespace
}  // namespace ignis::testing
