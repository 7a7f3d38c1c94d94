#include "tools/ignis/dm/live_feed.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace ignis::tools {
namespace {

using std::chrono::milliseconds;

Snapshot numbered(uint32_t id, bool has_frame = true) {
  Snapshot s;
  s.has_frame = has_frame;
  s.time_ns = uint64_t{id} * 50'000'000;
  s.quality.frame_id = id;
  s.times[Stage::Total] = id;
  return s;
}

struct Watched : pipeline::FrameMemory {
  explicit Watched(int& alive) : count(alive) { ++count; }
  ~Watched() override { --count; }
  int& count;
};

pipeline::Frame watched_frame(int& alive) {
  pipeline::Frame frame;
  frame.memory = std::make_shared<Watched>(alive);
  return frame;
}

TEST(LiveFeed, GivesWhatIsNewInOrder) {
  LiveFeed feed;
  std::vector<Snapshot> out;
  feed.read_after(0, milliseconds(0), 100, out);
  EXPECT_TRUE(out.empty());
  for (uint32_t id = 10; id < 15; ++id) feed.push(numbered(id), nullptr);
  feed.read_after(2, milliseconds(0), 100, out);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].sequence, 3u);
  EXPECT_EQ(out[0].quality.frame_id, 12u);
  EXPECT_EQ(out[2].quality.frame_id, 14u);
}

TEST(LiveFeed, ASlowReaderGetsTheNewest) {
  LiveFeed feed;
  for (uint32_t id = 1; id <= 1000; ++id) feed.push(numbered(id), nullptr);
  std::vector<Snapshot> out;
  feed.read_after(3, milliseconds(0), 20, out);
  ASSERT_EQ(out.size(), 20u);
  EXPECT_EQ(out.front().sequence, 981u);
  EXPECT_EQ(out.back().sequence, 1000u);
  out.clear();
  feed.read_after(0, milliseconds(0), 10000, out);
  EXPECT_EQ(out.size(), LiveFeed::kHistory);
  EXPECT_EQ(out.front().sequence, 1000 - LiveFeed::kHistory + 1);
}

TEST(LiveFeed, KeepsOneFrameAndOnlyWhenSomeoneLooks) {
  LiveFeed feed;
  int alive = 0;
  const auto push = [&](uint32_t id) {
    const pipeline::Frame frame = watched_frame(alive);
    feed.push(numbered(id), &frame);
  };
  push(1);
  EXPECT_EQ(alive, 0);
  feed.keep_frames(true);
  push(2);
  push(3);
  EXPECT_EQ(alive, 1);
  auto taken = feed.take_frame(0, milliseconds(0));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->sequence, 3u);
  EXPECT_FALSE(feed.take_frame(0, milliseconds(0)));
  taken.reset();
  EXPECT_EQ(alive, 0);
  push(4);
  feed.keep_frames(false);
  EXPECT_EQ(alive, 0);
  feed.keep_frames(true);
  push(5);
  feed.close();
  EXPECT_EQ(alive, 0);
}

TEST(LiveFeed, CloseWakesReaders) {
  LiveFeed feed;
  std::thread reader([&] {
    std::vector<Snapshot> out;
    feed.read_after(0, milliseconds(60000), 1, out);
    EXPECT_TRUE(out.empty());
    EXPECT_FALSE(feed.take_frame(0, milliseconds(60000)));
  });
  feed.close();
  reader.join();
}

TEST(LiveFeed, RateAndTimesCountFramesOnly) {
  LiveFeed feed;
  EXPECT_EQ(feed.frames_per_s(), 0);
  for (uint32_t id = 1; id <= 100; ++id) {
    feed.push(numbered(id), nullptr);
    feed.push(numbered(id, /*has_frame=*/false), nullptr);
  }
  EXPECT_DOUBLE_EQ(feed.frames_per_s(), 20);
  const std::vector<StageSample> times = feed.recent_times();
  ASSERT_EQ(times.size(), 100u);
  EXPECT_EQ(times.front()[Stage::Total], 1u);
  EXPECT_EQ(times.back()[Stage::Total], 100u);
}

}  // namespace
}  // namespace ignis::tools
