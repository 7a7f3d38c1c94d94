#include "ignis/pipeline/driver_monitoring/model_keeper.h"

#include "ignis/base/log.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr const char* kArea = "driver_monitoring";

bool is_same_camera(const Camera& a, const Camera& b) {
  return a.name == b.name && a.version == b.version && a.sensor_id == b.sensor_id &&
         a.width_px == b.width_px && a.height_px == b.height_px && a.focal_px == b.focal_px &&
         a.center_x_px == b.center_x_px && a.center_y_px == b.center_y_px &&
         a.pose_focal_px == b.pose_focal_px;
}

uint64_t as_ns(std::chrono::nanoseconds duration) {
  return static_cast<uint64_t>(std::max<int64_t>(duration.count(), 0));
}

std::string describe(const Binding& binding) {
  return std::to_string(binding.layout.width_px) + "x" + std::to_string(binding.layout.height_px) +
         " of camera '" + binding.camera.name + "' version " +
         std::to_string(binding.camera.version) + ", server " + std::to_string(binding.server_id) +
         ", generation " + std::to_string(binding.generation);
}

}  // namespace

bool Binding::fits(const Binding& frame) const {
  return layout == frame.layout && is_same_camera(camera, frame.camera) &&
         (!has_producer || (server_id == frame.server_id && generation == frame.generation));
}

ModelKeeper::ModelKeeper(std::unique_ptr<Model> model, Reasons load_reasons,
                         const HostOptions& options, HostCounters& counters)
    : options_(options), counters_(counters), standing_(load_reasons) {
  if (model != nullptr && load_reasons.is_empty()) {
    runner_ = std::make_unique<ModelRunner>(std::move(model));
    adopt_identity();
    return;
  }
  // A model that came with a reason against it is not run either.
  phase_ = Phase::Unavailable;
  standing_ |= Reason::ModelUnavailable;
  last_error_ = "No model was loaded.";
}

bool ModelKeeper::adopt_identity() {
  const Model* made = runner_->model();
  if (made == nullptr) return false;
  const ModelIdentity& other = made->identity();
  if (has_identity_ &&
      (other.hash != identity_.hash || other.profile != identity_.profile ||
       other.profile_version != identity_.profile_version || other.warp_id != identity_.warp_id)) {
    return false;
  }
  identity_ = other;
  has_identity_ = true;
  return true;
}

const Model* ModelKeeper::model() const { return runner_ != nullptr ? runner_->model() : nullptr; }

bool ModelKeeper::is_bound_to(const Binding& target) {
  if (!bound_ || !bound_->fits(target)) return false;
  if (!bound_->has_producer && target.has_producer) {
    // Bound ahead of the frames: their producer is the first, not a new one.
    bound_->has_producer = true;
    bound_->server_id = target.server_id;
    bound_->generation = target.generation;
    last_bound_ = bound_;
  }
  return true;
}

void ModelKeeper::start_bind(const Binding& target, uint64_t now_ns) {
  pending_ = target;
  bound_.reset();
  phase_ = Phase::Binding;
  bind_started_ns_ = now_ns;
  runner_->start_bind(target.layout, target.camera);
}

void ModelKeeper::start_restart(const Binding& target, uint64_t now_ns) {
  ++tries_;
  ++counters_.restarts;
  const bool hangs = runner_ != nullptr && runner_->is_busy();
  if (hangs && !options_.make_model) {
    fail(Reason::RunTimeout, "The model still hangs in its last job and nothing can make another.",
         now_ns);
    return;
  }
  if (runner_ == nullptr || hangs) {
    if (hangs) runner_->give_up();
    runner_ = std::make_unique<ModelRunner>(nullptr);
  }
  pending_ = target;
  bound_.reset();
  refused_.reset();
  phase_ = Phase::Restarting;
  bind_started_ns_ = now_ns;
  runner_->start_bind(target.layout, target.camera, options_.make_model);
}

void ModelKeeper::finish_bind(uint64_t now_ns) {
  const Status& status = runner_->bind_status();
  counters_.last_bind_ns = runner_->bind_ns();
  if (!status) {
    const ErrorCode code = status.error().code();
    const bool is_refused = runner_->model() != nullptr &&
                            (code == ErrorCode::Unsupported || code == ErrorCode::InvalidArgument);
    if (!is_refused) {
      fail(code == ErrorCode::Timeout ? Reason::RunTimeout : Reason::RunFailed,
           status.error().to_string(), now_ns);
      return;
    }
    // The model is sound, these frames are not for it: no restart will help, other frames will.
    last_error_ = status.error().to_string();
    IGNIS_LOG_EVERY_MS(Error, kArea, 1000)
        << "The model refuses " << describe(pending_) << ": " << last_error_;
    refused_ = pending_;
    phase_ = Phase::Ready;
    standing_ = Reasons();
    return;
  }
  if (!adopt_identity()) {
    fail(Reason::ArtifactMismatch, "The model that was made anew is not the one of the start.",
         now_ns);
    return;
  }
  if (phase_ == Phase::Restarting) {
    IGNIS_LOG(Warning, kArea) << "The model runs again after try " << tries_ << " of "
                              << options_.restart_limit << ".";
  }
  if (last_bound_ && !last_bound_->fits(pending_)) {
    ++counters_.rebinds;
    IGNIS_LOG_EVERY_MS(Warning, kArea, 1000)
        << "The frames changed from " << describe(*last_bound_) << " to " << describe(pending_)
        << "; the model is bound anew (change " << counters_.rebinds << ").";
  }
  bound_ = last_bound_ = pending_;
  refused_.reset();
  phase_ = Phase::Ready;
  standing_ = Reasons();
}

