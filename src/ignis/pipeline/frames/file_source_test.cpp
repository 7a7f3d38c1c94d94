#include "ignis/pipeline/frames/file_source.h"

#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/raw_index.h"
#include "ignis/pipeline/frames/raw_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ignis::pipeline {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// A folder of its own for each test, gone afterwards.
class FileSourceTest : public ::testing::Test {
 protected:
  FileSourceTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ignis-frames-XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = pattern + "/clip.nv12";
  }
  ~FileSourceTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  /// `count` frames of 4x2 NV12, 12 bytes each: frame i is all i + 1.
  void write_clip(int count, const std::string& index) {
    std::string bytes;
    for (int i = 0; i < count; ++i) bytes += std::string(12, static_cast<char>(i + 1));
    write(path_, bytes);
    if (!index.empty()) write(path_ + ".json", index);
  }
  Result<std::unique_ptr<FileSource>> open_fast(bool is_looped = false) {
    FileSourceOptions options;
    options.pace = Pace::Fast;
    options.is_looped = is_looped;
    return FileSource::open(path_, options);
  }

  std::string folder_;
  std::string path_;
};

const char kIndex[] = R"({"format": "nv12", "width": 4, "height": 2})";

TEST_F(FileSourceTest, ReadsManyFramesAndEnds) {
  write_clip(3, kIndex);
  auto source = open_fast().value();
  EXPECT_EQ(source->frame_count(), 3u);
  EXPECT_EQ(source->layout(), tight_nv12_layout(4, 2).value());
  EXPECT_EQ(source->describe(), path_ + " (nv12 4x2, stride 4, 20 Hz, 3 frames)");
  uint64_t last_sof_ns = 0;
  for (uint32_t i = 0; i < 3; ++i) {
    const Frame frame = source->receive(seconds(1)).value();
    EXPECT_EQ(frame.info.frame_id, i);
    EXPECT_EQ(frame.info.stream_id, 1u);
    ASSERT_EQ(frame.bytes.size(), 12u);
    for (const std::byte byte : frame.bytes) EXPECT_EQ(byte, static_cast<std::byte>(i + 1));
    EXPECT_GE(frame.info.timestamp_sof_ns, last_sof_ns);
    EXPECT_LE(frame.info.timestamp_eof_ns, frame.info.receive_time_ns);
    EXPECT_TRUE(frame.memory->is_intact());
    last_sof_ns = frame.info.timestamp_sof_ns;
  }
  for (int i = 0; i < 2; ++i) {
    const Result<Frame> end = source->receive(seconds(1));
    EXPECT_EQ(end.error().code(), ErrorCode::NotFound);
    EXPECT_EQ(end.error().reason(), "EndOfStream");
  }
}

TEST_F(FileSourceTest, TakesIdsFlagsAndExposureFromTheIndex) {
  write_clip(
      4, R"({"format": "NV12", "width": 4, "height": 2, "fps": 50, "stream_id": 2, "sensor_id": 7,
                    "range": "full", "frames": [[10, 1000, 9000, 1], [10, 2000, 3000, 0], [9, 0, 0, 1]]})");
  auto source = open_fast().value();
  EXPECT_EQ(source->layout().sensor_id, 7u);
  EXPECT_EQ(source->layout().range, ColorRange::Full);
  std::vector<uint32_t> ids;
  std::vector<uint64_t> exposures;
  std::vector<bool> flags;
  for (int i = 0; i < 4; ++i) {
    const Frame frame = source->receive(seconds(1)).value();
    EXPECT_EQ(frame.info.stream_id, 2u);
    ids.push_back(frame.info.frame_id);
    exposures.push_back(frame.info.timestamp_eof_ns - frame.info.timestamp_sof_ns);
    flags.push_back(frame.info.valid);
  }
  // A repeated id and one that goes back are replayed as recorded; the fourth frame is not listed and counts on.
  EXPECT_EQ(ids, (std::vector<uint32_t>{10, 10, 9, 10}));
  EXPECT_EQ(exposures, (std::vector<uint64_t>{8000, 1000, 0, 0}));
  EXPECT_EQ(flags, (std::vector<bool>{true, false, true, true}));
}

TEST_F(FileSourceTest, LoopsWithRisingIds) {
  write_clip(2, kIndex);
  auto source = open_fast(/*is_looped=*/true).value();
  for (uint32_t i = 0; i < 7; ++i) {
    const Frame frame = source->receive(seconds(1)).value();
    EXPECT_EQ(frame.info.frame_id, i);
    EXPECT_EQ(frame.bytes[0], static_cast<std::byte>(i % 2 + 1));
  }
}

