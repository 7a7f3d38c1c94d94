#include "ignis/pipeline/frames/synthetic_scenario.h"

#include "ignis/base/check.h"

#include <algorithm>

namespace ignis::pipeline {

std::string_view to_string(Shown shown) {
  switch (shown) {
    case Shown::Front: return "front";
    case Shown::EyesClosed: return "eyes-closed";
    case Shown::Glasses: return "glasses";
    case Shown::Empty: return "empty";
  }
  return "?";
}

std::string_view to_string(CameraFault fault) {
  switch (fault) {
    case CameraFault::None: return "none";
    case CameraFault::Stop: return "stop";
    case CameraFault::Repeat: return "repeat";
    case CameraFault::ClockBack: return "clock-back";
    case CameraFault::ClockAhead: return "clock-ahead";
    case CameraFault::IdBackwards: return "id-backwards";
    case CameraFault::SizeChange: return "size-change";
    case CameraFault::InvalidFlag: return "invalid-flag";
    case CameraFault::Overwritten: return "overwritten";
  }
  return "?";
}

int64_t Scenario::tick_count() const {
  int64_t count = 0;
  for (const Spell& spell : spells) count += spell.tick_count;
  return count;
}

std::span<const Scenario> synthetic_scenarios() {
  using enum Shown;
  using Fault = CameraFault;
  constexpr int kSecond = 20;  // ticks
  // clang-format off
  static const std::vector<Scenario> scenarios = {
      {"drive", "front, eyes closed, dark glasses, nobody, front; the exposure changes", 2.5, {
          {Front,      Fault::None, 5 * kSecond, 1.00, 0.75},
          {EyesClosed, Fault::None, 4 * kSecond, 0.75, 0.95},
          {Glasses,    Fault::None, 4 * kSecond, 0.95, 1.10},
          {Empty,      Fault::None, 4 * kSecond, 1.10, 0.90},
          {Front,      Fault::None, 3 * kSecond, 0.90, 1.00},
      }},
      {"front", "a driver who looks ahead", 2.5, {{Front, Fault::None, 10 * kSecond}}},
      {"eyes-closed", "a driver whose eyes are closed", 2.5, {{EyesClosed, Fault::None, 10 * kSecond}}},
      {"glasses", "a driver with dark glasses", 2.5, {{Glasses, Fault::None, 10 * kSecond}}},
      {"empty", "an empty seat", 2.5, {{Empty, Fault::None, 10 * kSecond}}},
      {"night", "dusk, then a noisy picture that is almost black", 6.0, {
          {Front, Fault::None, 5 * kSecond, 0.60, 0.25},
          {Front, Fault::None, 5 * kSecond, 0.25, 0.02},
          {Front, Fault::None, 5 * kSecond, 0.02, 0.60},
      }},
      {"faults", "everything that goes wrong with a camera, with good spells between", 2.5, {
          {Front, Fault::None,        2 * kSecond},
          {Front, Fault::Stop,        2 * kSecond},
          {Front, Fault::None,        2 * kSecond},
          {Front, Fault::Repeat,      1 * kSecond},
          {Front, Fault::None,        2 * kSecond},
          {Front, Fault::ClockBack,   1 * kSecond},
          {Front, Fault::None,        2 * kSecond},
          {Front, Fault::ClockAhead,  1 * kSecond},
          {Front, Fault::None,        2 * kSecond},
          {Front, Fault::IdBackwards, 1 * kSecond},
          {Front, Fault::None,        2 * kSecond},
          {Front, Fault::SizeChange,  2 * kSecond},
          {Front, Fault::None,        2 * kSecond},
          {Front, Fault::InvalidFlag, 1 * kSecond},
          {Front, Fault::None,        2 * kSecond},
          {Front, Fault::Overwritten, 1 * kSecond},
          {Front, Fault::None,        2 * kSecond},
      }},
  };
  // clang-format on
  return scenarios;
}

Result<Scenario> find_scenario(const std::string& name) {
  std::string names;
  for (const Scenario& scenario : synthetic_scenarios()) {
    if (scenario.name == name) return scenario;
    names += (names.empty() ? "" : ", ") + scenario.name;
  }
  return Error(ErrorCode::NotFound,
               "There is no synthetic scenario '" + name + "'; there are " + names + ".",
               "UnknownScenario");
}

}  // namespace ignis::pipeline
