#include "ignis/pipeline/messages/log.h"

#include "ignis/pipeline/messages/wire.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <string>

namespace ignis::pipeline {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
constexpr auto kEnough = 20s;

class Log : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "ignis-log-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/drive";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::span<const std::byte> state(uint32_t frame_id) {
    DriverState state;
    state.frame_id = frame_id;
    return *writer_.driver_state(state, true, frame_id);
  }
  std::span<const std::byte> quality(uint32_t frame_id) {
    DriverStateQuality quality;
    quality.frame_id = frame_id;
    return *writer_.quality(quality);
  }
  /// The frame ids of all whole events, then why reading ended.
  std::pair<std::vector<uint32_t>, std::string> read_events(const std::string& path) {
    std::vector<uint32_t> ids;
    auto reader = LogReader::open(path);
    if (!reader) return {ids, reader.error().to_string()};
    while (true) {
      const auto message = reader->next();
      if (!message) return {ids, message.error().reason()};
      const auto event = decode_driver_state(*message);
      if (!event) return {ids, event.error().to_string()};
      ids.push_back(event->state.frame_id);
    }
  }

  std::string folder_, path_;
  EventWriter writer_;
};

std::vector<uint32_t> ids(uint32_t first, uint32_t last) {
  std::vector<uint32_t> result;
  for (uint32_t id = first; id <= last; ++id) result.push_back(id);
  return result;
}

TEST_F(Log, HoldsEventsAndCompanionsInOrder) {
  auto log = LogWriter::open(path_);
  ASSERT_TRUE(log) << log.error().to_string();
  for (uint32_t id = 1; id <= 300; ++id) {
    EXPECT_TRUE(log->append_event(state(id)));
    EXPECT_TRUE(log->append_quality(quality(id)));
  }
  const Status closed = log->close();
  ASSERT_TRUE(closed) << closed.error().to_string();
  EXPECT_EQ(read_events(path_), std::pair(ids(1, 300), std::string("EndOfLog")));

  auto companions = LogReader::open(path_ + ".quality");
  ASSERT_TRUE(companions);
  for (uint32_t id = 1; id <= 300; ++id) {
    const auto message = companions->next();
    ASSERT_TRUE(message) << message.error().to_string();
    EXPECT_EQ(decode_quality(*message)->frame_id, id);
  }
  EXPECT_EQ(companions->next().error().code(), ErrorCode::NotFound);
}

TEST_F(Log, IsForItsOwnerOnly) {
  auto log = LogWriter::open(path_);
  ASSERT_TRUE(log);
  for (const std::string& path : {path_, quality_log_path(path_)}) {
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
  }
}

TEST_F(Log, CanBeReadWhileItGrows) {
  auto log = LogWriter::open(path_);
  ASSERT_TRUE(log);
  auto reader = LogReader::open(path_);
  ASSERT_TRUE(reader);
  for (uint32_t id = 1; id <= 5; ++id) {
    EXPECT_EQ(reader->next().error().reason(), "EndOfLog");
    ASSERT_TRUE(log->append_event(state(id)));
    ASSERT_TRUE(log->flush(kEnough));
    const auto message = reader->next();
    ASSERT_TRUE(message) << message.error().to_string();
    EXPECT_EQ(decode_driver_state(*message)->state.frame_id, id);
  }
}

TEST_F(Log, SecondWriterIsRefusedAndHarmsNothing) {
  auto log = LogWriter::open(path_);
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->append_event(state(1)));
  ASSERT_TRUE(log->flush(kEnough));
  const auto second = LogWriter::open(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason(), "LogOpen");
  EXPECT_EQ(read_events(path_).first, ids(1, 1));
}

TEST_F(Log, WhatCannotBeOpenedIsNamed) {
  for (const std::string& path : {folder_ + "/missing/drive", folder_}) {
    const auto log = LogWriter::open(path);
    ASSERT_FALSE(log);
    EXPECT_EQ(log.error().reason(), "LogOpen");
    EXPECT_NE(log.error().message().find(path), std::string::npos);
  }
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(LogWriter::open(path_).error().reason(), "LogOpen");  // and does not wait for a reader
  EXPECT_EQ(LogReader::open(path_).error().reason(), "LogOpen");
  EXPECT_EQ(LogReader::open(folder_ + "/nothing").error().code(), ErrorCode::NotFound);
}