TEST_F(FileSourceTest, PacesAndTellsWhenAFrameIsNotDue) {
  write_clip(3, R"({"format": "nv12", "width": 4, "height": 2, "fps": 2})");
  FileSourceOptions options;
  options.pace = Pace::EveryFrame;
  auto source = FileSource::open(path_, options).value();
  const Frame first = source->receive(nanoseconds(0)).value();
  EXPECT_EQ(source->receive(nanoseconds(0)).error().code(), ErrorCode::Timeout);
  const Frame second = source->receive(seconds(20)).value();
  EXPECT_EQ(second.info.frame_id, 1u);
  EXPECT_GE(second.info.timestamp_sof_ns, first.info.timestamp_sof_ns + 500'000'000);
  EXPECT_LE(second.info.timestamp_sof_ns, second.info.receive_time_ns);
}

TEST_F(FileSourceTest, SkipsWhatNobodyFetchedInTime) {
  write_clip(100, R"({"format": "nv12", "width": 4, "height": 2, "fps": 1000})");
  auto source = FileSource::open(path_).value();
  EXPECT_EQ(source->receive(seconds(1))->info.frame_id, 0u);
  std::this_thread::sleep_for(milliseconds(20));
  const Frame late = source->receive(seconds(1)).value();
  EXPECT_GE(late.info.frame_id, 19u);
  EXPECT_EQ(source->dropped_count(), late.info.frame_id - 1u);
  source = FileSource::open(path_).value();
  EXPECT_TRUE(source->receive(seconds(1)));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(source->receive(seconds(1))->info.frame_id, 99u) << "the last one always comes";
  EXPECT_EQ(source->receive(seconds(1)).error().reason(), "EndOfStream");
}

TEST_F(FileSourceTest, ATornFileGivesItsWholeFramesAndThenSaysSo) {
  write_clip(2, kIndex);
  std::filesystem::resize_file(path_, 12 + 7);
  auto source = open_fast().value();
  EXPECT_EQ(source->frame_count(), 1u);
  EXPECT_TRUE(source->receive(seconds(1)));
  const Result<Frame> torn = source->receive(seconds(1));
  EXPECT_EQ(torn.error().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(torn.error().reason(), "TornFile");
  EXPECT_NE(torn.error().message().find("24 bytes"), std::string::npos) << torn.error().message();
  EXPECT_NE(torn.error().message().find("has 19"), std::string::npos) << torn.error().message();
  EXPECT_EQ(source->receive(seconds(1)).error().reason(), "EndOfStream");
  // Fewer frames than the index lists.
  write_clip(2, R"({"format": "nv12", "width": 4, "height": 2,
                    "frames": [[1, 0, 0, 1], [2, 0, 0, 1], [3, 0, 0, 1]]})");
  source = open_fast().value();
  EXPECT_TRUE(source->receive(seconds(1)));
  EXPECT_TRUE(source->receive(seconds(1)));
  EXPECT_EQ(source->receive(seconds(1)).error().reason(), "TornFile");
  EXPECT_EQ(source->receive(seconds(1)).error().reason(), "EndOfStream");
  // Not one frame.
  std::filesystem::resize_file(path_, 11);
  EXPECT_EQ(open_fast().error().reason(), "TornFile");
}

TEST_F(FileSourceTest, AFileThatIsCutWhileItIsReadEnds) {
  write_clip(4, kIndex);
  auto source = open_fast(/*is_looped=*/true).value();
  EXPECT_TRUE(source->receive(seconds(1)));
  std::filesystem::resize_file(path_, 18);
  const Result<Frame> torn = source->receive(seconds(1));
  EXPECT_EQ(torn.error().reason(), "TornFile");
  EXPECT_EQ(source->receive(seconds(1)).error().reason(), "EndOfStream");
}

TEST_F(FileSourceTest, NeedsToKnowTheLayout) {
  write_clip(2, "");
  EXPECT_EQ(FileSource::open(path_).error().reason(), "FrameIndex");
  FileSourceOptions options;
  options.layout = i420_layout(4, 2).value();
  options.pace = Pace::Fast;
  auto source = FileSource::open(path_, options).value();
  EXPECT_EQ(source->receive(seconds(1))->layout.format, PixelFormat::I420);
  EXPECT_EQ(FileSource::open(path_ + ".none", options).error().code(), ErrorCode::NotFound);
  EXPECT_EQ(FileSource::open(folder_, options).error().code(), ErrorCode::InvalidArgument);
  options.fps = 1e9;
  EXPECT_EQ(FileSource::open(path_, options).error().reason(), "FrameRate");
}

TEST_F(FileSourceTest, TooManyHeldFramesIsAnErrorThatPasses) {
  write_clip(2, kIndex);
  auto source = open_fast(/*is_looped=*/true).value();
  std::vector<Frame> held;
  for (int i = 0; i < 16; ++i) held.push_back(source->receive(seconds(1)).value());
  EXPECT_EQ(source->receive(seconds(1)).error().reason(), "FramesHeld");
  held.pop_back();
  EXPECT_EQ(source->receive(seconds(1))->info.frame_id, 16u);
}

