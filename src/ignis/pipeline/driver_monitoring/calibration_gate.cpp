#include "ignis/pipeline/driver_monitoring/calibration_gate.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace ignis::pipeline {
namespace {

bool are_angles(std::span<const float> rpy_rad) {
  return rpy_rad.size() == 3 && std::all_of(rpy_rad.begin(), rpy_rad.end(), [](float angle_rad) {
           return std::isfinite(angle_rad) &&
                  std::abs(angle_rad) <= CalibrationGate::kAngleLimitRad;
         });
}

}  // namespace

void CalibrationGate::receive(const Calibration& calibration, uint64_t now_ns) {
  if (is_fixed_) return;
  // The sender says itself that it does not know: no fault, but the last good angles go on growing old.
  if (!calibration.valid || calibration.status != CalibrationStatus::Calibrated) return;

  if (!are_angles(calibration.rpy_rad)) {
    last_fault_ |= Reason::CalibShape;
    return;
  }
  // A sender's clock that runs ahead must not make its angles young for ever: they age from their arrival at the latest.
  const uint64_t made_ns = std::min(calibration.log_mono_time_ns, now_ns);
  if (now_ns - made_ns > age_limit_ns_) {
    last_fault_ |= Reason::CalibStale;
    return;
  }
  if (has_good_ && made_ns < made_ns_) return;  // overtaken on its way by a newer one
  std::copy_n(calibration.rpy_rad.begin(), 3, rpy_rad_.begin());
  has_good_ = true;
  made_ns_ = made_ns;
  last_fault_ = Reasons();
}

void CalibrationGate::fix(const std::array<float, 3>& rpy_rad) {
  is_fixed_ = true;
  has_good_ = are_angles(rpy_rad);
  last_fault_ = has_good_ ? Reasons() : Reasons(Reason::CalibShape);
  rpy_rad_ = has_good_ ? rpy_rad : std::array<float, 3>{};
}

uint64_t CalibrationGate::age_ns(uint64_t now_ns) const {
  if (!has_good_) return kUnknownAge;
  if (is_fixed_ || now_ns < made_ns_) return 0;
  return now_ns - made_ns_;
}

Reasons CalibrationGate::reasons(uint64_t now_ns) const {
  Reasons reasons = last_fault_;
  if (!has_good_) {
    reasons |= Reason::CalibMissing;
  } else if (age_ns(now_ns) > age_limit_ns_) {
    reasons |= Reason::CalibStale;
  }
  return reasons;
}

}  // namespace ignis::pipeline
