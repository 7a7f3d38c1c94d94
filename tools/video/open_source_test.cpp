#include "tools/video/open_source.h"

#include "tools/video/test_clip.h"
#include <gtest/gtest.h>

#include <filesystem>

namespace ignis::tools {
namespace {

using Kind = SourceSpec::Kind;

TEST(OpenSource, TextsAreTakenApart) {
  const ScratchFolder folder;
  const std::string clip = folder.write("clip.mp4", "x"), raw = folder.write("a.NV12", "x");
  const std::string comma = folder.write("a,size=2x2.png", "x");
  struct Row {
    std::string text;
    Kind kind;
    std::string name;
  };
  for (const Row& row :
       {Row{clip, Kind::Video, clip}, Row{raw, Kind::Raw, raw}, Row{comma, Kind::Video, comma},
        Row{clip + ",pace=fast", Kind::Video, clip},
        Row{raw + ",size=64x48,format=i420", Kind::Raw, raw},
        Row{"v4l2:/dev/video3", Kind::Camera, "/dev/video3"},
        Row{"v4l2:/dev/video0,size=640x480,fps=30", Kind::Camera, "/dev/video0"},
        Row{"synthetic:drive", Kind::Synthetic, "drive"},
        Row{"synthetic:night,seed=9", Kind::Synthetic, "night"},
        Row{"ring:cabin", Kind::Ring, "cabin"}, Row{"ring:cabin,stream=2", Kind::Ring, "cabin"}}) {
    const auto spec = parse_source(row.text);
    ASSERT_TRUE(spec) << row.text << ": " << spec.error().to_string();
    EXPECT_EQ(spec->kind, row.kind) << row.text;
    EXPECT_EQ(spec->name, row.name) << row.text;
  }
}

TEST(OpenSource, OptionsGoWhereTheyBelong) {
  SourceOptions defaults;
  defaults.fps = 25;
  auto spec = parse_source(
      "synthetic:faults,size=1344x760,seconds=30,side=right,seed=12,pace=every-frame,format=i420,"
      "portrait=me.png,eyes=1.5:2:30:4",
      defaults);
  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(spec->options.width_px, 1344);
  EXPECT_EQ(spec->options.height_px, 760);
  EXPECT_EQ(spec->options.fps, 25);
  EXPECT_EQ(spec->options.pace, pipeline::Pace::EveryFrame);
  EXPECT_EQ(spec->options.format, pipeline::PixelFormat::I420);
  EXPECT_EQ(spec->synthetic.duration_s, 30);
  EXPECT_EQ(spec->synthetic.side, pipeline::CabinSide::Right);
  EXPECT_EQ(spec->synthetic.seed, 12u);
  EXPECT_EQ(spec->portrait_path, "me.png");
  ASSERT_TRUE(spec->eyes_px);
  EXPECT_EQ(*spec->eyes_px, (std::vector<double>{1.5, 2, 30, 4}));
  spec = parse_source("ring:cabin,stream=2");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->stream_id, 2u);
}

TEST(OpenSource, WrongTextsAreRefusedWithTheWayOut) {
  const ScratchFolder folder;
  const std::string clip = folder.write("clip.mp4", "x");
  struct Row {
    std::string text, reason, hint;
  };
  for (const Row& row : {Row{"", "UnknownSource", "synthetic:SCENARIO"},
                         Row{"rtsp://camera/1", "UnknownSource", "v4l2:DEVICE"},
                         Row{"synthetic:", "UnknownSource", "drive"},
                         Row{"v4l2:,fps=3", "UnknownSource", "ring:NAME"},
                         Row{folder.file("absent.mp4"), "UnknownSource", "PATH"},
                         Row{clip + ",size=2x2", "BadSourceOption", "pace"},
                         Row{"synthetic:drive,size=big", "BadSourceOption", "1928x1208"},
                         Row{"synthetic:drive,size=2x3x4", "BadSourceOption", "1928x1208"},
                         Row{"synthetic:drive,size=-2x4", "BadSourceOption", "1928x1208"},
                         Row{"synthetic:drive,size=99999999999x2", "BadSourceOption", "1928x1208"},
                         Row{"synthetic:drive,seed=x", "BadSourceOption", "number"},
                         Row{"synthetic:drive,fps=nan", "BadSourceOption", "above 0"},
                         Row{"synthetic:drive,fps=-3", "BadSourceOption", "above 0"},
                         Row{"synthetic:drive,side=up", "BadSourceOption", "left or right"},
                         Row{"synthetic:drive,colour=red", "BadSourceOption", "seconds"},
                         Row{"synthetic:drive,loud", "BadSourceOption", "key=value"},
                         Row{"synthetic:drive,eyes=1:2:3", "BadSourceOption", "LX:LY:RX:RY"},
                         Row{"synthetic:drive,format=rgb", "FrameFormat", "nv12"}}) {
    const auto spec = parse_source(row.text);
    ASSERT_FALSE(spec) << row.text;
    EXPECT_EQ(spec.error().reason(), row.reason) << row.text;
    EXPECT_NE(spec.error().message().find(row.hint), std::string::npos)
        << row.text << ": " << spec.error().message();
  }
  EXPECT_EQ(parse_source(folder.file("absent.mp4")).error().code(), ErrorCode::NotFound);
  // What only the source itself can know.
  EXPECT_EQ(open_source("synthetic:holiday").error().reason(), "UnknownScenario");
  EXPECT_FALSE(open_source("synthetic:drive,size=33x33"));
  EXPECT_FALSE(open_source("synthetic:drive,seconds=nan"));
  EXPECT_FALSE(open_source("synthetic:drive,portrait=" + folder.file("absent.png")));
  EXPECT_FALSE(open_source("synthetic:drive,portrait=" + clip));
  EXPECT_FALSE(open_source("v4l2:" + folder.file("video0")));
}

TEST(OpenSource, TheBuiltInPortraitDrivesTheCabin) {
  const auto portrait = load_portrait();
  ASSERT_TRUE(portrait) << portrait.error().to_string();
  EXPECT_EQ(portrait->width_px, 512);
  EXPECT_EQ(portrait->height_px, 512);
  EXPECT_EQ(portrait->left_eye_x_px, pipeline::Portrait().left_eye_x_px);
  auto source = open_source("synthetic:front,pace=fast,seconds=0.5");
  ASSERT_TRUE(source) << source.error().to_string();
  const std::vector<pipeline::Frame> frames = receive_all(**source);
  ASSERT_EQ(frames.size(), 10u);
  EXPECT_EQ(frames[0].layout.width_px, 1928);
  EXPECT_EQ(frames[9].info.frame_id, 9u);
  // The same picture as a file, at another size: the eyes move along.
  const ScratchFolder folder;
  std::filesystem::copy(std::string(IGNIS_SOURCE_DIR) + "/tools/video/portrait.jpg",
                        folder.file("p.jpg"));
  auto again =
      open_source("synthetic:front,pace=fast,seconds=0.5,portrait=" + folder.file("p.jpg"));
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_TRUE(std::ranges::equal(receive_all(**again)[3].bytes, frames[3].bytes));
}

TEST(OpenSource, APictureIsACamera) {
  auto source = open_source(std::string(IGNIS_SOURCE_DIR) + "/tools/video/portrait.jpg,pace=fast");
  ASSERT_TRUE(source) << source.error().to_string();
  for (uint32_t i = 0; i < 5; ++i) {
    const auto frame = (*source)->receive(std::chrono::seconds(5));
    ASSERT_TRUE(frame) << frame.error().to_string();
    EXPECT_EQ(frame->info.frame_id, i);
    EXPECT_EQ(frame->layout.width_px, 512);
  }
}

}  // namespace
}  // namespace ignis::tools
