#include "tools/ignis/dm/live_feed.h"

#include <algorithm>
#include <utility>

namespace ignis::tools {
namespace {
constexpr size_t kTimes = 600;      // half a minute at 20 Hz
constexpr size_t kRateFrames = 60;  // three seconds at 20 Hz
}  // namespace

LiveFeed::LiveFeed() : ring_(kHistory), times_(kTimes), frame_times_ns_(kRateFrames) {}

void LiveFeed::push(const Snapshot& snapshot, const pipeline::Frame* frame) {
  std::optional<NumberedFrame> old;  // let go outside of the lock: it may unmap memory
  {
    const std::scoped_lock lock(mutex_);
    ++newest_;
    Snapshot& slot = ring_[newest_ % kHistory];
    slot = snapshot;
    slot.sequence = newest_;
    slot.state.raw_predictions = {};
    if (snapshot.has_frame) {
      times_[frame_count_ % kTimes] = snapshot.times;
      frame_times_ns_[frame_count_ % kRateFrames] = snapshot.time_ns;
      ++frame_count_;
    }
    if (frame != nullptr && keeps_frames_) {
      old = std::exchange(frame_, NumberedFrame{newest_, *frame});
    }
  }
  changed_.notify_all();
}

void LiveFeed::close() {
  {
    const std::scoped_lock lock(mutex_);
    is_closed_ = true;
    frame_.reset();
    keeps_frames_ = false;
  }
  changed_.notify_all();
}

bool LiveFeed::is_closed() const {
  const std::scoped_lock lock(mutex_);
  return is_closed_;
}

void LiveFeed::read_after(uint64_t sequence, std::chrono::milliseconds timeout, size_t limit,
                          std::vector<Snapshot>& out) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return newest_ > sequence || is_closed_; });
  const uint64_t oldest = newest_ >= kHistory ? newest_ - kHistory + 1 : 1;
  uint64_t from = std::max(sequence + 1, oldest);
  // Someone far behind wants to see now, not to catch up.
  if (newest_ >= from + limit) from = newest_ - limit + 1;
  for (uint64_t n = from; n <= newest_; ++n) out.push_back(ring_[n % kHistory]);
}

std::optional<LiveFeed::NumberedFrame> LiveFeed::take_frame(uint64_t sequence,
                                                            std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] {
    return (frame_.has_value() && frame_->sequence > sequence) || is_closed_;
  });
  if (!frame_.has_value() || frame_->sequence <= sequence) return std::nullopt;
  return std::exchange(frame_, std::nullopt);
}

void LiveFeed::keep_frames(bool keeps) {
  std::optional<NumberedFrame> old;
  const std::scoped_lock lock(mutex_);
  keeps_frames_ = keeps && !is_closed_;
  if (!keeps_frames_) old = std::exchange(frame_, std::nullopt);
}

void LiveFeed::set_sinks(const SinkStates& sinks) {
  const std::scoped_lock lock(mutex_);
  sinks_ = sinks;
}

SinkStates LiveFeed::sinks() const {
  const std::scoped_lock lock(mutex_);
  return sinks_;
}

std::vector<StageSample> LiveFeed::recent_times() const {
  const std::scoped_lock lock(mutex_);
  const size_t count = std::min<uint64_t>(frame_count_, kTimes);
  std::vector<StageSample> out;
  out.reserve(count);
  for (uint64_t n = frame_count_ - count; n < frame_count_; ++n) out.push_back(times_[n % kTimes]);
  return out;
}

double LiveFeed::frames_per_s() const {
  const std::scoped_lock lock(mutex_);
  const uint64_t count = std::min<uint64_t>(frame_count_, kRateFrames);
  if (count < 2) return 0;
  const uint64_t first = frame_times_ns_[(frame_count_ - count) % kRateFrames];
  const uint64_t last = frame_times_ns_[(frame_count_ - 1) % kRateFrames];
  return last > first ? static_cast<double>(count - 1) * 1e9 / static_cast<double>(last - first)
                      : 0;
}

}  // namespace ignis::tools
