#include "ignis/pipeline/driver_monitoring/consumer/running_stats.h"

#include <cmath>

namespace ignis::pipeline {

void RunningStats::push(double value) {
  if (limit_ <= 0 || count_ < limit_) ++count_;
  const double last_mean = mean_;
  mean_ += (value - last_mean) / static_cast<double>(count_);
  spread_ += (value - last_mean) * (value - mean_);
}

double RunningStats::standard_deviation() const {
  return count_ < 2 ? 0 : std::sqrt(spread_ / static_cast<double>(count_ - 1));
}

bool FilteredStats::push(double value) {
  const double before = raw_.standard_deviation();
  raw_.push(value);
  if (raw_.standard_deviation() > before) return false;
  filtered_.push(value);
  return true;
}

}  // namespace ignis::pipeline
