#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

namespace ignis::pipeline {

/// Two frames that belong together.
struct FramePair {
  Frame main, wide;
  uint64_t apart_ns = 0;  ///< between their starts of frame
};

/// Pairs the main and the wide camera's frames by their start of frame (section 11.6): main frames are read until one is
/// 25 ms past the former wide frame, then wide frames until one is no more than 25 ms behind it.
class FramePairer {
 public:
  /// Both sources outlive the pairer.
  FramePairer(FrameSource& main, FrameSource& wide) : main_(main), wide_(wide) {}

  /// The next pair within `timeout`. Errors: the source's that ended the wait; then the main frame read so far is gone.
  Result<FramePair> next(std::chrono::nanoseconds timeout);
  /// Pairs whose frames were more than 10 ms apart.
  uint64_t loose_pairs() const { return loose_pairs_; }

 private:
  FrameSource& main_;
  FrameSource& wide_;
  std::optional<uint64_t> last_wide_sof_ns_;
  uint64_t loose_pairs_ = 0;
};

/// Frames that were not run, from the ids of those that were (section 11.6).
class DropStatistics {
 public:
  explicit DropStatistics(double rate_hz = 20) : alpha_(1 / (kTimeConstantS * rate_hz + 1)) {}

  /// A run on this frame begins. Returns the frames dropped before it: the gap of the ids - 1.
  uint32_t step(uint32_t frame_id);
  /// f / (1 + f) of the filtered drops f; 0 during the first 10 runs.
  double ratio() const { return filtered_ / (1 + filtered_); }
  uint64_t total() const { return total_; }
  /// After a fault: what was dropped meanwhile says nothing of the new runner.
  void reset();

 private:
  static constexpr double kTimeConstantS = 10;
  static constexpr int kFirstRuns = 10;
  double alpha_;
  double filtered_ = 0;
  int runs_ = 0;
  uint64_t total_ = 0;
  std::optional<uint32_t> last_id_;
};

}  // namespace ignis::pipeline
