#pragma once

#include "ignis/base/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::pipeline {

/// What a synthetic cabin camera sees.
enum class Shown : uint8_t { Front, EyesClosed, Glasses, Empty };
inline constexpr int kShownCount = 4;

/// "front", "eyes-closed", "glasses", "empty".
std::string_view to_string(Shown shown);

/// What goes wrong with the camera while a spell lasts.
enum class CameraFault : uint8_t {
  None,
  Stop,         ///< no frame comes
  Repeat,       ///< the frame before the spell comes again and again, with its id and times
  ClockBack,    ///< SOF and EOF lie 2 s too early
  ClockAhead,   ///< SOF and EOF lie 2 s too late
  IdBackwards,  ///< frame ids go on 40 lower
  SizeChange,   ///< the other known camera's size, a new generation
  InvalidFlag,  ///< the producer's own flag says that the frame is not valid
  Overwritten,  ///< the producer writes into the frame after it was handed over
};

/// "none", "stop", …
std::string_view to_string(CameraFault fault);

/// A stretch of frames that show the same thing.
struct Spell {
  Shown shown = Shown::Front;
  CameraFault fault = CameraFault::None;
  int tick_count = 0;                   ///< of 50 ms at 20 Hz
  double gain_begin = 1, gain_end = 1;  ///< exposure, running evenly through the spell; 0..2
};

/// A named sequence of spells. It starts again when it is through.
struct Scenario {
  std::string name;
  std::string meaning;       ///< for people, one line
  double noise_sigma = 2.5;  ///< of luma
  std::vector<Spell> spells;

  int64_t tick_count() const;
};

/// All scenarios: drive, front, eyes-closed, glasses, empty, night, faults.
std::span<const Scenario> synthetic_scenarios();
/// Errors: NotFound; the message lists the names.
Result<Scenario> find_scenario(const std::string& name);

}  // namespace ignis::pipeline
