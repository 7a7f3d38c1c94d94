#include "tools/video/make_clip.h"

#include "tools/video/open_source.h"
#include "tools/video/test_clip.h"
#include <gtest/gtest.h>

namespace ignis::tools {
namespace {

std::unique_ptr<pipeline::FrameSource> open(const std::string& text) {
  auto source = open_source(text);
  EXPECT_TRUE(source) << source.error().to_string();
  return source ? *std::move(source) : nullptr;
}

TEST(MakeClip, AVideoAndRawFramesShowWhatTheSourceShowed) {
  const ScratchFolder folder;
  const std::string scene = "synthetic:drive,size=320x200,pace=fast";
  std::vector<double> luma;
  const auto original = open(scene);
  for (int i = 0; i < 60; ++i)
    luma.push_back(mean_luma(*original->receive(std::chrono::seconds(1))));

  for (const char* name : {"clip.mp4", "clip.nv12"}) {
    SCOPED_TRACE(name);
    const auto source = open(scene);
    ClipOptions options;
    options.duration_s = 3;
    const auto summary = write_clip(*source, folder.file(name), options);
    ASSERT_TRUE(summary) << summary.error().to_string();
    EXPECT_EQ(summary->frame_count, 60u);
    EXPECT_EQ(summary->skipped_count, 0u);
    const auto again = open(folder.file(name) + ",pace=fast");
    for (size_t i = 0; i < 60; ++i) {
      const auto frame = again->receive(std::chrono::seconds(1));
      ASSERT_TRUE(frame) << frame.error().to_string();
      EXPECT_EQ(frame->layout.width_px, 320);
      EXPECT_NEAR(mean_luma(*frame), luma[i], 2.0) << i;  // the encoder rounds noise away
    }
    EXPECT_EQ(again->receive(std::chrono::seconds(1)).error().reason(), "EndOfStream");
  }
}

TEST(MakeClip, EndsWithTheSourceAndSkipsOtherSizes) {
  const ScratchFolder folder;
  const auto source = open("synthetic:faults,size=320x200,pace=fast,seconds=27");
  ClipOptions options;
  options.duration_s = 100;
  const auto summary = write_clip(*source, folder.file("clip.mp4"), options);
  ASSERT_TRUE(summary) << summary.error().to_string();
  // 540 ticks, of which 40 bring nothing and 40 frames of the other camera.
  EXPECT_EQ(summary->frame_count, 460u);
  EXPECT_EQ(summary->skipped_count, 40u);
}

TEST(MakeClip, StopsWhenAskedAndRefusesWhatCannotBe) {
  const ScratchFolder folder;
  const auto source = open("synthetic:front,size=320x200,pace=fast");
  const std::atomic<bool> is_stopped{true};
  ClipOptions options;
  options.is_stopped = &is_stopped;
  EXPECT_EQ(write_clip(*source, folder.file("clip.mp4"), options).error().reason(), "EndOfStream");
  EXPECT_EQ(write_clip(*source, folder.file("clip.gif")).error().reason(), "ClipName");
  options = {};
  options.duration_s = 0;
  EXPECT_EQ(write_clip(*source, folder.file("clip.mp4"), options).error().reason(), "ClipLength");
  EXPECT_FALSE(write_clip(*source, folder.file("no/folder/clip.mp4")));
  EXPECT_FALSE(write_clip(*source, folder.file("no/folder/clip.nv12")));
}

}  // namespace
}  // namespace ignis::tools
