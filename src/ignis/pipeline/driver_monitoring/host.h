#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/driver_monitoring/camera.h"
#include "ignis/pipeline/driver_monitoring/model.h"
#include "ignis/pipeline/frames/frame.h"
#include "ignis/pipeline/messages/calibration.h"
#include "ignis/pipeline/messages/driver_state.h"

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
  /// Of one Model::bind(), compiling included; past it the model counts as hung.
  std::chrono::nanoseconds bind_limit = std::chrono::seconds(60);
  int restart_limit = 3;
  Reasons also_blocking;       ///< beside kBlockingReasons
  bool publishes_raw = false;  ///< fills DriverState::raw_predictions of valid states
  bool watches_view = true;    ///< looks for ViewSuspect
  uint64_t writer_id = 0;
  /// Angles known for good (a bench, a picture): calibration messages are then ignored and none is missed.
  std::optional<std::array<float, 3>> fixed_rpy_rad;
  /// Makes a model anew after a failed run. May be empty: then it is only bound again. Called on a thread of the host that
  /// outlives the host if this hangs: it owns what it needs.
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
  uint64_t last_bind_ns = 0;  ///< the last bind took, compiling included
};

/// The `warp_id` of a companion: the model's kind of warp in the upper half, the camera's version in the lower. So whoever
/// converts poses with the constants of a camera can see that the producer has the same ones.
uint32_t published_warp_id(uint32_t model_warp_id, const Camera& camera);

/// An on/off option given as text: "1", "true", "yes", "on"; "0", "false", "no", "off" and nothing at all mean off. In any
/// case of letters. Errors: InvalidArgument for anything else: a word nobody knows switches nothing on.
Result<bool> parse_switch(std::string_view text);

/// From a frame to a driver state that says what is known, why and how old it is. Not thread-safe.
/// Never fails: whatever goes wrong becomes a reason in the report. No call but prepare() and the destructor waits longer
/// than twice `run_limit` (a bind, then a run): the model runs on a thread of its own, and one that hangs is left to itself.
class Host {
 public:
  /// `model` may be null with the load's reason (ModelUnavailable, SliceOutOfRange, …): then every report says so.
  Host(std::unique_ptr<Model> model, Reasons load_reasons, HostOptions options);
  /// Waits for a compile or a run that is under way, but not for ever (model_runner.h).
  ~Host();

  /// Binds before the first frame, so that it does not pay for compiling; process() does it otherwise. Waits `bind_limit`
  /// at most. Errors: as find_camera() and Model::bind(); NotFound with reason "ModelUnavailable"; Timeout.
  Status prepare(const FrameLayout& layout);
  /// What is known after this frame. A frame of another layout, server, generation or camera first binds the model anew;
  /// when that takes longer than `run_limit` it goes on beside the frames, which are LayoutChanged until it is done.
  FrameReport process(const Frame& frame);
  /// A FrameTimeout companion when no frame was processed for `frame_timeout`, and again every `timeout_period`. To be
  /// called whenever the source gives no frame, whatever error it tells.
  std::optional<FrameReport> check_watchdog();
  /// A calibration message came, good or bad. Needs no frame.
  void calibrate(const Calibration& calibration);
  /// Other cameras (intrinsics) from the next frame on; empty: known_cameras(). Binds anew when the frames' camera changed.
  void set_cameras(std::vector<Camera> cameras);
  /// Ends ModelUnavailable: allows `restart_limit` tries more, the first one at the next frame. The only way out of it, so
  /// that somebody decided. Without `make_model` a host that was given no model stays without.
  void restart();

  const HostCounters& counters() const;
  /// Null while there is none or it is busy (binding, restarting, hung). Until the next call of process() or prepare().
  const Model* model() const;
  /// Why the last frame has no camera, else why the last bind or run failed, as a sentence; empty when none did.
  const std::string& last_error() const;
  /// Why the view is suspect ("dark", "frozen"); "none" when it is not.
  std::string_view view_fault() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ignis::pipeline
