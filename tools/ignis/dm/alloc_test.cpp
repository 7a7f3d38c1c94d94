// From the tenth frame on the pipeline's thread allocates nothing, with everybody listening. A program of its own: it
// counts every operator new.
#include "ignis/pipeline/driver_monitoring/testing/test_fake_model.h"
#include "ignis/pipeline/frames/test_scripted_source.h"

#include "tests/support/count_allocations.h"
#include "tools/ignis/dm/loop.h"
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

namespace ignis::tools {
namespace {

/// Few frames of memory, many frames long; keeps the thread's count at each.
class CountingSource : public pipeline::FrameSource {
 public:
  CountingSource(pipeline::ScriptedSource& script, int frames)
      : counts(static_cast<size_t>(frames)) {
    for (int i = 0; i < 4; ++i) frames_.push_back(script.receive({}).value());
  }
  Result<pipeline::Frame> receive(std::chrono::nanoseconds) override {
    if (next_ == counts.size()) return Error(ErrorCode::NotFound, "It is over.", "EndOfStream");
    counts[next_] = testing::thread_allocation_count();
    pipeline::Frame frame = frames_[next_ % frames_.size()];
    frame.info.frame_id = static_cast<uint32_t>(++next_);
    frame.info.timestamp_sof_ns = frame.info.timestamp_eof_ns = frame.info.receive_time_ns =
        pipeline::monotonic_ns();
    return frame;
  }
  std::string describe() const override { return "counting"; }

  std::vector<int64_t> counts;

 private:
  std::vector<pipeline::Frame> frames_;
  size_t next_ = 0;
};

TEST(Allocations, NoneFromTheTenthFrameOn) {
  char folder[] = "/tmp/ignis-dm-alloc-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  pipeline::ScriptedSource script(pipeline::nv12_layout(1344, 760).value());
  script.add_frames(4);
  constexpr int kFrames = 60;
  CountingSource source(script, kFrames);
  pipeline::Host host(
      std::make_unique<pipeline::FakeModel>(std::make_shared<pipeline::FakeScript>()), {}, {});
  ASSERT_TRUE(host.prepare(pipeline::nv12_layout(1344, 760).value()));
  auto log = pipeline::LogWriter::open(std::string(folder) + "/log");
  ASSERT_TRUE(log);
  auto publisher = pipeline::Publisher::open("tcp://127.0.0.1:*");
  ASSERT_TRUE(publisher) << publisher.error().to_string();
  auto recording = Recording::open(std::string(folder) + "/clip.nv12", 20);
  ASSERT_TRUE(recording);
  LiveFeed feed;
  feed.keep_frames(true);
  Shadow shadow(pipeline::known_cameras(), pipeline::Side::Left, pipeline::monotonic_ns());
  LoopSinks sinks;
  sinks.log = &*log;
  sinks.publisher = &*publisher;
  sinks.recording = recording->get();
  sinks.feed = &feed;
  sinks.shadow = &shadow;
  const std::atomic<bool> stop{false};
  const LoopSummary summary = run_loop(source, host, nullptr, sinks, {}, stop);
  EXPECT_EQ(summary.valid, static_cast<uint64_t>(kFrames));
  for (size_t i = 10; i + 1 < source.counts.size(); ++i)
    EXPECT_EQ(source.counts[i + 1] - source.counts[i], 0u) << "frame " << i + 1;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ignis::tools
