#include "ignis/pipeline/driver_monitoring/host.h"

#include "ignis/base/log.h"
#include "ignis/pipeline/driver_monitoring/calibration_gate.h"
#include "ignis/pipeline/driver_monitoring/frame_checks.h"
#include "ignis/pipeline/driver_monitoring/model_keeper.h"
#include "ignis/pipeline/driver_monitoring/validity.h"
#include "ignis/pipeline/driver_monitoring/view_suspect.h"

#include <algorithm>
#include <utility>

namespace ignis::pipeline {
namespace {

uint64_t as_ns(std::chrono::nanoseconds duration) {
  return static_cast<uint64_t>(std::max<int64_t>(duration.count(), 0));
}

/// later - earlier, 0 when they are the other way round.
uint64_t span_ns(uint64_t earlier_ns, uint64_t later_ns) {
  return later_ns > earlier_ns ? later_ns - earlier_ns : 0;
}

float as_seconds(uint64_t duration_ns) {
  return static_cast<float>(static_cast<double>(duration_ns) * 1e-9);
}

void copy_name(std::string_view name, std::array<char, 32>& to) {
  to = {};
  std::copy_n(name.begin(), std::min(name.size(), to.size() - 1), to.begin());
}

/// Reasons for which the model need not look at the frame: what it said would not be published. FrameStale is found at the
/// end; a frame that is too old before the run is so after it.
bool is_readable(Reasons reasons) {
  return !reasons.has(Reason::FrameInvalidFlag) && !reasons.has(Reason::LayoutChanged);
}

}  // namespace

struct Host::State {
  State(std::unique_ptr<Model> model, Reasons load_reasons, HostOptions given)
      : options(std::move(given)),
        blocking(kBlockingReasons | options.also_blocking),
        gate(as_ns(options.calibration_age_limit)),
        keeper(std::move(model), load_reasons, options, counters) {
    if (options.cameras.empty()) use_known_cameras();
    if (options.fixed_rpy_rad) gate.fix(*options.fixed_rpy_rad);
    started_ns = now_ns();
  }

  uint64_t now_ns() const { return options.now_ns ? options.now_ns() : monotonic_ns(); }
  void use_known_cameras();
  const Camera* find_camera_of(const FrameLayout& layout);
  FrameReport start_report(const FrameInfo& info, uint64_t now) const;
  void finish_report(FrameReport& report, Reasons reasons, uint64_t now);
  void look(const Frame& frame, Reasons reasons, const Prediction* prediction);
  Reasons run(const Frame& frame, FrameReport& report);
  Reasons decode(FrameReport& report);

  HostOptions options;
  Reasons blocking;
  HostCounters counters;
  FrameChecks checks;
  CalibrationGate gate;
  ModelKeeper keeper;
  ViewMonitor view;

  // The last answer of find_camera(): layouts change seldom.
  bool has_looked_up = false;
  FrameLayout looked_up_layout;
  std::optional<Camera> looked_up_camera;
  std::string camera_error;              ///< why there is none
  Camera last_camera;                    ///< the last one found; version 1 before
  std::optional<Binding> frame_binding;  ///< of the last frame; kept so that its strings are

