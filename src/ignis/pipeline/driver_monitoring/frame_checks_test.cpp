#include "ignis/pipeline/driver_monitoring/frame_checks.h"

#include "ignis/pipeline/driver_monitoring/testing/test_host_rig.h"

#include <gtest/gtest.h>

#include <limits>

namespace ignis::pipeline {
namespace {

FrameInfo info(uint32_t id, uint64_t sof_ns, uint64_t server_id = 1) {
  FrameInfo result;
  result.frame_id = id;
  result.timestamp_sof_ns = sof_ns;
  result.server_id = server_id;
  return result;
}

TEST(FrameChecks, EachRowAfterFrame7At100) {
  struct Row {
    const char* name;
    FrameInfo next;
    uint64_t now_ns;
    Reasons reasons;
    uint32_t dropped;
  };
  FrameInfo disowned = info(8, 150);
  disowned.valid = false;
  const Row rows[] = {
      {"next", info(8, 150), 160, {}, 0},
      {"gap of two", info(10, 250), 260, Reason::FrameIdGap, 2},
      {"repeated", info(7, 100), 160, Reason::FrameRepeated, 0},
      {"back", info(5, 150), 160, Reason::FrameIdBackwards, 0},
      {"far ahead is back, modulo 2^32", info(7 + 0x80000001U, 150), 160, Reason::FrameIdBackwards,
       0},
      {"clock back", info(8, 99), 160, Reason::ClockJump, 0},
      {"clock stands", info(8, 100), 160, {}, 0},
      {"clock ahead of now", info(8, 161), 160, Reason::ClockJump, 0},
      {"now", info(8, 160), 160, {}, 0},
      {"disowned", disowned, 160, Reason::FrameInvalidFlag, 0},
      {"new server counts from anywhere", info(3, 150, 2), 160, {}, 0},
      {"but has the same clock", info(3, 99, 2), 160, Reason::ClockJump, 0},
      {"repeated and back", info(7, 90), 160, Reasons(Reason::FrameRepeated) | Reason::ClockJump,
       0},
  };
  for (const Row& row : rows) {
    FrameChecks checks;
    ASSERT_TRUE(checks.check(info(7, 100), 110).reasons.is_empty());
    const FrameChecks::Outcome outcome = checks.check(row.next, row.now_ns);
    EXPECT_EQ(outcome.reasons, row.reasons) << row.name;
    EXPECT_EQ(outcome.dropped, row.dropped) << row.name;
  }
}

TEST(FrameChecks, ACounterThatWrapsGoesOn) {
  FrameChecks checks;
  checks.check(info(0xFFFFFFFFU, 100), 110);
  EXPECT_TRUE(checks.check(info(0, 150), 160).reasons.is_empty());
  const FrameChecks::Outcome outcome = checks.check(info(2, 250), 260);
  EXPECT_EQ(outcome.reasons, Reasons(Reason::FrameIdGap));
  EXPECT_EQ(outcome.dropped, 1U);
}

TEST(FrameChecks, OneBadFrameIsOneBadFrame) {
  FrameChecks checks;
  checks.check(info(1000, 1000), 1010);
  EXPECT_FALSE(checks.check(info(1, 500), 1060).reasons.is_empty());  // id and clock go back
  EXPECT_TRUE(checks.check(info(2, 550), 1110).reasons.is_empty());
  // A time from the future is no measure for the next frame.
  EXPECT_EQ(checks.check(info(3, 9'000'000), 1160).reasons, Reasons(Reason::ClockJump));
  EXPECT_TRUE(checks.check(info(4, 650), 1210).reasons.is_empty());
}

TEST(FrameChecks, AFrameHoldsItsLayoutOrIsNotRead) {
  HostRig rig;
  const Frame good = rig.next_frame();
  EXPECT_TRUE(holds_its_layout(good));
  const auto is_held = [&](auto change) {
    Frame frame = good;
    change(frame);
    return holds_its_layout(frame);
  };
  EXPECT_FALSE(is_held([](Frame& f) { f.bytes = f.bytes.first(f.bytes.size() - 1); }));
  EXPECT_FALSE(is_held([](Frame& f) { f.bytes = {}; }));
  EXPECT_FALSE(is_held([](Frame& f) { f.layout.width_px = 0; }));
  EXPECT_FALSE(is_held([](Frame& f) { f.layout.height_px = -2; }));
  EXPECT_FALSE(is_held([](Frame& f) { f.layout.y_stride = 1927; }));
  EXPECT_FALSE(is_held([](Frame& f) { f.layout.y_stride = 1 << 20; }));
  EXPECT_FALSE(
      is_held([](Frame& f) { f.layout.y_stride = std::numeric_limits<int64_t>::max() / 4; }));
  EXPECT_FALSE(is_held([](Frame& f) { f.layout.size_bytes = -1; }));
  EXPECT_FALSE(is_held([](Frame& f) { f.layout.size_bytes += 1; }));
}

}  // namespace
}  // namespace ignis::pipeline
