#pragma once

#include "ignis/pipeline/driver_monitoring/consumer/policy.h"

#include <cstdint>
#include <string_view>

namespace ignis::pipeline {

/// What is made of the driver. Unknown is its own answer: nothing was told, or no face was seen. It never counts as
/// attentive.
enum class Attention : uint8_t { Unknown, Attentive, Undecided, Distracted };
std::string_view to_string(Attention attention);

/// Rising. Top is where a driver who does not react loses the right to engage.
enum class AlertLevel : uint8_t { None, Notice, Prompt, Top };
std::string_view to_string(AlertLevel level);

/// What one turn means for the alerts.
struct AlertInput {
  Attention attention = Attention::Unknown;
  bool watches_wheel =
      true;  ///< what is seen is no ground to judge: only a touch shows that someone is there
  bool is_touched = false;  ///< the driver steers or presses a pedal
  bool is_engaged = true;
  bool is_slow = false;  ///< known to be below the speed of alerts
  double elapsed_s = 0;  ///< since the turn before
  double seen_s = 0;     ///< of that, what this turn's message speaks for
};

/// Time of inattention and what follows from it (section 8.3). Two clocks: one of distraction that was seen, one of
/// time in which nothing can be seen and nobody touches the wheel.
class Alerts {
 public:
  explicit Alerts(const PolicySettings& settings) : settings_(settings) {}

  void step(const AlertInput& input);
  AlertLevel level() const { return level_; }
  double vision_s() const { return vision_s_; }
  double wheel_s() const { return wheel_s_; }
  int top_alerts() const { return top_alerts_; }
  /// Seconds in which engaging is not allowed; 0: it is.
  double lockout_s() const { return lockout_s_; }
  int lockouts() const { return lockouts_; }

 private:
  void advance(const AlertInput& input);
  void recover(double seconds);
  void follow_top(double elapsed_s);

  PolicySettings settings_;
  double vision_s_ = 0, wheel_s_ = 0;
  AlertLevel level_ = AlertLevel::None;
  int top_alerts_ = 0, lockouts_ = 0;
  double top_s_ = 0, lockout_s_ = 0;
  bool has_locked_out_ = false;  ///< for the top alert that is on
};

}  // namespace ignis::pipeline
