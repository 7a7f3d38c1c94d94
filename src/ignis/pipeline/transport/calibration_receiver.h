#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/messages/calibration.h"
#include "ignis/pipeline/transport/subscriber.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::pipeline {

/// The value of `--calib`: fixed angles, or where they are published.
struct CalibrationSetting {
  std::optional<Calibration> fixed;
  std::string endpoint;  ///< when not fixed
};

/// Reads `r,p,y` (rad), the name of a file, or `tcp://HOST:PORT` / `ipc://PATH`. The file holds `r,p,y`, the same in
/// brackets, `{"rpy_rad": [r, p, y]}`, or is a log: then its last calibrated event counts.
/// Errors: InvalidArgument, reason "Calibration": not three finite numbers within 0.5 rad, no calibration in the log;
/// NotFound when there is no such file.
Result<CalibrationSetting> parse_calibration(std::string_view text);

/// Gives calibration messages as they come. Never waits.
class CalibrationReceiver {
 public:
  /// Fixed angles are given again at the topic's rate, with the time of the call: who fixed them vouches for them.
  static Result<CalibrationReceiver> open(const CalibrationSetting& setting);

  /// The newest message since the last call, unchecked. Nothing when none came, or when it was not a calibration
  /// (counted).
  std::optional<Calibration> poll();
  uint64_t refused_count() const { return refused_; }

 private:
  CalibrationReceiver() = default;

  std::optional<Calibration> fixed_;
  uint64_t fixed_due_ns_ = 0;
  std::optional<Subscriber> subscriber_;
  std::vector<std::byte> message_;
  uint64_t refused_ = 0;
};

}  // namespace ignis::pipeline
