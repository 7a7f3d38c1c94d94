#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/driver_monitoring/camera.h"
#include "ignis/pipeline/driver_monitoring/host.h"
#include "ignis/pipeline/driver_monitoring/model_runner.h"
#include "ignis/pipeline/frames/frame.h"
#include "ignis/pipeline/messages/driver_state.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace ignis::pipeline {

/// What a model is made ready for. Two that differ in anything need a new bind: a producer that started anew may show
/// another memory under an old address, another camera has another matrix.
struct Binding {
  FrameLayout layout;
  Camera camera;
  bool has_producer = false;  ///< false: made ahead of the frames, fits any producer
  uint64_t server_id = 0, generation = 0;

  /// True when a model bound to this can take frames of `frame`, which has a producer.
  bool fits(const Binding& frame) const;
};

/// Keeps a model bound to the frames that come, and alive: binds, watches the deadline of each run, restarts after a
/// failure a bounded number of times.
///
///     Ready ── run fails or hangs ──► Waiting ── delay ──► Restarting ── bound ──► Ready
///                                        ▲                      │ fails
///                                        └── tries left ◄───────┴── none left ──► Unavailable
class ModelKeeper {
 public:
  /// Runs in a row that clear the count of tries: a model that fails now and then has each time all its tries, one that fails
  /// soon after each restart does not go on for ever.
  static constexpr int kForgivingRuns = 100;

  /// \param options   outlives the keeper.
  /// \param counters  outlives the keeper.
  ModelKeeper(std::unique_ptr<Model> model, Reasons load_reasons, const HostOptions& options,
              HostCounters& counters);

  /// Binds and waits for it, `bind_limit` at most.
  Status prepare(const Binding& binding, uint64_t now_ns);
  /// Moves on what is under way and binds anew where `target` asks for it (null: only the former). Waits `run_limit` at most.
  /// \return why a frame of `target` cannot be run; empty when it can.
  Reasons make_ready(const Binding* target, uint64_t now_ns);

  struct Outcome {
    Reasons reasons;  ///< RunFailed, RunTimeout
    RunTimes times;
  };
  /// Runs one frame; make_ready() said that it can. Waits `run_limit` at most.
  Outcome run(const Frame& frame, const std::array<float, 3>& rpy_rad, uint64_t now_ns);

  void restart();

  /// The reasons that stand whatever the frames are: of the load, of a failure that is not over, ModelUnavailable.
  Reasons standing_reasons() const { return standing_; }
  /// Null while it is busy or absent.
  const Model* model() const;
  /// Of the model first given or made; empty strings without one.
  const ModelIdentity& identity() const { return identity_; }
  const std::string& last_error() const { return last_error_; }

 private:
  enum class Phase { Ready, Binding, Waiting, Restarting, Unavailable };

  bool is_bound_to(const Binding& target);
  void start_bind(const Binding& target, uint64_t now_ns);
  void start_restart(const Binding& target, uint64_t now_ns);
  void finish_bind(uint64_t now_ns);
  void fail(Reasons cause, std::string error, uint64_t now_ns);
  bool adopt_identity();

  const HostOptions& options_;
  HostCounters& counters_;
  std::unique_ptr<ModelRunner> runner_;
  ModelIdentity identity_;
  bool has_identity_ = false;
  Phase phase_ = Phase::Ready;
  Reasons standing_;
  std::optional<Binding> bound_;  ///< what the model is ready for
  std::optional<Binding>
      last_bound_;                  ///< the same, kept over failures: what a change is measured by
  std::optional<Binding> refused_;  ///< what the model cannot be made ready for
  Binding pending_;                 ///< of the bind under way
  uint64_t bind_started_ns_ = 0;
  uint64_t next_try_ns_ = 0;
  int tries_ = 0;
  int good_runs_ = 0;
  std::string last_error_;
};

}  // namespace ignis::pipeline
