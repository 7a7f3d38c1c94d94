#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/driver_monitoring/camera.h"
#include "ignis/pipeline/driver_monitoring/model.h"
#include "ignis/pipeline/frames/frame.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace ignis::pipeline {

/// A model on a thread of its own, so that nobody has to wait longer for it than he wants to, whatever hangs below it.
/// One job at a time; used from one thread. Handing over a run allocates nothing.
///
/// While a job is under way the model belongs to the thread. A job that never ends keeps the thread, the model and the
/// frame it reads; it does not keep the runner: destroying that gives the thread up after a grace time, and whatever the
/// thread holds is freed when it comes back, if ever.
class ModelRunner {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using MakeModel = std::function<Result<std::unique_ptr<Model>>()>;

  /// \param model  may be null until a bind with `make` makes one.
  explicit ModelRunner(std::unique_ptr<Model> model);
  ModelRunner(const ModelRunner&) = delete;
  ModelRunner& operator=(const ModelRunner&) = delete;
  /// Waits at most kBindGrace or kRunGrace for a job under way, then leaves its thread to itself.
  ~ModelRunner();

  /// Starts Model::run(). Not while a job is under way.
  void start_run(const Frame& frame, const std::array<float, 3>& rpy_rad, TimePoint deadline);
  /// Starts Model::bind(); with `make`, on a model that it makes first and that takes the old one's place.
  void start_bind(const FrameLayout& layout, const Camera& camera, MakeModel make = {});
  /// True when no job is under way, at the latest at `deadline`.
  bool wait_until(TimePoint deadline);
  bool is_busy() const;

  /// The outcome of the last run and of the last bind; not while a job is under way.
  const Result<RunTimes>& run_result() const;
  const Status& bind_status() const;
  /// How long the last bind took.
  uint64_t bind_ns() const;
  /// Null while a job is under way.
  Model* model() const;

  /// How long destruction waits for a bind (a compile ends by itself) and for a run.
  static constexpr std::chrono::seconds kBindGrace{20};
  static constexpr std::chrono::milliseconds kRunGrace{200};
  /// Destruction will not wait: the job under way is known to hang.
  void give_up() { has_given_up_ = true; }

 private:
  struct Core;
  std::shared_ptr<Core> core_;  // shared with the thread, which may outlive the runner
  bool has_given_up_ = false;
};

}  // namespace ignis::pipeline
