#pragma once

#include "ignis/pipeline/messages/calibration.h"
#include "ignis/pipeline/messages/driver_state.h"

#include <array>
#include <cstdint>

namespace ignis::pipeline {

/// Lets a calibration through only when its message is valid, its status is calibrated, it has three finite angles inside
/// +-0.5 rad and it is not too old; keeps the last one that was.
class CalibrationGate {
 public:
  /// Angles of a mount beyond this are a mistake, not a camera.
  static constexpr float kAngleLimitRad = 0.5F;

  explicit CalibrationGate(uint64_t age_limit_ns) : age_limit_ns_(age_limit_ns) {}

  /// Takes a message as it came, at `now_ns`.
  void receive(const Calibration& calibration, uint64_t now_ns);
  /// Angles that never grow old, given by the user in place of messages. Angles beyond the limit are CalibShape for good.
  void fix(const std::array<float, 3>& rpy_rad);

  /// Roll, pitch, yaw: the last good ones, zeros before the first.
  const std::array<float, 3>& rpy_rad() const { return rpy_rad_; }
  /// Since the good ones were made; kUnknownAge before the first.
  uint64_t age_ns(uint64_t now_ns) const;
  /// CalibMissing, CalibStale, CalibShape.
  Reasons reasons(uint64_t now_ns) const;

 private:
  uint64_t age_limit_ns_;
  std::array<float, 3> rpy_rad_{};
  bool has_good_ = false;
  bool is_fixed_ = false;
  uint64_t made_ns_ = 0;  ///< when the good angles were made
  Reasons last_fault_;    ///< of the messages since the last good one
};

}  // namespace ignis::pipeline
