#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/driver_monitoring/host.h"
#include "ignis/pipeline/frames/frame.h"
#include "ignis/pipeline/messages/wire.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ignis::tools {

/// A logged driverStateV2 with what belongs to it.
struct LoggedTurn {
  pipeline::StateEvent event;
  std::optional<pipeline::DriverStateQuality> quality;
  std::vector<pipeline::Calibration> calibrations;  ///< that came before it, since the turn before
};

/// A log as `--log F` writes it: F, and F.quality beside it where there is one.
struct ReplayLog {
  std::vector<LoggedTurn> turns;
  bool has_companions = false;
  std::string note;  ///< why the end of the log is left out; empty when it is whole
};
/// A log that ends inside a message is read up to there. Errors: NotFound; InvalidArgument with reason "File" for what is no
/// log, or one without a driverStateV2.
Result<ReplayLog> read_replay_log(const std::string& path);

/// One field that is not the same.
struct Difference {
  uint32_t frame_id = 0;
  std::string field;  ///< "leftDriverData.faceProb", "valid"
  std::string logged, computed;
  std::string to_string() const;  ///< "frame 7: leftDriverData.faceProb is 0.5, the log has 0.25"
};

/// Appends what differs between a logged state and one computed now. logMonoTime and both execution times are not looked
/// at; floats may differ by tolerance * max(1, |logged|), and NaN equals NaN. Raw predictions are compared when both have
/// some.
void compare_states(const pipeline::StateEvent& logged, const pipeline::DriverState& computed,
                    bool is_computed_valid, double tolerance, std::vector<Difference>& differences);

struct ReplayResult {
  uint64_t compared = 0;   ///< frames
  uint64_t different = 0;  ///< of these
  uint64_t not_comparable =
      0;                 ///< what befell them cannot be repeated (a late run, an overwritten frame)
  uint64_t missing = 0;  ///< logged frames that the source does not give
  uint64_t unlogged = 0;  ///< frames of the source that were not logged (dropped at the time)
  uint64_t source_errors = 0;
  std::vector<Difference> differences;  ///< the first of them
  /// Nothing differs, nothing is missing, and something was compared at all.
  bool has_passed() const { return compared > 0 && different == 0 && missing == 0; }
};

struct ReplayOptions {
  double tolerance = 1e-4;
  size_t max_differences = 20;
  uint64_t max_frames = 0;  ///< 0: all of the log
  std::function<void(uint64_t done, uint64_t total)> progress;
};

/// The time as the log has it, for HostOptions::now_ns: what was late then is late again, what was on time is on time.
using ReplayClock = std::shared_ptr<std::atomic<uint64_t>>;

/// Gives the source's frames to the host again, with the times and calibrations of the log, and compares each state. The
/// host must have been made with `clock`, and with a run limit that a slow machine keeps.
/// Errors: Timeout when the source gives nothing for 10 s.
Result<ReplayResult> run_replay(pipeline::FrameSource& source, pipeline::Host& host,
                                const ReplayLog& log, const ReplayClock& clock,
                                const ReplayOptions& options, const std::atomic<bool>& stop);

}  // namespace ignis::tools
