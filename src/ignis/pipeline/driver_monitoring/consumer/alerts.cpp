#include "ignis/pipeline/driver_monitoring/consumer/alerts.h"

#include <algorithm>

namespace ignis::pipeline {
namespace {

// Sums of 0.05 s steps fall a hair short of whole seconds.
constexpr double kRounding = 1e-6;

AlertLevel level_of(double seconds, const double (&limits)[3]) {
  int level = 0;
  while (level < 3 && seconds + kRounding >= limits[level]) ++level;
  return static_cast<AlertLevel>(level);
}

}  // namespace

std::string_view to_string(Attention attention) {
  switch (attention) {
    case Attention::Unknown: return "unknown";
    case Attention::Attentive: return "attentive";
    case Attention::Undecided: return "undecided";
    case Attention::Distracted: return "distracted";
  }
  return "?";
}

std::string_view to_string(AlertLevel level) {
  switch (level) {
    case AlertLevel::None: return "none";
    case AlertLevel::Notice: return "notice";
    case AlertLevel::Prompt: return "prompt";
    case AlertLevel::Top: return "top";
  }
  return "?";
}

// The nearer the top alert, the faster a look at the road pays back.
void Alerts::recover(double seconds) {
  const double span_s = settings_.vision_alert_s[2];
  if (vision_s_ > 0) {
    const double factor = settings_.recovery_min +
                          (settings_.recovery_max - settings_.recovery_min) * (vision_s_ / span_s);
    vision_s_ = std::max(vision_s_ - factor * seconds, 0.0);
    return;
  }
  wheel_s_ = std::max(wheel_s_ - seconds, 0.0);
}

void Alerts::advance(const AlertInput& input) {
  if (level_ == AlertLevel::Top) return;  // only ending the engagement ends it
  if (input.is_touched) {
    vision_s_ = wheel_s_ = 0;
    return;
  }
  if (input.attention == Attention::Attentive) {
    recover(input.seen_s);
    return;
  }
  if (input.is_slow) return;
  if (input.attention == Attention::Distracted) vision_s_ += input.elapsed_s;
  if (input.watches_wheel) {
    wheel_s_ += input.elapsed_s;
    // A face that hides after the prompt does not stop the clock that led to it.
    if (level_of(vision_s_, settings_.vision_alert_s) >= AlertLevel::Prompt &&
        input.attention != Attention::Distracted) {
      vision_s_ += input.elapsed_s;
    }
  }
}

void Alerts::follow_top(double elapsed_s) {
  if (level_ != AlertLevel::Top) {
    top_s_ = 0;
    has_locked_out_ = false;
    return;
  }
  top_s_ += elapsed_s;
  const bool is_unanswered = top_s_ + kRounding >= settings_.no_response_s;
  if (has_locked_out_ || (top_alerts_ < settings_.lockout_top_alerts && !is_unanswered)) return;
  has_locked_out_ = true;
  lockout_s_ = settings_.lockout_s[std::min(lockouts_, 3)];
  ++lockouts_;
  top_alerts_ = 0;
}

void Alerts::step(const AlertInput& input) {
  lockout_s_ = std::max(lockout_s_ - input.elapsed_s, 0.0);
  const AlertLevel before = level_;
  if (!input.is_engaged) {
    vision_s_ = wheel_s_ = 0;
    level_ = AlertLevel::None;
  } else {
    advance(input);
    level_ = std::max(level_of(vision_s_, settings_.vision_alert_s),
                      level_of(wheel_s_, settings_.wheel_alert_s));
    // A top alert stays: slowing down is what it asks for, not an answer to it.
    if (input.is_slow && level_ != AlertLevel::Top) level_ = AlertLevel::None;
  }
  if (level_ == AlertLevel::Top && before != AlertLevel::Top) {
    ++top_alerts_;
    top_s_ = -input.elapsed_s;  // the alert begins with this turn
  }
  follow_top(input.elapsed_s);
}

}  // namespace ignis::pipeline
