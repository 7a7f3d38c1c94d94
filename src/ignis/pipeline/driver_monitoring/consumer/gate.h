#pragma once

#include "ignis/pipeline/messages/driver_state.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ignis::pipeline {

/// Why the gate asks to leave control.
enum class LeaveCause : uint8_t {
  Starting,          ///< nothing has been shown to work yet
  ModelUnavailable,  ///< the producer runs without a model; asked for at once
  NotValid,          ///< no valid companion for longer than the limit, although companions come
  NoCompanion,       ///< no companion at all for longer than the limit: the publisher is gone
  StaleCompanion,    ///< companions arrive, but were made too long ago (or ahead of now)
  RepeatedFrame,     ///< the same frame is vouched for again and again
  TwoWriters,        ///< two publishers on one topic; asked for at once
  VersionMismatch,   ///< not the producer this side was built against; asked for at once
};
std::string_view to_string(LeaveCause cause);

/// What the gate says. It can ask, it cannot drive: nothing in here steers, brakes or disengages.
struct ControlRequest {
  enum class Kind : uint8_t { None, LeaveControl };
  Kind kind = Kind::None;
  LeaveCause cause = LeaveCause::Starting;  ///< the latest one; meaningful for LeaveControl
  uint64_t since_ns = 0;                    ///< when the request began
};

struct GateOptions {
  std::chrono::nanoseconds invalid_limit = std::chrono::seconds(1);
  std::chrono::nanoseconds silence_limit = std::chrono::seconds(1);
  /// A companion that is older than this when it arrives is no evidence of now.
  std::chrono::nanoseconds age_limit = std::chrono::milliseconds(500);
  /// A request ends after valid companions without a break for this long.
  std::chrono::nanoseconds recovery = std::chrono::seconds(2);
  /// Longest pause between two valid companions that does not start the recovery anew.
  std::chrono::nanoseconds recovery_pause = std::chrono::milliseconds(250);
  /// Two writers are two if the first speaks again within this time after the second.
  std::chrono::nanoseconds writer_window = std::chrono::seconds(10);
  Reasons also_blocking;
  uint32_t profile_version = 0, warp_id = 0;  ///< 0: not checked
};

/// Turns the companion's health into a request to leave control.
///
/// Rules: it starts with a request (Starting) and ends it only after `recovery` of valid companions. A request is
/// latched: a single valid companion ends nothing. Both functions must be called with the same monotonic clock that
/// `publish_time_ns` is of.
class Gate {
 public:
  Gate(GateOptions options, uint64_t now_ns);

  /// A companion arrived.
  void receive(const DriverStateQuality& quality, uint64_t now_ns);
  /// The request as of now; to be called at least as often as the limits are to be noticed.
  ControlRequest check(uint64_t now_ns);

 private:
  std::optional<LeaveCause> fault_of(const DriverStateQuality& quality, uint64_t now_ns);
  bool has_two_writers(uint64_t writer_id, uint64_t now_ns);
  void ask(LeaveCause cause, uint64_t now_ns);

  GateOptions options_;
  ControlRequest request_;
  uint64_t last_receive_ns_ = 0;  ///< any companion; the start counts as one
  uint64_t last_valid_ns_ = 0;
  std::optional<uint64_t> valid_since_ns_;  ///< of the unbroken run of valid companions
  LeaveCause last_fault_ = LeaveCause::NotValid;
  std::optional<uint32_t> last_frame_id_;
  struct Writer {
    uint64_t id = 0, last_ns = 0;
  };
  std::optional<Writer> writer_, former_;
};

}  // namespace ignis::pipeline
