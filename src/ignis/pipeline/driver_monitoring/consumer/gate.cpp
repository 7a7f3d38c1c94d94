#include "ignis/pipeline/driver_monitoring/consumer/gate.h"

namespace ignis::pipeline {
namespace {

// A clock that goes back has told of no time.
uint64_t since(uint64_t earlier_ns, uint64_t now_ns) {
  return now_ns > earlier_ns ? now_ns - earlier_ns : 0;
}

bool is_over(uint64_t duration_ns, std::chrono::nanoseconds limit) {
  return duration_ns > static_cast<uint64_t>(limit.count());
}

// Causes that no time has to pass for.
bool is_immediate(LeaveCause cause) {
  return cause == LeaveCause::ModelUnavailable || cause == LeaveCause::TwoWriters ||
         cause == LeaveCause::VersionMismatch;
}

}  // namespace

std::string_view to_string(LeaveCause cause) {
  switch (cause) {
    case LeaveCause::Starting: return "Starting";
    case LeaveCause::ModelUnavailable: return "ModelUnavailable";
    case LeaveCause::NotValid: return "NotValid";
    case LeaveCause::NoCompanion: return "NoCompanion";
    case LeaveCause::StaleCompanion: return "StaleCompanion";
    case LeaveCause::RepeatedFrame: return "RepeatedFrame";
    case LeaveCause::TwoWriters: return "TwoWriters";
    case LeaveCause::VersionMismatch: return "VersionMismatch";
  }
  return "?";
}

Gate::Gate(GateOptions options, uint64_t now_ns)
    : options_(options), last_receive_ns_(now_ns), last_valid_ns_(now_ns) {
  request_ = {ControlRequest::Kind::LeaveControl, LeaveCause::Starting, now_ns};
}

// A writer id that changes once is a restarted publisher; one that comes back is a second publisher.
bool Gate::has_two_writers(uint64_t writer_id, uint64_t now_ns) {
  if (writer_ && writer_->id == writer_id) {
    writer_->last_ns = now_ns;
    return false;
  }
  const bool is_back = former_ && former_->id == writer_id &&
                       !is_over(since(former_->last_ns, now_ns), options_.writer_window);
  former_ = writer_;
  writer_ = Writer{writer_id, now_ns};
  // A new producer's frame ids begin anew, and what it says is no continuation of what the former said.
  last_frame_id_.reset();
  valid_since_ns_.reset();
  return is_back;
}

std::optional<LeaveCause> Gate::fault_of(const DriverStateQuality& quality, uint64_t now_ns) {
  if (has_two_writers(quality.writer_id, now_ns)) return LeaveCause::TwoWriters;
  // Time stamps ahead of now are as worthless as old ones: the clocks are not the same.
  if (quality.publish_time_ns > now_ns ||
      is_over(now_ns - quality.publish_time_ns, options_.age_limit)) {
    return LeaveCause::StaleCompanion;
  }
  if (quality.reasons.has(Reason::ModelUnavailable)) return LeaveCause::ModelUnavailable;
  const Reasons blocking = quality.reasons & (kBlockingReasons | options_.also_blocking);
  const bool is_repeated = last_frame_id_ == quality.frame_id;
  last_frame_id_ = quality.frame_id;
  if (!quality.valid || !blocking.is_empty()) return LeaveCause::NotValid;
  // After validity: an unbound producer has no warp, and says so in its reasons.
  if ((options_.profile_version != 0 && quality.profile_version != options_.profile_version) ||
      (options_.warp_id != 0 && quality.warp_id != options_.warp_id)) {
    return LeaveCause::VersionMismatch;
  }
  if (is_repeated) return LeaveCause::RepeatedFrame;
  return std::nullopt;
}

void Gate::ask(LeaveCause cause, uint64_t now_ns) {
  if (request_.kind == ControlRequest::Kind::None) request_.since_ns = now_ns;
  request_.kind = ControlRequest::Kind::LeaveControl;
  request_.cause = cause;
}

void Gate::receive(const DriverStateQuality& quality, uint64_t now_ns) {
  check(now_ns);  // a silence that ends now is noticed first
  last_receive_ns_ = now_ns;
  const std::optional<LeaveCause> fault = fault_of(quality, now_ns);
  if (fault) {
    valid_since_ns_.reset();
    last_fault_ = *fault;
    if (is_immediate(*fault)) ask(*fault, now_ns);
    check(now_ns);
    return;
  }
  if (valid_since_ns_ && is_over(since(last_valid_ns_, now_ns), options_.recovery_pause)) {
    valid_since_ns_.reset();
  }
  if (!valid_since_ns_) valid_since_ns_ = now_ns;
  last_valid_ns_ = now_ns;
  if (since(*valid_since_ns_, now_ns) >= static_cast<uint64_t>(options_.recovery.count())) {
    request_ = ControlRequest();
  }
}

ControlRequest Gate::check(uint64_t now_ns) {
  if (is_over(since(last_receive_ns_, now_ns), options_.silence_limit)) {
    valid_since_ns_.reset();
    ask(LeaveCause::NoCompanion, now_ns);
  } else if (is_over(since(last_valid_ns_, now_ns), options_.invalid_limit)) {
    ask(last_fault_, now_ns);
  }
  return request_;
}

}  // namespace ignis::pipeline
