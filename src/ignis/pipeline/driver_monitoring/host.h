#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/driver_monitoring/camera.h"
#include "ignis/pipeline/driver_monitoring/model.h"
#include "ignis/pipeline/frames/frame.h"
#include "ignis/pipeline/messages/calibration.h"
#include "ignis/pipeline/messages/driver_state.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace ignis::pipeline {

struct HostOptions {
  std::vector<Camera> cameras;  ///< empty: known_cameras()
  std::chrono::nanoseconds run_limit = std::chrono::milliseconds(150);
  std::chrono::nanoseconds frame_timeout = std::chrono::milliseconds(250);
  std::chrono::nanoseconds timeout_period =
      std::chrono::milliseconds(500);  ///< of FrameTimeout companions
  std::chrono::nanoseconds stale_after = std::chrono::milliseconds(150);
  std::chrono::nanoseconds calibration_age_limit = std::chrono::milliseconds(2500);
  std::chrono::nanoseconds restart_delay = std::chrono::seconds(1);
  int restart_limit = 3;
  Reasons also_blocking;       ///< beside kBlockingReasons
  bool publishes_raw = false;  ///< fills DriverState::raw_predictions
  uint64_t writer_id = 0;
  /// Makes a model anew after a failed run. May be empty: then it is only bound again.
  std::function<Result<std::unique_ptr<Model>>()> make_model;
  std::function<uint64_t()> now_ns;  ///< empty: monotonic_ns; a test's clock
};

/// What the host says of one frame. Everything in it is by value, or lives until the next call.
struct FrameReport {
  DriverState state;
  DriverStateQuality quality;
  Prediction prediction;  ///< meaningful when quality.valid
  bool has_state = true;  ///< false: only the companion is published (no frame came)
};

struct HostCounters {
  uint64_t frames = 0, valid = 0, rebinds = 0, run_failures = 0, restarts = 0,
           unused_non_finite = 0, dropped = 0;
};

/// From a frame to a driver state that says what is known, why and how old it is. Not thread-safe.
/// Never fails: whatever goes wrong becomes a reason in the report.
class Host {
 public:
  /// `model` may be null with the load's reason (ModelUnavailable, SliceOutOfRange, …): then every report says so.
  Host(std::unique_ptr<Model> model, Reasons load_reasons, HostOptions options);
  ~Host();

  /// Binds before the first frame, so that it does not pay for compiling; process() does it otherwise.
  Status prepare(const FrameLayout& layout);
  FrameReport process(const Frame& frame);
  /// A frame arrived that cannot be used at all (the source's error); counts for the watchdog like no frame.
  std::optional<FrameReport> check_watchdog();
  /// A calibration message came, good or bad.
  void calibrate(const Calibration& calibration);
  const HostCounters& counters() const;
  const Model* model() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ignis::pipeline
