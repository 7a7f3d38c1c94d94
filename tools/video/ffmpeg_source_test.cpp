#include "tools/video/ffmpeg_source.h"

#include "ignis/pipeline/frames/layout.h"

#include "tools/io/files.h"
#include "tools/io/image.h"
#include "tools/video/recorder.h"
#include "tools/video/test_clip.h"
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

namespace ignis::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

FfmpegSourceOptions fast() {
  FfmpegSourceOptions options;
  options.pace = pipeline::Pace::Fast;
  return options;
}

/// A picture of one color.
std::string write_png(const ScratchFolder& folder, int width_px, int height_px, uint8_t r,
                      uint8_t g, uint8_t b) {
  Image image;
  image.width_px = width_px, image.height_px = height_px;
  for (int i = 0; i < width_px * height_px; ++i) image.rgb.insert(image.rgb.end(), {r, g, b});
  const std::string path = folder.file("picture.png");
  EXPECT_TRUE(write_file(path, *format_png(image)));
  return path;
}

/// A clip of `count` grey frames of 64x48, frame i of luma about 40 + 3 i.
std::string write_clip_file(const ScratchFolder& folder, int count) {
  RecorderOptions options;
  options.width_px = 64, options.height_px = 48;
  options.has_even_times = true;
  auto recorder = Recorder::create(folder.file("clip.mp4"), options);
  EXPECT_TRUE(recorder) << recorder.error().to_string();
  for (int i = 0; i < count; ++i) {
    const std::vector<uint8_t> grey(64 * 48 * 3, static_cast<uint8_t>(28 + 3 * i));
    EXPECT_TRUE((*recorder)->write_rgb(grey, 0, seconds(5)));
  }
  EXPECT_TRUE((*recorder)->close());
  return folder.file("clip.mp4");
}

TEST(FfmpegSource, APictureIsOneFrameCutToEvenSides) {
  const ScratchFolder folder;
  const std::string path = write_png(folder, 67, 35, 0, 255, 0);
  auto source = FfmpegSource::open(path, fast());
  ASSERT_TRUE(source) << source.error().to_string();
  const auto frame = (*source)->receive(seconds(1));
  ASSERT_TRUE(frame) << frame.error().to_string();
  EXPECT_EQ(frame->layout, *pipeline::nv12_layout(66, 34));
  // BT.601, limited: Y = 16 + 128.6, U = 128 - 74.2, V = 128 - 93.8.
  EXPECT_NEAR(mean_luma(*frame), 144.6, 1.5);
  EXPECT_NEAR(mean_chroma(*frame, 0), 53.8, 1.5);
  EXPECT_NEAR(mean_chroma(*frame, 1), 34.2, 1.5);
  EXPECT_EQ((*source)->receive(seconds(1)).error().reason(), "EndOfStream");
  EXPECT_EQ((*source)->receive(seconds(1)).error().reason(), "EndOfStream");
}

TEST(FfmpegSource, AStillPictureRepeatsWithNewIdsWhenAsked) {
  const ScratchFolder folder;
  FfmpegSourceOptions options;
  options.repeats_still = true;
  options.still_fps = 100;
  options.pace = pipeline::Pace::EveryFrame;
  auto source = FfmpegSource::open(write_png(folder, 64, 48, 9, 9, 9), options);
  ASSERT_TRUE(source) << source.error().to_string();
  uint64_t last_sof_ns = 0;
  for (uint32_t i = 0; i < 6; ++i) {
    const auto frame = (*source)->receive(seconds(5));
    ASSERT_TRUE(frame) << frame.error().to_string();
    EXPECT_EQ(frame->info.frame_id, i);
    if (i > 0) {
      EXPECT_GE(frame->info.timestamp_sof_ns, last_sof_ns + 9'900'000);
    }
    last_sof_ns = frame->info.timestamp_sof_ns;
    EXPECT_LE(last_sof_ns, frame->info.receive_time_ns);
  }
  // Nothing is due at once: a short wait ends in time, and nothing is lost by it.
  options.still_fps = 1;
  source = FfmpegSource::open(folder.file("picture.png"), options);
  ASSERT_TRUE(source);
  ASSERT_TRUE((*source)->receive(seconds(5)));
  EXPECT_EQ((*source)->receive(milliseconds(5)).error().code(), ErrorCode::Timeout);
  const auto next = (*source)->receive(seconds(5));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->info.frame_id, 1u);
}

