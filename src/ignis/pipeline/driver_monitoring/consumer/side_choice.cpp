#include "ignis/pipeline/driver_monitoring/consumer/side_choice.h"

namespace ignis::pipeline {

SideChoice::SideChoice(const PolicySettings& settings, Side stored, bool is_demo)
    : settings_(settings),
      stats_(RunningStats(settings.wheel_prior_mean, settings.wheel_prior_spread,
                          settings.wheel_prior_count),
             RunningStats()),
      stored_(stored),
      side_(stored),
      is_demo_(is_demo) {}

void SideChoice::learn(double speed_mps, double best_face_prob, double wheel_on_right_prob) {
  if (!(speed_mps > settings_.wheel_learn_min_speed_mps)) return;
  if (!(best_face_prob > settings_.face_threshold)) return;
  stats_.push(wheel_on_right_prob);
}

bool SideChoice::is_ready() const {
  return stats_.filtered().count() >= settings_.wheel_ready_count;
}

std::optional<Side> SideChoice::learned() const {
  const bool has_any = stats_.filtered().count() > 0;
  if (!is_ready() && !(is_demo_ && has_any)) return std::nullopt;
  return stats_.filtered().mean() > settings_.wheel_threshold ? Side::Right : Side::Left;
}

Side SideChoice::choose(bool is_engaged, std::optional<Side> only) {
  ++turns_;
  if (!is_engaged) side_ = only ? *only : learned().value_or(stored_);
  return side_;
}

std::optional<Side> SideChoice::to_store() const {
  if (turns_ % settings_.store_period_frames != 0 || !is_ready()) return std::nullopt;
  if (learned() != side_) return std::nullopt;  // engaged since before it was learned
  return side_;
}

}  // namespace ignis::pipeline