// ---- the index

TEST(RawIndex, ReadsWhatItWrote) {
  RawIndex index;
  index.layout = nv12_layout(1928, 1208).value();
  index.layout.sensor_id = 0xffffffff;
  index.layout.range = ColorRange::Full;
  index.fps = 29.97;
  index.stream_id = 2;
  index.frames = {{1, 2, 3, true}, {0xffffffff, 0xffffffffffffffff, 5, false}};
  EXPECT_EQ(parse_raw_index(to_json(index)).value(), index);
  index.layout = i420_layout(6, 4).value();
  index.frames.clear();
  EXPECT_EQ(parse_raw_index(to_json(index)).value(), index);
}

TEST(RawIndex, KnowsThePaddingOfTheRing) {
  const RawIndex index =
      parse_raw_index(R"({"format": "nv12", "width": 1928, "height": 1208, "padding": "ring"})")
          .value();
  EXPECT_EQ(index.layout.y_stride, 2048);
  EXPECT_EQ(index.layout.u_offset, 2490368);
  EXPECT_EQ(index.layout.size_bytes, 4804608);
}

TEST(RawIndex, RefusesWhatCannotBe) {
  const auto with = [](const std::string& more) {
    return "{\"format\": \"nv12\", \"width\": 4, \"height\": 2" + more + "}";
  };
  ASSERT_TRUE(parse_raw_index(with("")));
  for (const std::string& text :
       {std::string(),
        std::string("[]"),
        std::string("{"),
        std::string("null"),
        std::string("\xff\xfe"),
        std::string(R"({"format": "nv12", "width": 4})"),
        std::string(R"({"format": 1, "width": 4, "height": 2})"),
        std::string(R"({"format": "nv12", "width": "4", "height": 2})"),
        std::string(R"({"format": "nv12", "width": 5, "height": 2})"),
        std::string(R"({"format": "nv12", "width": 4.5, "height": 2})"),
        std::string(R"({"format": "nv12", "width": 18446744073709551615, "height": 2})"),
        std::string(R"({"format": "i420", "width": 4, "height": 2, "padding": "ring"})"),
        with(R"(, "fps": 0)"),
        with(R"(, "fps": "fast")"),
        with(R"(, "fps": 1e99)"),
        with(R"(, "y_stride": 3)"),
        with(R"(, "y_stride": -4)"),
        with(R"(, "u_offset": 7)"),
        with(R"(, "v_offset": 10)"),
        with(R"(, "frame_bytes": 11)"),
        with(R"(, "frame_bytes": 9e18)"),
        with(R"(, "range": "wide")"),
        with(R"(, "padding": 3)"),
        with(R"(, "stream_id": -1)"),
        with(R"(, "frames": {})"),
        with(R"(, "frames": [1])"),
        with(R"(, "frames": [[1, 2, 3]])"),
        with(R"(, "frames": [[1, 2, 3, 2]])"),
        with(R"(, "frames": [[4294967296, 2, 3, 1]])"),
        with(R"(, "frames": [[-1, 2, 3, 1]])"),
        with(R"(, "frames": [[1, 2.5, 3, 1]])")}) {
    const Result<RawIndex> index = parse_raw_index(text);
    ASSERT_FALSE(index) << text;
    EXPECT_EQ(index.error().code(), ErrorCode::InvalidArgument) << text;
  }
  EXPECT_EQ(parse_raw_index(with(R"(, "fps": -3)")).error().message(),
            "The index's 'fps' is -3; it lies between 0.1 and 1000.");
}

TEST(RawIndex, TakesRandomTextWithoutHarm) {
  const std::string good = to_json({tight_nv12_layout(4, 2).value(), 20, 1, {{1, 2, 3, true}}});
  std::mt19937_64 rng(7);
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (uint64_t change = 1 + rng() % 4; change > 0; --change) {
      switch (rng() % 3) {
        case 0: text[rng() % text.size()] = static_cast<char>(rng()); break;
        case 1: text.erase(rng() % text.size(), 1 + rng() % 5); break;
        default:
          text.insert(rng() % text.size(),
                      std::string(1 + rng() % 3, "0123456789[]{}\",-"[rng() % 17]));
      }
    }
    const Result<RawIndex> index = parse_raw_index(text);
    if (!index) continue;
    EXPECT_TRUE(check_layout(index->layout, static_cast<uint64_t>(kMaxFrameBytes)));
  }
  std::string deep(1'000'000, '[');
  EXPECT_FALSE(parse_raw_index(deep));
  EXPECT_FALSE(parse_raw_index("{\"frames\":" + deep + std::string(1'000'000, ']') + "}"));
}

// ---- the writer

