#include "ignis/pipeline/road/frame_pairing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>

namespace ignis::pipeline {
namespace {

constexpr uint64_t kMs = 1'000'000;

/// Hands out frames with these starts of frame, then times out.
class Listed : public FrameSource {
 public:
  explicit Listed(std::deque<uint64_t> sof_ms) : sof_ms_(std::move(sof_ms)) {}
  Result<Frame> receive(std::chrono::nanoseconds) override {
    if (sof_ms_.empty()) return Error(ErrorCode::Timeout, "No frame.", "FrameTimeout");
    Frame frame;
    frame.info.frame_id = next_id_++;
    frame.info.timestamp_sof_ns = sof_ms_.front() * kMs;
    sof_ms_.pop_front();
    return frame;
  }
  std::string describe() const override { return "listed"; }

 private:
  std::deque<uint64_t> sof_ms_;
  uint32_t next_id_ = 0;
};

using Pairs = std::vector<std::pair<uint64_t, uint64_t>>;

Pairs pairs_of(std::deque<uint64_t> main_ms, std::deque<uint64_t> wide_ms,
               uint64_t* loose = nullptr) {
  Listed main(std::move(main_ms)), wide(std::move(wide_ms));
  FramePairer pairer(main, wide);
  Pairs pairs;
  while (true) {
    const auto pair = pairer.next(std::chrono::seconds(10));
    if (!pair) break;
    pairs.emplace_back(pair->main.info.timestamp_sof_ns / kMs,
                       pair->wide.info.timestamp_sof_ns / kMs);
  }
  if (loose != nullptr) *loose = pairer.loose_pairs();
  return pairs;
}

TEST(FramePairer, TakesFramesThatStartTogether) {
  uint64_t loose = 0;
  EXPECT_EQ(pairs_of({100, 150, 200}, {101, 151, 201}, &loose),
            (Pairs{{100, 101}, {150, 151}, {200, 201}}));
  EXPECT_EQ(loose, 0u);
}

TEST(FramePairer, SkipsWideFramesThatAreBehind) {
  // The main camera lost 150 and 200: wide 151 and 201 are 25 ms or more behind 250.
  EXPECT_EQ(pairs_of({100, 250}, {101, 151, 201, 251}), (Pairs{{100, 101}, {250, 251}}));
}

TEST(FramePairer, SkipsMainFramesThatAreNotPastTheFormerWideOne) {
  // After wide 201 main 150 and 200 are older than 201 + 25.
  EXPECT_EQ(pairs_of({100, 150, 200, 250}, {201, 251}), (Pairs{{100, 201}, {250, 251}}));
}

TEST(FramePairer, CountsPairsThatAreFarApart) {
  uint64_t loose = 0;
  EXPECT_EQ(pairs_of({100, 150, 200}, {110, 161, 190}, &loose),
            (Pairs{{100, 110}, {150, 161}, {200, 190}}));
  EXPECT_EQ(loose, 1u);  // 11 ms; 10 ms is not more than 10
}

TEST(FramePairer, ARecordingThatBeginsAnewDoesNotStarveIt) {
  EXPECT_EQ(pairs_of({10000, 100, 150}, {10001, 101, 151}),
            (Pairs{{10000, 10001}, {100, 101}, {150, 151}}));
}

TEST(FramePairer, EndlessOldFramesEndWithTheTimeLimit) {
  class Frozen : public FrameSource {
   public:
    Result<Frame> receive(std::chrono::nanoseconds) override {
      Frame frame;
      frame.info.timestamp_sof_ns = 100 * kMs;
      return frame;
    }
    std::string describe() const override { return "frozen"; }
  } main, wide;
  FramePairer pairer(main, wide);
  ASSERT_TRUE(pairer.next(std::chrono::milliseconds(20)));
  const auto pair = pairer.next(std::chrono::milliseconds(20));
  ASSERT_FALSE(pair);
  EXPECT_EQ(pair.error().code(), ErrorCode::Timeout);
}

TEST(DropStatistics, CountsGapsOfIds) {
  DropStatistics drops;
  EXPECT_EQ(drops.step(7), 0u);
  EXPECT_EQ(drops.step(8), 0u);
  EXPECT_EQ(drops.step(11), 2u);
  EXPECT_EQ(drops.step(11), 0u) << "the same again";
  EXPECT_EQ(drops.step(3), 0u) << "the producer began anew";
  EXPECT_EQ(drops.step(4), 0u);
  EXPECT_EQ(drops.total(), 2u);
  DropStatistics wrapped;
  wrapped.step(0xffffffffu);
  EXPECT_EQ(wrapped.step(1), 1u) << "0 is missing";
}

TEST(DropStatistics, TheFirstTenRunsAreExcluded) {
  DropStatistics drops;
  uint32_t id = 0;
  for (int run = 0; run < 10; ++run) {
    drops.step(id += 5);
    EXPECT_EQ(drops.ratio(), 0);
  }
  drops.step(id += 5);  // 4 dropped
  const double alpha = 0.05 / (10 + 0.05);
  EXPECT_NEAR(drops.ratio(), 4 * alpha / (1 + 4 * alpha), 1e-12);
  for (int run = 0; run < 10000; ++run) drops.step(id += 2);
  EXPECT_NEAR(drops.ratio(), 0.5, 1e-6);  // one dropped for each run: f = 1
  drops.reset();
  EXPECT_EQ(drops.ratio(), 0);
  EXPECT_EQ(drops.step(id + 100), 0u);
}

}  // namespace
}  // namespace ignis::pipeline
