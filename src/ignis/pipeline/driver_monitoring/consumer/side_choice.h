#pragma once

#include "ignis/pipeline/driver_monitoring/consumer/policy.h"
#include "ignis/pipeline/driver_monitoring/consumer/running_stats.h"

#include <optional>

namespace ignis::pipeline {

enum class Side : uint8_t { Left = 0, Right = 1 };

/// Which seat the driver sits in (section 8.1): learned from the wheel's probability, kept while engaged.
class SideChoice {
 public:
  /// `stored`: what an earlier drive learned. `is_demo`: believe the first samples.
  SideChoice(const PolicySettings& settings, Side stored, bool is_demo = false);

  /// One frame whose wheel probability is known; counts at speed and with a face on either side.
  void learn(double speed_mps, double best_face_prob, double wheel_on_right_prob);
  /// One turn. `only`: the one side that the model can tell of, where it cannot tell the wheel's.
  Side choose(bool is_engaged, std::optional<Side> only = std::nullopt);
  bool is_ready() const;
  /// Every 6000 turns, when ready and in use: what to store for the next drive.
  std::optional<Side> to_store() const;
  const FilteredStats& stats() const { return stats_; }

 private:
  std::optional<Side> learned() const;

  PolicySettings settings_;
  FilteredStats stats_;
  Side stored_, side_;
  bool is_demo_;
  int64_t turns_ = 0;
};

}  // namespace ignis::pipeline
