#include "tools/ignis/dm/loop.h"

#include "ignis/base/log.h"

#include <algorithm>
#include <cmath>

namespace ignis::tools {
namespace {

using pipeline::Frame;
using pipeline::FrameReport;
using pipeline::monotonic_ns;
using pipeline::Topic;

/// Angles that the policy may use: what the host's gate lets through.
bool is_usable(const pipeline::Calibration& c) {
  return c.valid && c.status == pipeline::CalibrationStatus::Calibrated && c.rpy_rad.size() == 3 &&
         std::all_of(c.rpy_rad.begin(), c.rpy_rad.end(),
                     [](float v) { return std::isfinite(v) && std::fabs(v) <= 0.5f; });
}

class Loop {
 public:
  Loop(pipeline::FrameSource& source, pipeline::Host& host,
       pipeline::CalibrationReceiver* calibration, const LoopSinks& sinks)
      : source_(source), host_(host), calibration_(calibration), sinks_(sinks) {}

  /// One turn; false when the source has ended.
  bool turn(std::chrono::nanoseconds wait);
  void update_sinks();
  LoopSummary& summary() { return summary_; }

 private:
  void poll_calibration();
  void take_frame(const Frame& frame);
  void note_source_error(const Error& error);
  void send(const FrameReport& report, uint64_t now_ns);
  void show(const FrameReport& report, const Frame* frame, const StageSample& times);

