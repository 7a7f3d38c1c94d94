#include "ignis/pipeline/frames/test_scripted_source.h"

#include <gtest/gtest.h>

namespace ignis::pipeline {
namespace {

TEST(ScriptedSource, PlaysItsScript) {
  const FrameLayout a = tight_nv12_layout(4, 2).value();
  const FrameLayout b = tight_nv12_layout(8, 4).value();
  ScriptedSource source(a, 1000, 10);
  source.set_paint([](const FrameLayout&, const FrameInfo& info, std::byte* bytes) {
    bytes[0] = static_cast<std::byte>(info.frame_id);
  });
  source.add_frames(2);
  source.repeat_last();
  source.add_silence();
  source.jump_clock(-500);
  source.change_layout(b);
  source.add_overwritten();
  source.skip_ids(5);
  source.add_torn();
  source.add_error(Error(ErrorCode::DeviceLost, "Gone."));
  source.restart();
  source.add_frame([](Frame& frame) { frame.info.valid = false; });

  const auto next = [&] { return source.receive(std::chrono::nanoseconds(0)); };
  const Frame first = next().value();
  EXPECT_EQ(first.info.frame_id, 1u);
  EXPECT_EQ(first.bytes.size(), 12u);
  EXPECT_EQ(first.bytes[0], std::byte{1});
  EXPECT_EQ(next()->info.timestamp_sof_ns, 1010u);
  const Frame repeated = next().value();
  EXPECT_EQ(repeated.info.frame_id, 2u);
  EXPECT_EQ(repeated.info.timestamp_sof_ns, 1010u);
  EXPECT_EQ(next().error().code(), ErrorCode::Timeout);
  const Frame overwritten = next().value();
  EXPECT_EQ(overwritten.layout, b);
  EXPECT_EQ(overwritten.info.timestamp_sof_ns, 520u);
  EXPECT_GT(overwritten.info.generation, first.info.generation);
  EXPECT_FALSE(overwritten.memory->is_intact());
  EXPECT_TRUE(first.memory->is_intact());
  EXPECT_EQ(next().error().reason(), "TornFrame");
  EXPECT_EQ(next().error().code(), ErrorCode::DeviceLost);
  const Frame restarted = next().value();
  EXPECT_EQ(restarted.info.frame_id, 1u);
  EXPECT_NE(restarted.info.server_id, first.info.server_id);
  EXPECT_FALSE(restarted.info.valid);
  EXPECT_EQ(next().error().reason(), "EndOfStream");
  source.end_with_silence();
  EXPECT_EQ(next().error().code(), ErrorCode::Timeout);
}

}  // namespace
}  // namespace ignis::pipeline