TEST_F(Log, FullDiskIsToldOnceAndTheLogStaysReadable) {
  // The disk takes 1000 bytes, not a whole number of messages, until it is given room again.
  std::atomic<int64_t> room_bytes = 1000;
  LogOptions options;
  options.write = [&](int descriptor, const void* bytes, size_t size, off_t offset) -> ssize_t {
    const int64_t free_bytes = room_bytes - offset;
    if (free_bytes <= 0) {
      errno = ENOSPC;
      return -1;
    }
    return ::pwrite(descriptor, bytes, std::min(size, static_cast<size_t>(free_bytes)), offset);
  };
  auto log = LogWriter::open(path_, options);
  ASSERT_TRUE(log);
  const size_t message_bytes = state(1).size();
  const auto fitting = static_cast<uint32_t>(1000 / message_bytes);
  ASSERT_NE(1000 % message_bytes, 0u);
  for (uint32_t id = 1; id <= 20; ++id) {
    EXPECT_TRUE(log->append_event(state(id)));  // never fails, never waits
    ASSERT_TRUE(log->flush(kEnough));
  }
  const auto error = log->take_error();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::OutOfMemory);
  EXPECT_EQ(error->reason(), "DiskFull");
  EXPECT_NE(error->message().find(path_), std::string::npos);
  EXPECT_FALSE(log->take_error());
  EXPECT_EQ(log->counters().written, fitting);
  EXPECT_EQ(log->counters().lost, 20 - fitting);
  EXPECT_EQ(read_events(path_), std::pair(ids(1, fitting), std::string("EndOfLog")));

  room_bytes = 1 << 20;
  ASSERT_TRUE(log->append_event(state(21)));
  ASSERT_TRUE(log->close());
  std::vector<uint32_t> wanted = ids(1, fitting);
  wanted.push_back(21);
  EXPECT_EQ(read_events(path_), std::pair(wanted, std::string("EndOfLog")));
}

TEST_F(Log, LimitOfTheSystemIsAFullDisk) {
  // The kernel's own refusal: files may not grow past 500 bytes. It would end the process by SIGXFSZ.
  auto log = LogWriter::open(path_);
  ASSERT_TRUE(log);
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small = {.rlim_cur = 500, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  for (uint32_t id = 1; id <= 10; ++id) log->append_event(state(id));
  const Status flushed = log->flush(kEnough);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_TRUE(flushed);
  const auto error = log->take_error();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->reason(), "DiskFull");
  ASSERT_TRUE(log->append_event(state(11)));
  ASSERT_TRUE(log->close());
  const auto [found, end] = read_events(path_);
  EXPECT_EQ(end, "EndOfLog");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.back(), 11u);
}

TEST_F(Log, DeviceWithoutSpaceIsAFullDisk) {
  ASSERT_EQ(::symlink("/dev/full", path_.c_str()), 0);
  auto log = LogWriter::open(path_);
  if (!log) GTEST_SKIP() << "/dev/full is not usable here: " << log.error().to_string();
  ASSERT_TRUE(log->append_event(state(1)));
  ASSERT_TRUE(log->append_quality(quality(1)));
  const Status closed = log->close();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().reason(), "DiskFull");
}

TEST_F(Log, BrokenDiskIsToldApartFromAFullOne) {
  LogOptions options;
  options.write = [](int, const void*, size_t, off_t) -> ssize_t {
    errno = EIO;
    return -1;
  };
  auto log = LogWriter::open(path_, options);
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->append_event(state(1)));
  ASSERT_TRUE(log->flush(kEnough));
  const auto error = log->take_error();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::DeviceLost);
  EXPECT_EQ(error->reason(), "WriteFailed");
}