Frame some_frame(const FrameLayout& layout, std::vector<std::byte>& bytes, uint32_t id) {
  bytes.assign(static_cast<size_t>(layout.size_bytes), static_cast<std::byte>(id));
  Frame frame;
  frame.layout = layout;
  frame.bytes = bytes;
  frame.info.frame_id = id;
  frame.info.timestamp_sof_ns = 1000 * id;
  frame.info.timestamp_eof_ns = 1000 * id + 7;
  frame.info.valid = id % 3 != 0;
  return frame;
}

TEST_F(FileSourceTest, ReadsWhatAWriterWrote) {
  const FrameLayout layout = nv12_layout(64, 32).value();
  std::vector<std::byte> bytes;
  auto writer = RawWriter::create(path_, 25).value();
  for (uint32_t id = 5; id < 25; ++id) ASSERT_TRUE(writer->write(some_frame(layout, bytes, id)));
  EXPECT_EQ(writer->frame_count(), 20u);
  const Status other = writer->write(some_frame(nv12_layout(64, 64).value(), bytes, 1));
  EXPECT_EQ(other.error().reason(), "LayoutChanged");
  ASSERT_TRUE(writer->close());
  EXPECT_FALSE(writer->write(some_frame(layout, bytes, 1)));
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u) << "cabin frames are personal data";
  auto source = open_fast().value();
  EXPECT_EQ(source->layout(), layout);
  EXPECT_NE(source->describe().find("25 Hz"), std::string::npos);
  for (uint32_t id = 5; id < 25; ++id) {
    const Frame frame = source->receive(seconds(1)).value();
    EXPECT_EQ(frame.info.frame_id, id);
    EXPECT_EQ(frame.info.valid, id % 3 != 0);
    EXPECT_EQ(frame.info.timestamp_eof_ns - frame.info.timestamp_sof_ns, 7u);
    for (const std::byte byte : frame.bytes) ASSERT_EQ(byte, static_cast<std::byte>(id));
  }
  EXPECT_EQ(source->receive(seconds(1)).error().reason(), "EndOfStream");
}

TEST_F(FileSourceTest, ARecordingThatWasNotClosedIsReadAsFarAsItGoes) {
  std::vector<std::byte> bytes;
  const FrameLayout layout = tight_nv12_layout(4, 2).value();
  const pid_t child = ::fork();
  if (child == 0) {
    auto writer = RawWriter::create(path_, 20);
    for (uint32_t id = 50; id < 61; ++id)
      if (!(*writer)->write(some_frame(layout, bytes, id))) ::_exit(1);
    ::_exit(0);  // like a kill: no close()
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  auto source = open_fast().value();
  for (uint32_t id = 50; id < 61; ++id) {
    const Frame frame = source->receive(seconds(1)).value();
    EXPECT_EQ(frame.info.frame_id, id);
    EXPECT_EQ(frame.bytes[11], static_cast<std::byte>(id));
  }
  EXPECT_EQ(source->receive(seconds(1)).error().reason(), "EndOfStream");
}

TEST_F(FileSourceTest, AFullDiskKeepsTheFramesBefore) {
  std::vector<std::byte> bytes;
  const FrameLayout layout = nv12_layout(64, 32).value();  // 40 KiB or so
  auto limited =
      RawWriter::create(path_, 20, 3 * static_cast<uint64_t>(layout.size_bytes) + 100).value();
  for (uint32_t id = 1; id <= 3; ++id) ASSERT_TRUE(limited->write(some_frame(layout, bytes, id)));
  EXPECT_EQ(limited->write(some_frame(layout, bytes, 4)).error().reason(), "SizeLimit");
  ASSERT_TRUE(limited->close());
  EXPECT_EQ(open_fast().value()->frame_count(), 3u);

  // The kernel refuses to make a file larger than this, in the middle of the third frame.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  auto writer = RawWriter::create(path_, 20).value();
  rlimit small = before;
  small.rlim_cur = 2 * static_cast<rlim_t>(layout.size_bytes) + 500;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const bool is_written =
      writer->write(some_frame(layout, bytes, 1)) && writer->write(some_frame(layout, bytes, 2));
  const Status full = writer->write(some_frame(layout, bytes, 3));
  const Status closed = writer->close();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_TRUE(is_written);
  EXPECT_EQ(full.error().code(), ErrorCode::OutOfMemory);
  EXPECT_EQ(full.error().reason(), "DiskFull");
  EXPECT_TRUE(closed);
  auto source = open_fast().value();
  EXPECT_EQ(source->frame_count(), 2u);
  EXPECT_TRUE(source->receive(seconds(1)));
  EXPECT_TRUE(source->receive(seconds(1)));
  EXPECT_EQ(source->receive(seconds(1)).error().reason(), "EndOfStream");
}

}  // namespace
}  // namespace ignis::pipeline