  pipeline::FrameSource& source_;
  pipeline::Host& host_;
  pipeline::CalibrationReceiver* calibration_;
  const LoopSinks& sinks_;
  pipeline::EventWriter writer_;
  LoopSummary summary_;
  SinkState publish_, log_;
  std::optional<std::array<float, 3>> rpy_rad_;
  pipeline::FrameLayout layout_;
};

void Loop::poll_calibration() {
  if (calibration_ == nullptr) return;
  const std::optional<pipeline::Calibration> message = calibration_->poll();
  if (!message) return;
  ++summary_.calibrations;
  host_.calibrate(*message);
  if (is_usable(*message))
    rpy_rad_ = {message->rpy_rad[0], message->rpy_rad[1], message->rpy_rad[2]};
  if (sinks_.log == nullptr) return;
  // A replay needs the angles as they came, the refused ones too.
  if (const auto bytes = writer_.calibration(*message)) (void)sinks_.log->append_event(*bytes);
}

/// Publishes and logs a report: the state first, then its companion.
void Loop::send(const FrameReport& report, uint64_t now_ns) {
  const auto take = [this](Topic topic, const Result<std::span<const std::byte>>& bytes) {
    if (!bytes) {
      ++publish_.errors;
      note_error(publish_, bytes.error());
      return;
    }
    if (sinks_.publisher != nullptr) {
      if (const Status status = sinks_.publisher->send(topic, *bytes); status) {
        ++publish_.done;
      } else {
        ++publish_.lost;
        ++publish_.errors;
        note_error(publish_, status.error());
      }
    }
    if (sinks_.log != nullptr) {
      if (topic == Topic::DriverStateV2) (void)sinks_.log->append_event(*bytes);
      else (void)sinks_.log->append_quality(*bytes);
    }
  };
  if (sinks_.publisher == nullptr && sinks_.log == nullptr) return;
  if (report.has_state)
    take(Topic::DriverStateV2, writer_.driver_state(report.state, report.quality.valid, now_ns));
  take(Topic::DriverStateQuality, writer_.quality(report.quality));
}

void Loop::show(const FrameReport& report, const Frame* frame, const StageSample& times) {
  for (size_t i = 0; i < summary_.reasons.size(); ++i) {
    if (report.quality.reasons.has(static_cast<pipeline::Reason>(i))) ++summary_.reasons[i];
  }
  if (sinks_.feed == nullptr) return;
  Snapshot snapshot;
  snapshot.time_ns = monotonic_ns();
  snapshot.has_frame = frame != nullptr;
  snapshot.state = report.state;
  snapshot.quality = report.quality;
  snapshot.prediction = report.prediction;
  snapshot.layout = layout_;
  snapshot.times = times;
  snapshot.dropped_frames = source_.dropped_count();
  if (rpy_rad_) {
    snapshot.has_calibration = true;
    snapshot.rpy_rad = *rpy_rad_;
  }
  if (sinks_.shadow != nullptr)
    snapshot.attention = sinks_.shadow->step(&report, layout_, rpy_rad_, snapshot.time_ns);
  sinks_.feed->push(snapshot, frame);
}

void Loop::take_frame(const Frame& frame) {
  layout_ = frame.layout;
  const FrameReport report = host_.process(frame);
  const uint64_t ready_ns = monotonic_ns();
  send(report, ready_ns);
  const uint64_t sent_ns = monotonic_ns();

  const pipeline::DriverStateQuality& q = report.quality;
  StageSample times;
  times[Stage::Receive] = q.receive_ns;
  times[Stage::Upload] = q.upload_ns;
  times[Stage::Warp] = q.warp_ns;
  times[Stage::Model] = q.model_ns;
  times[Stage::ReadBack] = q.read_back_ns;
  times[Stage::Decode] = q.decode_ns;
  times[Stage::Publish] = sent_ns - ready_ns;
  times[Stage::Total] =
      sent_ns > frame.info.receive_time_ns ? sent_ns - frame.info.receive_time_ns : 0;
  ++summary_.frames;
  if (q.valid) ++summary_.valid;
  summary_.times.add(times);
  // What follows is for people and comes after the message is out.
  if (sinks_.recording != nullptr) sinks_.recording->offer(frame);
  show(report, &frame, times);
}

void Loop::note_source_error(const Error& error) {
  const std::string& reason = error.reason();
  ++summary_.source_errors[reason.empty() ? std::string(to_string(error.code())) : reason];
  summary_.last_source_error = error.message();
  IGNIS_LOG_EVERY_MS(Warning, "dm", 1000) << error.message();
}

bool Loop::turn(std::chrono::nanoseconds wait) {
  poll_calibration();
  Result<Frame> frame = source_.receive(wait);
  if (frame) {
    take_frame(*frame);
    return true;
  }
  const Error& error = frame.error();
  if (error.code() == ErrorCode::NotFound && error.reason() == "EndOfStream") return false;
  if (error.code() != ErrorCode::Timeout) note_source_error(error);
  if (const std::optional<FrameReport> report = host_.check_watchdog()) {
    ++summary_.timeouts;
    send(*report, monotonic_ns());
    show(*report, nullptr, {});
  }
  return true;
}

void Loop::update_sinks() {
  SinkStates& states = summary_.sinks;
  publish_.is_on = sinks_.publisher != nullptr;
  states.publish = publish_;
  if (sinks_.log != nullptr) {
    const pipeline::LogCounters counters = sinks_.log->counters();
    log_.is_on = true;
    log_.done = counters.written;
    log_.lost = counters.lost;
    if (const std::optional<Error> error = sinks_.log->take_error()) {
      ++log_.errors;
      note_error(log_, *error);
      IGNIS_LOG(Warning, "dm") << error->message();
    }
    states.log = log_;
  }
  if (sinks_.recording != nullptr) states.record = sinks_.recording->state();
  if (sinks_.view_state) states.view = sinks_.view_state();
  if (sinks_.feed != nullptr) sinks_.feed->set_sinks(states);
}

}  // namespace

LoopSummary run_loop(pipeline::FrameSource& source, pipeline::Host& host,
                     pipeline::CalibrationReceiver* calibration, const LoopSinks& sinks,
                     const LoopOptions& options, const std::atomic<bool>& stop) {
  Loop loop(source, host, calibration, sinks);
  const uint64_t start_ns = monotonic_ns();
  const auto elapsed_s = [&] { return static_cast<double>(monotonic_ns() - start_ns) * 1e-9; };
  uint64_t next_update_ns = start_ns;
  EndCause end = EndCause::Stopped;
  while (!stop.load(std::memory_order_relaxed)) {
    if (options.seconds > 0 && elapsed_s() >= options.seconds) {
      end = EndCause::TimeOver;
      break;
    }
    if (!loop.turn(options.wait)) {
      end = EndCause::EndOfStream;
      break;
    }
    if (const uint64_t now_ns = monotonic_ns(); now_ns >= next_update_ns) {
      loop.update_sinks();
      next_update_ns = now_ns + 250'000'000;
    }
  }
  loop.summary().seconds = elapsed_s();
  // Whoever pressed Ctrl-C does not want to wait for a slow disk or encoder.
  const std::chrono::seconds patience(end == EndCause::Stopped ? 4 : 20);
  if (sinks.recording != nullptr) sinks.recording->close(patience);
  if (sinks.log != nullptr) (void)sinks.log->flush(std::chrono::seconds(2));
  loop.update_sinks();
  LoopSummary summary = std::move(loop.summary());
  summary.end = end;
  summary.dropped = source.dropped_count();
  return summary;
}

}  // namespace ignis::tools
