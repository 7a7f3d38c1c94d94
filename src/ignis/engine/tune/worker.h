#pragma once

#include "ignis/engine/session.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ignis::engine {

/// For tests: what goes wrong with the trial of a number.
enum class TrialFault : uint8_t { Crash, Hang, Wrong, Memory };

struct TuneWorkerOptions {
  std::string model;
  SessionOptions session;
  uint64_t memory_bytes = uint64_t{4}
                          << 30;  ///< of address space, beyond what the process has at first
  std::map<int64_t, TrialFault> faults;
};

/// "crash@3,hang@5,wrong@7,memory@9". Errors: InvalidArgument.
Result<std::map<int64_t, TrialFault>> parse_trial_faults(const std::string& text);

/// The side of a tuner that compiles, checks and times, in a process of its own: whatever a candidate does there, nobody
/// else is harmed. Serves the socket `fd` until its other end closes. The process ends with its parent, and dumps no core.
/// Errors: as Session::load; what goes wrong later is told to the other side.
Status serve_tuning(int fd, const TuneWorkerOptions& options);

}  // namespace ignis::engine
