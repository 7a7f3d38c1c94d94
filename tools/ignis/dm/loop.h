#pragma once

#include "ignis/pipeline/driver_monitoring/host.h"
#include "ignis/pipeline/messages/log.h"
#include "ignis/pipeline/messages/wire.h"
#include "ignis/pipeline/transport/calibration_receiver.h"
#include "ignis/pipeline/transport/publisher.h"

#include "tools/ignis/dm/live_feed.h"
#include "tools/ignis/dm/recording.h"
#include "tools/ignis/dm/shadow.h"
#include "tools/ignis/dm/stage_times.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace ignis::tools {

/// Who takes what the pipeline makes. Null or empty: nobody. None of them can hold the pipeline up.
struct LoopSinks {
  pipeline::Publisher* publisher = nullptr;
  pipeline::LogWriter* log = nullptr;
  Recording* recording = nullptr;
  LiveFeed* feed = nullptr;
  Shadow* shadow = nullptr;
  /// Pictures handed to browsers; asked now and then.
  std::function<SinkState()> view_state;
};

enum class EndCause : uint8_t { EndOfStream, TimeOver, Stopped };

/// What a run came to.
struct LoopSummary {
  EndCause end = EndCause::Stopped;
  double seconds = 0;
  uint64_t frames = 0, valid = 0;
  uint64_t timeouts = 0;                                   ///< companions without a frame
  uint64_t dropped = 0;                                    ///< by the source, before we saw them
  uint64_t calibrations = 0;                               ///< messages, good or bad
  std::array<uint64_t, pipeline::kReasonCount> reasons{};  ///< frames and companions with each
  std::map<std::string, uint64_t> source_errors;           ///< by reason or code; no time-outs
  std::string last_source_error;
  StageHistograms times;
  SinkStates sinks;
};

struct LoopOptions {
  double seconds = 0;  ///< 0: until the source ends or `stop`
  std::chrono::nanoseconds wait = std::chrono::milliseconds(50);  ///< for one frame
};

/// The pipeline: calibration, frame, model, publish, log, record, show; again. In the steady state this thread allocates
/// nothing of its own. Ends when the source does, after `seconds`, or within about `wait` of `stop`.
LoopSummary run_loop(pipeline::FrameSource& source, pipeline::Host& host,
                     pipeline::CalibrationReceiver* calibration, const LoopSinks& sinks,
                     const LoopOptions& options, const std::atomic<bool>& stop);

}  // namespace ignis::tools
