#pragma once

#include "ignis/pipeline/driver_monitoring/host.h"
#include "ignis/pipeline/frames/frame.h"

#include "tools/ignis/dm/stage_times.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace ignis::tools {

/// What the shadow of the attention policy and the gate beside it say; for the display only.
struct AttentionView {
  bool is_there = false;             ///< false: nothing was computed
  bool is_known = false;             ///< false: what the policy needs is unknown
  std::string_view state;            ///< static text: "attentive", "distracted", "unknown"
  std::string_view cause;            ///< static text: "pose", "eyes closed"; may be empty
  std::string_view gate;             ///< static text: what the gate asks for; empty: nothing
  std::string_view gate_cause;       ///< static text
  float filter = 0;                  ///< of the distraction filter, 0 attentive to 1 distracted
  float pitch_rad = 0, yaw_rad = 0;  ///< after the consumer's pose conversion
  bool has_pose = false;
};

/// Everything that is shown of one turn of the pipeline. Plain data: copying it allocates nothing.
struct Snapshot {
  uint64_t sequence = 0;        ///< counts snapshots from 1
  uint64_t time_ns = 0;         ///< of CLOCK_MONOTONIC, when it was made
  bool has_frame = false;       ///< false: the watchdog spoke because no frame came
  pipeline::DriverState state;  ///< without raw predictions
  pipeline::DriverStateQuality quality;
  pipeline::Prediction prediction;
  pipeline::FrameLayout layout;
  StageSample times;
  uint64_t dropped_frames = 0;     ///< since the start
  std::array<float, 3> rpy_rad{};  ///< of the calibration last heard
  bool has_calibration = false;
  AttentionView attention;
};

/// Counters of whoever takes what the pipeline makes. None of them can hold it up.
struct SinkState {
  bool is_on = false;
  uint64_t done = 0;  ///< messages or frames
  uint64_t lost = 0;  ///< given up because the taker was too slow or failed
  uint64_t errors = 0;
  std::array<char, 200> last_error{};  ///< zero-terminated; empty: none
};
struct SinkStates {
  SinkState publish, log, record, view;
};

/// The one place where the pipeline's thread leaves what it made, and where the page and the terminal pick it up. Keeps
/// the newest snapshots and the newest frame: a slow reader misses some, the writer never waits for one.
class LiveFeed {
 public:
  static constexpr size_t kHistory = 256;

  LiveFeed();
  /// Allocates nothing. `frame` may be null; it is kept until the next one, or until a reader took it.
  void push(const Snapshot& snapshot, const pipeline::Frame* frame);
  /// Wakes all readers for good.
  void close();
  bool is_closed() const;

  /// Appends snapshots after `sequence` that are still there, oldest first and at most `limit`; waits up to `timeout`
  /// for the first.
  void read_after(uint64_t sequence, std::chrono::milliseconds timeout, size_t limit,
                  std::vector<Snapshot>& out);
  /// Moves the newest frame with a sequence above `sequence` out, waiting up to `timeout`. One reader only.
  struct NumberedFrame {
    uint64_t sequence = 0;
    pipeline::Frame frame;
  };
  std::optional<NumberedFrame> take_frame(uint64_t sequence, std::chrono::milliseconds timeout);
  /// While false, push() keeps no frame: nobody looks, and a kept frame pins memory.
  void keep_frames(bool keeps);

  void set_sinks(const SinkStates& sinks);
  SinkStates sinks() const;

  /// Stage times of the last frames that were processed, newest last.
  std::vector<StageSample> recent_times() const;
  /// Frames per second over the last few seconds; 0 before the second frame.
  double frames_per_s() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Snapshot> ring_;  ///< kHistory of them; number n lies at n % kHistory
  uint64_t newest_ = 0;
  std::vector<StageSample> times_;  ///< a ring, too
  std::vector<uint64_t> frame_times_ns_;
  uint64_t frame_count_ = 0;
  std::optional<NumberedFrame> frame_;
  bool keeps_frames_ = false;
  bool is_closed_ = false;
  SinkStates sinks_;
};

}  // namespace ignis::tools
