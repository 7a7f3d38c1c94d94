#pragma once

#include <cstdint>
#include <vector>

namespace ignis::pipeline {

enum class CalibrationStatus : uint8_t {
  Uncalibrated = 0,
  Calibrated = 1,
  Invalid = 2,
  Recalibrating = 3,
};

/// A calibration message as it came, unchecked.
struct Calibration {
  std::vector<float> rpy_rad;  ///< should be 3: roll, pitch, yaw
  CalibrationStatus status = CalibrationStatus::Uncalibrated;
  bool valid = false;             ///< the envelope's flag
  uint64_t log_mono_time_ns = 0;  ///< when it was made
};

}  // namespace ignis::pipeline