  uint64_t started_ns = 0;
  bool has_frame = false;
  FrameInfo last_info;
  uint64_t last_frame_ns = 0;  ///< when process() was last entered
  bool has_timeout_report = false;
  uint64_t last_timeout_report_ns = 0;
};

void Host::State::use_known_cameras() {
  const std::span<const Camera> known = known_cameras();
  options.cameras.assign(known.begin(), known.end());
}

const Camera* Host::State::find_camera_of(const FrameLayout& layout) {
  if (!has_looked_up || looked_up_layout != layout) {
    has_looked_up = true;
    looked_up_layout = layout;
    looked_up_camera.reset();
    Result<Camera> found = find_camera(options.cameras, layout);
    if (found) {
      looked_up_camera = *std::move(found);
      last_camera = *looked_up_camera;
    } else {
      camera_error = found.error().to_string();
      // A source that changes its layout all the time must not fill the log.
      IGNIS_LOG_EVERY_MS(Error, "driver_monitoring", 1000) << camera_error;
    }
  }
  return looked_up_camera ? &*looked_up_camera : nullptr;
}

FrameReport Host::State::start_report(const FrameInfo& info, uint64_t now) const {
  FrameReport report;
  report.state.frame_id = info.frame_id;
  DriverStateQuality& quality = report.quality;
  quality.frame_id = info.frame_id;
  quality.timestamp_sof_ns = info.timestamp_sof_ns;
  quality.timestamp_eof_ns = info.timestamp_eof_ns;
  quality.receive_time_ns = info.receive_time_ns;
  const ModelIdentity& identity = keeper.identity();
  copy_name(identity.profile, quality.profile);
  quality.profile_version = identity.profile_version;
  quality.model_hash = identity.hash;
  quality.writer_id = options.writer_id;
  quality.receive_ns = span_ns(info.receive_time_ns, now);
  return report;
}

/// The one place where a report becomes valid or is emptied.
void Host::State::finish_report(FrameReport& report, Reasons reasons, uint64_t now) {
  DriverStateQuality& quality = report.quality;
  quality.reasons = reasons | gate.reasons(now);
  quality.calibration_age_ns = gate.age_ns(now);
  quality.restarts = static_cast<uint32_t>(counters.restarts);
  quality.valid = (quality.reasons & blocking).is_empty();
  quality.publish_time_ns = now;
  quality.warp_id = published_warp_id(keeper.identity().warp_id, last_camera);
  if (quality.valid) {
    ++counters.valid;
    DriverState& state = report.state;
    state.left = report.prediction.left;
    state.right = report.prediction.right;
    state.wheel_on_right_prob = report.prediction.wheel_on_right_prob;
    quality.known_left = report.prediction.known_left;
    quality.known_right = report.prediction.known_right;
    quality.known_wheel = report.prediction.known_wheel;
    if (options.publishes_raw) state.raw_predictions = std::as_bytes(keeper.model()->output());
    return;
  }
  report.prediction = Prediction();
}

Reasons Host::State::run(const Frame& frame, FrameReport& report) {
  if (frame.memory != nullptr && !frame.memory->is_intact()) return Reason::FrameOverwritten;
  const uint64_t start_ns = now_ns();
  report.quality.receive_ns = span_ns(frame.info.receive_time_ns, start_ns);
  const ModelKeeper::Outcome outcome = keeper.run(frame, gate.rpy_rad(), start_ns);
  const RunTimes& times = outcome.times;
  report.state.model_execution_time_s = as_seconds(span_ns(start_ns, now_ns()));
  report.state.gpu_execution_time_s =
      as_seconds(times.warp_ns + times.model_ns + times.read_back_ns);
  report.quality.upload_ns = times.upload_ns;
  report.quality.warp_ns = times.warp_ns;
  report.quality.model_ns = times.model_ns;
  report.quality.read_back_ns = times.read_back_ns;
  report.quality.queue_ns = times.queue_ns;
  report.quality.device_ns = times.device_ns;
  Reasons reasons = outcome.reasons;
  // The producer may have come round to the slot while the model read it.
  if (frame.memory != nullptr && !frame.memory->is_intact()) reasons |= Reason::FrameOverwritten;
  if (reasons.is_empty()) reasons = decode(report);
  return reasons;
}

Reasons Host::State::decode(FrameReport& report) {
  const uint64_t start_ns = now_ns();
  const Decoded decoded = keeper.model()->decode();
  report.prediction = decoded.prediction;
  Reasons reasons = decoded.reasons;
  clear_unknown(report.prediction);
  reasons |= check_values(report.prediction);
  if (reasons.has(Reason::NonFinite)) copy_name(decoded.head, report.quality.non_finite_head);
  if ((reasons & blocking).is_empty()) reasons |= check_confidence(report.prediction);
  counters.unused_non_finite += decoded.unused_non_finite;
  report.quality.decode_ns = span_ns(start_ns, now_ns());
  return reasons;
}

void Host::State::look(const Frame& frame, Reasons reasons, const Prediction* prediction) {
  // What is not surely the next picture of this camera says nothing about the view.
  const Reasons unfit = Reasons(Reason::FrameOverwritten) | Reason::FrameRepeated |
                        Reason::FrameIdBackwards | Reason::ClockJump;
  if (!options.watches_view || !is_readable(reasons) || !(reasons & unfit).is_empty()) return;
  view.update(frame, prediction);
}

uint32_t published_warp_id(uint32_t model_warp_id, const Camera& camera) {
  return (model_warp_id << 16) | (camera.version & 0xFFFFU);
}

Result<bool> parse_switch(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  for (const std::string_view on : {"1", "true", "yes", "on"}) {
    if (lower == on) return true;
  }
  for (const std::string_view off : {"", "0", "false", "no", "off"}) {
    if (lower == off) return false;
  }
  return Error(ErrorCode::InvalidArgument,
               "'" + std::string(text) + "' is neither on nor off; say true or false.");
}

Host::Host(std::unique_ptr<Model> model, Reasons load_reasons, HostOptions options)
    : state_(std::make_unique<State>(std::move(model), load_reasons, std::move(options))) {}

Host::~Host() = default;

Status Host::prepare(const FrameLayout& layout) {
  IGNIS_TRY_ASSIGN(const Camera camera, find_camera(state_->options.cameras, layout));
  state_->last_camera = camera;
  Binding binding;
  binding.layout = layout;
  binding.camera = camera;
  return state_->keeper.prepare(binding, state_->now_ns());
}

FrameReport Host::process(const Frame& frame) {
  State& s = *state_;
  const uint64_t now = s.now_ns();
  ++s.counters.frames;
  FrameReport report = s.start_report(frame.info, now);
  s.has_frame = true;
  s.last_info = frame.info;
  s.last_frame_ns = now;
  s.has_timeout_report = false;

  const FrameChecks::Outcome checked = s.checks.check(frame.info, now);
  Reasons reasons = checked.reasons;
  report.quality.dropped_frames = checked.dropped;
  s.counters.dropped += checked.dropped;
  if (!holds_its_layout(frame)) reasons |= Reason::LayoutChanged;

  const Binding* target = nullptr;
  if (is_readable(reasons)) {
    if (const Camera* camera = s.find_camera_of(frame.layout)) {
      if (!s.frame_binding) s.frame_binding.emplace();
      s.frame_binding->layout = frame.layout;
      s.frame_binding->camera = *camera;
      s.frame_binding->has_producer = true;
      s.frame_binding->server_id = frame.info.server_id;
      s.frame_binding->generation = frame.info.generation;
      target = &*s.frame_binding;
    } else {
      reasons |= Reason::UnknownGeometry;
    }
  }
  reasons |= s.keeper.make_ready(target, now);

  const uint64_t age_limit_ns = as_ns(s.options.stale_after);
  const auto age_ns = [&] { return span_ns(frame.info.timestamp_sof_ns, s.now_ns()); };
  if (age_ns() > age_limit_ns) reasons |= Reason::FrameStale;
  if (((reasons | s.gate.reasons(now)) & s.blocking).is_empty()) reasons |= s.run(frame, report);

  const bool is_trusted = (reasons & s.blocking).is_empty();
  s.look(frame, reasons, is_trusted ? &report.prediction : nullptr);
  if (s.view.fault() != ViewFault::None) reasons |= Reason::ViewSuspect;

  const uint64_t end = s.now_ns();
  report.quality.frame_age_ns = span_ns(frame.info.timestamp_sof_ns, end);
  if (report.quality.frame_age_ns > age_limit_ns) reasons |= Reason::FrameStale;
  s.finish_report(report, reasons, end);
  return report;
}

std::optional<FrameReport> Host::check_watchdog() {
  State& s = *state_;
  const uint64_t now = s.now_ns();
  const uint64_t since_ns = s.has_frame ? s.last_frame_ns : s.started_ns;
  if (span_ns(since_ns, now) <= as_ns(s.options.frame_timeout)) return std::nullopt;
  if (s.has_timeout_report &&
      span_ns(s.last_timeout_report_ns, now) < as_ns(s.options.timeout_period)) {
    return std::nullopt;
  }
  s.has_timeout_report = true;
  s.last_timeout_report_ns = now;
  FrameReport report = s.start_report(s.last_info, now);
  report.has_state = false;
  report.quality.receive_ns = 0;  // nothing was received
  report.quality.frame_age_ns =
      s.has_frame ? span_ns(s.last_info.timestamp_sof_ns, now) : kUnknownAge;
  s.finish_report(report, s.keeper.standing_reasons() | Reason::FrameTimeout, now);
  return report;
}

void Host::calibrate(const Calibration& calibration) {
  state_->gate.receive(calibration, state_->now_ns());
}

void Host::set_cameras(std::vector<Camera> cameras) {
  state_->options.cameras = std::move(cameras);
  if (state_->options.cameras.empty()) state_->use_known_cameras();
  state_->has_looked_up = false;
}

void Host::restart() { state_->keeper.restart(); }

const HostCounters& Host::counters() const { return state_->counters; }
const Model* Host::model() const { return state_->keeper.model(); }
const std::string& Host::last_error() const {
  const bool has_no_camera = state_->has_looked_up && !state_->looked_up_camera;
  return has_no_camera ? state_->camera_error : state_->keeper.last_error();
}
std::string_view Host::view_fault() const { return to_string(state_->view.fault()); }

}  // namespace ignis::pipeline