void ModelKeeper::fail(Reasons cause, std::string error, uint64_t now_ns) {
  ++counters_.run_failures;
  last_error_ = std::move(error);
  good_runs_ = 0;
  bound_.reset();
  standing_ = cause;
  if (tries_ >= options_.restart_limit) {
    phase_ = Phase::Unavailable;
    standing_ |= Reason::ModelUnavailable;
    IGNIS_LOG(Error, kArea) << "The model is unavailable after " << tries_
                            << " restarts: " << last_error_;
    return;
  }
  phase_ = Phase::Waiting;
  next_try_ns_ = now_ns + as_ns(options_.restart_delay);
  IGNIS_LOG(Warning, kArea) << "The model failed; restart " << tries_ + 1 << " of "
                            << options_.restart_limit << " follows: " << last_error_;
}

Status ModelKeeper::prepare(const Binding& binding, uint64_t now_ns) {
  const Reasons reasons = make_ready(&binding, now_ns);
  if (phase_ == Phase::Binding || phase_ == Phase::Restarting) {
    if (!runner_->wait_until(std::chrono::steady_clock::now() + options_.bind_limit)) {
      return Error(ErrorCode::Timeout,
                   "Binding the model to " + describe(binding) + " takes longer than its limit.");
    }
    finish_bind(now_ns);
  }
  if (phase_ == Phase::Unavailable)
    return Error(ErrorCode::NotFound, last_error_, "ModelUnavailable");
  if (phase_ == Phase::Ready && is_bound_to(binding)) return Status::ok();
  const ErrorCode code = reasons.has(Reason::UnknownGeometry) || refused_ ? ErrorCode::Unsupported
                         : standing_.has(Reason::RunTimeout)              ? ErrorCode::Timeout
                                                                          : ErrorCode::Internal;
  return Error(code, last_error_);
}

Reasons ModelKeeper::make_ready(const Binding* target, uint64_t now_ns) {
  // A bind that ends at once may have been for a former target: then one more is started, and no third.
  for (int started = 0;; ++started) {
    if (phase_ == Phase::Binding || phase_ == Phase::Restarting) {
      if (!runner_->is_busy()) {
        finish_bind(now_ns);
      } else if (now_ns - bind_started_ns_ > as_ns(options_.bind_limit)) {
        runner_->give_up();
        fail(Reason::RunTimeout, "Binding the model does not end within its limit.", now_ns);
      } else {
        return phase_ == Phase::Binding ? Reasons(Reason::LayoutChanged) : standing_;
      }
    }
    if (phase_ == Phase::Unavailable) return standing_;
    if (target == nullptr) return standing_;
    if (phase_ == Phase::Ready) {
      if (is_bound_to(*target)) return Reasons();
      if (refused_ && refused_->fits(*target)) return Reason::UnknownGeometry;
    } else if (now_ns < next_try_ns_) {
      return standing_;
    }
    if (started == 2) return standing_ | Reason::LayoutChanged;

    if (phase_ == Phase::Ready) {
      start_bind(*target, now_ns);
    } else {
      start_restart(*target, now_ns);
      if (phase_ != Phase::Restarting) return standing_;  // it failed at once
    }
    // The frame that asks for it waits as long as for a run; those that come meanwhile do not.
    runner_->wait_until(std::chrono::steady_clock::now() + options_.run_limit);
  }
}

ModelKeeper::Outcome ModelKeeper::run(const Frame& frame, const std::array<float, 3>& rpy_rad,
                                      uint64_t now_ns) {
  // The model's own deadline lies a little before the watch's: one that keeps it ends by itself and is not given up.
  const auto start = std::chrono::steady_clock::now();
  runner_->start_run(frame, rpy_rad, start + options_.run_limit * 9 / 10);
  Outcome outcome;
  if (!runner_->wait_until(start + options_.run_limit)) {
    runner_->give_up();
    fail(Reason::RunTimeout, "The model's run does not end within its limit.", now_ns);
    outcome.reasons = standing_;
    return outcome;
  }
  const Result<RunTimes>& result = runner_->run_result();
  if (!result) {
    const bool is_timeout = result.error().code() == ErrorCode::Timeout;
    fail(is_timeout ? Reason::RunTimeout : Reason::RunFailed, result.error().to_string(), now_ns);
    outcome.reasons = standing_;
    return outcome;
  }
  outcome.times = *result;
  if (good_runs_ < kForgivingRuns && ++good_runs_ == kForgivingRuns) tries_ = 0;
  return outcome;
}

void ModelKeeper::restart() {
  if (phase_ != Phase::Unavailable) return;
  if (runner_ == nullptr && !options_.make_model) return;
  phase_ = Phase::Waiting;
  next_try_ns_ = 0;
  tries_ = 0;
}

}  // namespace ignis::pipeline