TEST(FfmpegSource, FullRangeBecomesLimited) {
  // A grey of 200 in a JPEG is luma 200 of full range: 16 + 200 * 219 / 255 = 187.8 of the limited one.
  const ScratchFolder folder;
  const std::string png = write_png(folder, 64, 48, 200, 200, 200);
  const std::string command =
      "ffmpeg -v error -y -i " + png + " -pix_fmt yuvj420p " + folder.file("grey.jpg");
  if (std::system("command -v ffmpeg >/dev/null") != 0) GTEST_SKIP() << "There is no ffmpeg here.";
  ASSERT_EQ(std::system(command.c_str()), 0);
  auto source = FfmpegSource::open(folder.file("grey.jpg"), fast());
  ASSERT_TRUE(source) << source.error().to_string();
  const auto frame = (*source)->receive(seconds(1));
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->layout.range, pipeline::ColorRange::Limited);
  EXPECT_NEAR(mean_luma(*frame), 187.8, 1.5);
  EXPECT_NEAR(mean_chroma(*frame, 0), 128, 1.5);
}

TEST(FfmpegSource, PlaysAClipToItsEndOrRoundAndRound) {
  const ScratchFolder folder;
  const std::string path = write_clip_file(folder, 45);
  auto source = FfmpegSource::open(path, fast());
  ASSERT_TRUE(source) << source.error().to_string();
  for (uint32_t i = 0; i < 45; ++i) {
    const auto frame = (*source)->receive(seconds(1));
    ASSERT_TRUE(frame) << frame.error().to_string();
    EXPECT_EQ(frame->info.frame_id, i);
    EXPECT_NEAR(mean_luma(*frame), 16 + (28 + 3 * i) * 219.0 / 255, 2.5) << i;
  }
  EXPECT_EQ((*source)->receive(seconds(1)).error().reason(), "EndOfStream");

  FfmpegSourceOptions options = fast();
  options.is_looped = true;
  source = FfmpegSource::open(path, options);
  ASSERT_TRUE(source);
  for (uint32_t i = 0; i < 100; ++i) {
    const auto frame = (*source)->receive(seconds(1));
    ASSERT_TRUE(frame) << frame.error().to_string();
    EXPECT_EQ(frame->info.frame_id, i);
    EXPECT_NEAR(mean_luma(*frame), 16 + (28 + 3 * (i % 45)) * 219.0 / 255, 2.5) << i;
  }
}

TEST(FfmpegSource, WhatNobodyFetchesInTimeIsDropped) {
  const ScratchFolder folder;
  auto source = FfmpegSource::open(write_clip_file(folder, 45), {});
  ASSERT_TRUE(source) << source.error().to_string();
  ASSERT_TRUE((*source)->receive(seconds(5)));
  std::this_thread::sleep_for(milliseconds(330));  // six frames of 50 ms and a bit
  const auto late = (*source)->receive(seconds(5));
  ASSERT_TRUE(late);
  EXPECT_GE(late->info.frame_id, 6u);
  EXPECT_EQ((*source)->dropped_count(), late->info.frame_id - 1u);
  EXPECT_LE(late->info.timestamp_sof_ns, late->info.receive_time_ns);
}