TEST_F(Log, DiskThatDoesNotAnswerHoldsNobodyUp) {
  // The first write waits until the test lets it go; by then the buffer has filled, messages were lost, and close() gave up.
  struct Gate {
    std::promise<void> open;
    std::shared_future<void> is_open = open.get_future().share();
  };
  auto gate = std::make_shared<Gate>();
  LogOptions options;
  options.buffer_bytes = 2000;
  options.close_limit = 20ms;
  options.write = [gate](int descriptor, const void* bytes, size_t size, off_t offset) {
    gate->is_open.wait_for(kEnough);
    return ::pwrite(descriptor, bytes, size, offset);
  };
  auto log = LogWriter::open(path_, options);
  ASSERT_TRUE(log);
  int taken = 0;
  for (uint32_t id = 1; id <= 100; ++id) taken += log->append_event(state(id));
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 100);
  EXPECT_EQ(log->counters().lost, static_cast<uint64_t>(100 - taken));
  const auto error = log->take_error();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->reason(), "BufferFull");
  EXPECT_EQ(log->flush(1ms).error().code(), ErrorCode::Timeout);
  EXPECT_EQ(log->close().error().code(), ErrorCode::Timeout);
  EXPECT_FALSE(log->append_event(state(1)));
  gate->open.set_value();
}

TEST_F(Log, StopsAtItsSizeLimit) {
  LogOptions options;
  options.size_limit_bytes = 3 * state(1).size() + 10;
  auto log = LogWriter::open(path_, options);
  ASSERT_TRUE(log);
  for (uint32_t id = 1; id <= 10; ++id) ASSERT_TRUE(log->append_event(state(id)));
  EXPECT_EQ(log->close().error().reason(), "SizeLimit");
  EXPECT_EQ(read_events(path_), std::pair(ids(1, 3), std::string("EndOfLog")));
}

TEST_F(Log, CutFileReadsUpToTheLastWholeMessage) {
  {
    auto log = LogWriter::open(path_);
    ASSERT_TRUE(log);
    for (uint32_t id = 1; id <= 3; ++id) ASSERT_TRUE(log->append_event(state(id)));
    ASSERT_TRUE(log->close());
  }
  const size_t message_bytes = state(1).size();
  for (size_t cut = 1; cut < message_bytes; ++cut) {
    fs::resize_file(path_, 3 * message_bytes - cut);
    EXPECT_EQ(read_events(path_), std::pair(ids(1, 2), std::string("TruncatedMessage"))) << cut;
  }
  fs::resize_file(path_, 2 * message_bytes);
  EXPECT_EQ(read_events(path_), std::pair(ids(1, 2), std::string("EndOfLog")));
}

TEST_F(Log, FilesThatAreNoLogAreRefused) {
  const auto write = [&](const std::string& bytes) { std::ofstream(path_) << bytes; };
  write("");
  EXPECT_EQ(read_events(path_).second, "EndOfLog");
  write("[0.1, 0.2, 0.3]\n");
  EXPECT_EQ(read_events(path_).second, "Framing");
  write(std::string(4, '\0') + std::string(4, '\xff'));
  EXPECT_EQ(read_events(path_).second, "TooLong");
  write(std::string("\x10\0\0\0", 4) + std::string(20, '\0'));  // 17 segments, table cut off
  EXPECT_EQ(read_events(path_).second, "TruncatedMessage");
  write(std::string(8, '\0'));  // one segment of no words: a message of nothing
  EXPECT_NE(read_events(path_).second, "EndOfLog");
}

TEST_F(Log, ReadsMessagesLongerThanItsBuffer) {
  const std::vector<std::byte> raw(300000, std::byte{7});
  {
    auto log = LogWriter::open(path_);
    ASSERT_TRUE(log);
    for (uint32_t id = 1; id <= 3; ++id) {
      DriverState state;
      state.frame_id = id;
      state.raw_predictions = raw;
      ASSERT_TRUE(log->append_event(*writer_.driver_state(state, true, id)));
      ASSERT_TRUE(log->append_event(this->state(id + 10)));
    }
    ASSERT_TRUE(log->close());
  }
  EXPECT_EQ(read_events(path_).first, (std::vector<uint32_t>{1, 11, 2, 12, 3, 13}));
}

}  // namespace
}  // namespace ignis::pipeline
