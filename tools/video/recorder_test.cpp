#include "tools/video/recorder.h"

#include "tools/video/av.h"
#include "tools/video/ffmpeg_source.h"
#include "tools/video/test_clip.h"
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>

namespace ignis::tools {
namespace {

using std::chrono::seconds;

std::unique_ptr<pipeline::SyntheticSource> drive(const std::string& options) {
  SourceOptions fast;
  fast.pace = pipeline::Pace::Fast;
  auto source = open_synthetic("synthetic:drive,fps=5," + options, fast);
  EXPECT_TRUE(source) << source.error().to_string();
  return source ? *std::move(source) : nullptr;
}

std::unique_ptr<FfmpegSource> reopen(const std::string& path) {
  FfmpegSourceOptions options;
  options.pace = pipeline::Pace::Fast;
  auto source = FfmpegSource::open(path, options);
  EXPECT_TRUE(source) << source.error().to_string();
  return source ? *std::move(source) : nullptr;
}

/// The presentation times of a file in milliseconds, read with FFmpeg itself.
std::vector<int64_t> times_ms(const std::string& path) {
  AVFormatContext* context = nullptr;
  EXPECT_GE(avformat_open_input(&context, path.c_str(), nullptr, nullptr), 0);
  const AvInput input(context);
  const AvPacketPtr packet(av_packet_alloc());
  std::vector<int64_t> times;
  while (av_read_frame(context, packet.get()) >= 0) {
    times.push_back(av_rescale_q(packet->pts, context->streams[0]->time_base, {1, 1000}));
    av_packet_unref(packet.get());
  }
  return times;
}

class RecorderWith : public testing::TestWithParam<std::string> {};

TEST_P(RecorderWith, WritesWhatDecodesToTheSamePictures) {
  ASSERT_TRUE(load_av());
  if (avcodec_find_encoder_by_name(GetParam().c_str()) == nullptr) {
    GTEST_SKIP() << "This FFmpeg has no encoder " << GetParam() << ".";
  }
  for (const char* format : {"nv12", "i420"}) {
    SCOPED_TRACE(format);
    const ScratchFolder folder;
    const std::string path = folder.file("clip.mp4");
    RecorderOptions options;
    options.width_px = 320, options.height_px = 200;
    options.has_even_times = true;
    options.encoder = GetParam();
    auto recorder = Recorder::create(path, options);
    ASSERT_TRUE(recorder) << recorder.error().to_string();
    // 5 frames a second: the scenario's 400 frames show all spells in 80 s, the first 100 are bright and dark faces.
    const auto source = drive(std::string("size=320x200,seconds=24,format=") + format);
    std::vector<double> luma;
    for (int i = 0; i < 120; ++i) {
      const auto frame = source->receive(seconds(1));
      ASSERT_TRUE(frame);
      luma.push_back(mean_luma(*frame));
      const Status status = (*recorder)->write(*frame, seconds(10));
      ASSERT_TRUE(status) << status.error().to_string();
    }
    const Status closed = (*recorder)->close();
    ASSERT_TRUE(closed) << closed.error().to_string();
    EXPECT_TRUE((*recorder)->close()) << "closing twice is no error";
    EXPECT_EQ((*recorder)->written_count(), 120u);
    EXPECT_EQ((*recorder)->dropped_count(), 0u);
    struct stat file_status{};
    ASSERT_EQ(::stat(path.c_str(), &file_status), 0);
    EXPECT_EQ(file_status.st_mode & 0777, 0600u);

    const std::vector<pipeline::Frame> frames = [&] {
      std::vector<pipeline::Frame> all;
      const auto again = reopen(path);
      EXPECT_NEAR(again->fps(), 20, 0.01);
      for (int i = 0; i < 1000; ++i) {
        const auto frame = again->receive(seconds(1));
        if (!frame) break;
        EXPECT_EQ(frame->info.frame_id, static_cast<uint32_t>(i));
        // Frames are not kept: a source lends a limited number.
        EXPECT_NEAR(mean_luma(*frame), luma[static_cast<size_t>(i)], 2.0) << i;
        pipeline::Frame copy = *frame;
        copy.memory.reset();
        copy.bytes = {};
        all.push_back(copy);
      }
      return all;
    }();
    EXPECT_EQ(frames.size(), 120u);
    EXPECT_EQ(times_ms(path)[0], 0);
    EXPECT_EQ(times_ms(path)[119], 119 * 50);
  }
}

INSTANTIATE_TEST_SUITE_P(Encoders, RecorderWith, testing::Values("libx264", "mpeg4"));

TEST(Recorder, TakesRgbAndKeepsItsColors) {
  const ScratchFolder folder;
  RecorderOptions options;
  options.width_px = 64, options.height_px = 48;
  auto recorder = Recorder::create(folder.file("red.mp4"), options);
  ASSERT_TRUE(recorder) << recorder.error().to_string();
  std::vector<uint8_t> red(64 * 48 * 3, 0);
  for (size_t i = 0; i < red.size(); i += 3) red[i] = 255;
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE((*recorder)->write_rgb(red, i * 50'000'000, seconds(5)));
  }
  EXPECT_FALSE((*recorder)->write_rgb(std::span(red).first(30), 0));
  ASSERT_TRUE((*recorder)->close());
  const auto source = reopen(folder.file("red.mp4"));
  const auto frame = source->receive(seconds(1));
  ASSERT_TRUE(frame);
  // BT.601, limited: Y = 16 + 65.5, U = 128 - 37.8, V = 128 + 112.
  EXPECT_NEAR(mean_luma(*frame), 81.5, 3);
  EXPECT_NEAR(mean_chroma(*frame, 0), 90.2, 3);
  EXPECT_NEAR(mean_chroma(*frame, 1), 240, 3);
}

TEST(Recorder, PicturesLieAsFarApartAsTheirTimes) {
  const ScratchFolder folder;
  const std::string path = folder.file("clip.mp4");
  RecorderOptions options;
  options.width_px = 64, options.height_px = 48;
  auto recorder = Recorder::create(path, options);
  ASSERT_TRUE(recorder) << recorder.error().to_string();
  const std::vector<uint8_t> grey(64 * 48 * 3, 100);
  // 50 ms, then half a second, then a clock that goes back: one period of 50 ms. An hour counts as ten seconds.
  const uint64_t ms = 1'000'000;
  for (const uint64_t time :
       {1000 * ms, 1050 * ms, 1550 * ms, 1200 * ms, 1250 * ms, 3'601'250 * ms}) {
    ASSERT_TRUE((*recorder)->write_rgb(grey, time, seconds(5)));
  }
  ASSERT_TRUE((*recorder)->close());
  EXPECT_EQ(times_ms(path), (std::vector<int64_t>{0, 50, 550, 600, 650, 10'650}));
}

TEST(Recorder, AFullDiskStopsTheRecordingAndSaysSo) {
  RecorderOptions options;
  options.width_px = 320, options.height_px = 200;
  auto recorder = Recorder::create("/dev/full", options);
  const auto source = drive("size=320x200");
  Status status;
  if (!recorder) {  // the first bytes already found no room
    EXPECT_EQ(recorder.error().reason(), "DiskFull");
    return;
  }
  for (int i = 0; i < 300 && status; ++i) {
    status = (*recorder)->write(*source->receive(seconds(1)), seconds(5));
  }
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason(), "DiskFull") << status.error().to_string();
  EXPECT_EQ(status.error().code(), ErrorCode::OutOfMemory);
  // It stays stopped, without waiting, and the source goes on.
  EXPECT_EQ((*recorder)->write(*source->receive(seconds(1)), seconds(5)).error().reason(),
            "DiskFull");
  EXPECT_EQ((*recorder)->close().error().reason(), "DiskFull");
  EXPECT_TRUE(source->receive(seconds(1)));
}

TEST(Recorder, TheSizeLimitStopsTheRecordingAndWhatIsThereCanBePlayed) {
  const ScratchFolder folder;
  RecorderOptions options;
  options.width_px = 320, options.height_px = 200;
  options.has_even_times = true;
  options.size_limit_bytes = 300'000;
  auto recorder = Recorder::create(folder.file("clip.mp4"), options);
  ASSERT_TRUE(recorder) << recorder.error().to_string();
  const auto source = drive("size=320x200");
  Status status;
  for (int i = 0; i < 2000 && status; ++i) {
    status = (*recorder)->write(*source->receive(seconds(1)), seconds(5));
  }
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason(), "SizeLimit") << status.error().to_string();
  EXPECT_FALSE((*recorder)->close());
  EXPECT_LE(std::filesystem::file_size(folder.file("clip.mp4")), 300'000u);
  int errors = 0;
  const auto again = reopen(folder.file("clip.mp4"));
  int frames = 0;
  for (; again->receive(seconds(1)); ++frames) {
  }
  EXPECT_GE(frames, 20) << errors;  // at least the first fragment
}

TEST(Recorder, AFullQueueDropsPicturesAndGoesOn) {
  const ScratchFolder folder;
  RecorderOptions options;
  options.width_px = 1928, options.height_px = 1208;
  options.queue_limit = 1;
  auto recorder = Recorder::create(folder.file("clip.mp4"), options);
  ASSERT_TRUE(recorder) << recorder.error().to_string();
  const auto frame = drive("size=1928x1208")->receive(seconds(1));
  ASSERT_TRUE(frame);
  // Copying is much faster than encoding: one picture is being encoded, one waits, soon one finds no room.
  uint64_t taken = 0, refused = 0;
  for (int i = 0; i < 500 && refused == 0; ++i) {
    const Status status = (*recorder)->write(*frame);
    if (status) {
      ++taken;
    } else {
      ASSERT_EQ(status.error().reason(), "QueueFull") << status.error().to_string();
      ++refused;
    }
  }
  const Status waited = (*recorder)->write(*frame, seconds(20));
  EXPECT_TRUE(waited) << waited.error().to_string();
  ASSERT_TRUE((*recorder)->close());
  EXPECT_EQ((*recorder)->written_count(), taken + 1);
  EXPECT_EQ((*recorder)->dropped_count(), refused);
  EXPECT_EQ(refused, 1u) << "The encoder is faster than copying; the queue was never full.";
}

TEST(Recorder, RefusesWhatCannotBe) {
  const ScratchFolder folder;
  RecorderOptions options;
  EXPECT_FALSE(Recorder::create(folder.file("a.mp4"), options));
  options.width_px = 321, options.height_px = 200;
  EXPECT_FALSE(Recorder::create(folder.file("a.mp4"), options));
  options.width_px = 320;
  options.fps = std::nan("");
  EXPECT_FALSE(Recorder::create(folder.file("a.mp4"), options));
  options.fps = 20;
  EXPECT_FALSE(Recorder::create(folder.file("no/such/folder.mp4"), options));
  options.encoder = "abacus";
  const auto result = Recorder::create(folder.file("a.mp4"), options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason(), "NoEncoder");
  options.encoder = "";
  auto recorder = Recorder::create(folder.file("a.mp4"), options);
  ASSERT_TRUE(recorder);
  const auto source = drive("size=322x200");
  EXPECT_EQ((*recorder)->write(*source->receive(seconds(1))).error().reason(), "LayoutChanged");
}

}  // namespace
}  // namespace ignis::tools