TEST(FfmpegSource, RefusesWhatIsNoVideo) {
  const ScratchFolder folder;
  const auto reason = [&](const std::string& path) {
    const auto source = FfmpegSource::open(path, fast());
    return source ? std::string("opened") : source.error().reason();
  };
  EXPECT_EQ(FfmpegSource::open(folder.file("absent.mp4")).error().code(), ErrorCode::NotFound);
  EXPECT_EQ(reason(folder.write("empty.mp4", "")), "NotAVideo");
  EXPECT_EQ(reason(folder.write("words.mp4", "This is no video. " + std::string(5000, 'x'))),
            "NotAVideo");
  EXPECT_EQ(reason(folder.file("")), "NotAVideo");
  ASSERT_EQ(::mkfifo(folder.file("pipe.mp4").c_str(), 0600), 0);
  EXPECT_EQ(reason(folder.file("pipe.mp4")), "NotAVideo");  // and does not wait for a writer
}

TEST(FfmpegSource, APlaylistLeadsNowhere) {
  const ScratchFolder folder;
  const std::string clip = write_clip_file(folder, 10);
  const auto frames = [&](const std::string& path) {
    auto source = FfmpegSource::open(path, fast());
    if (!source) return 0;
    int count = 0, errors = 0;
    count = static_cast<int>(receive_all(**source, &errors).size());
    return count;
  };
  EXPECT_EQ(frames(clip), 10);
  EXPECT_EQ(frames(folder.write("a.ffconcat", "ffconcat version 1.0\nfile 'clip.mp4'\n")), 0);
  EXPECT_EQ(frames(folder.write("a.m3u8",
                                "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nclip.mp4\n"
                                "#EXT-X-ENDLIST\n")),
            0);
  EXPECT_EQ(frames(folder.write("a.sdp",
                                "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
                                "m=video 50000 RTP/AVP 96\na=rtpmap:96 H264/90000\n")),
            0);
}

TEST(FfmpegSource, ATruncatedClipGivesWhatIsThere) {
  const ScratchFolder folder;
  const std::string whole = read_text(write_clip_file(folder, 45));
  for (const double share : {0.05, 0.3, 0.6, 0.9, 0.99}) {
    SCOPED_TRACE(share);
    const std::string path = folder.write(
        "cut.mp4", whole.substr(0, static_cast<size_t>(share * static_cast<double>(whole.size()))));
    auto source = FfmpegSource::open(path, fast());
    if (!source) continue;  // the beginning itself is cut
    int errors = 0;
    EXPECT_LE(receive_all(**source, &errors).size(), 45u);
  }
}

TEST(FfmpegSource, DamagedFilesNeitherCrashNorHang) {
  const ScratchFolder folder;
  const std::string clip = read_text(write_clip_file(folder, 30));
  const std::string picture = read_text(write_png(folder, 64, 48, 1, 2, 3));
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    std::string bytes = i % 2 == 0 ? clip : picture;
    for (int k = 0; k < 8; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    auto source = FfmpegSource::open(folder.write("damaged", bytes), fast());
    if (!source) continue;
    int errors = 0;
    EXPECT_LE(receive_all(**source, &errors).size(), 1000u) << "seed 7, file " << i;
  }
}

TEST(FfmpegSource, PicturesBeyondTheLimitAreRefusedBeforeTheyTakeMemory) {
  const ScratchFolder folder;
  const std::string path = write_png(folder, 4200, 20, 1, 1, 1);
  auto source = FfmpegSource::open(path, fast());
  if (source) {
    const auto frame = (*source)->receive(seconds(5));
    ASSERT_FALSE(frame);
    EXPECT_EQ(frame.error().code(), ErrorCode::InvalidArgument) << frame.error().to_string();
  }
  // A header that promises 60000x60000 and holds nothing.
  std::string header = read_text(path);
  header[16] = 0, header[17] = 0, header[18] = '\xea', header[19] = '\x60';
  header[20] = 0, header[21] = 0, header[22] = '\xea', header[23] = '\x60';
  source = FfmpegSource::open(folder.write("huge.png", header), fast());
  if (source) {
    int errors = 0;
    EXPECT_TRUE(receive_all(**source, &errors).empty());
  }
}

}  // namespace
}  // namespace ignis::tools
