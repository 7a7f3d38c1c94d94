#include "ignis/pipeline/driver_monitoring/consumer/topic_health.h"

#include <algorithm>

namespace ignis::pipeline {
namespace {

constexpr double kAlivePeriods = 10;
constexpr double kSlowest = 0.8, kFastest = 1.2;

}  // namespace

void TopicHealth::receive(uint64_t now_ns) {
  if (count_ > 0 && now_ns < times_ns_[(count_ - 1) % times_ns_.size()]) count_ = 0;
  times_ns_[count_ % times_ns_.size()] = now_ns;
  ++count_;
}

bool TopicHealth::is_alive(uint64_t now_ns) const {
  if (count_ == 0) return false;
  const uint64_t last_ns = times_ns_[(count_ - 1) % times_ns_.size()];
  if (now_ns < last_ns) return false;
  return static_cast<double>(now_ns - last_ns) < kAlivePeriods * 1e9 / rate_hz_;
}

bool TopicHealth::is_rate_right() const {
  if (count_ < 2) return false;
  const uint64_t intervals = std::min<uint64_t>(count_ - 1, kIntervals);
  const uint64_t first_ns = times_ns_[(count_ - 1 - intervals) % times_ns_.size()];
  const uint64_t last_ns = times_ns_[(count_ - 1) % times_ns_.size()];
  if (last_ns == first_ns) return false;
  const double rate_hz =
      static_cast<double>(intervals) * 1e9 / static_cast<double>(last_ns - first_ns);
  return rate_hz >= kSlowest * rate_hz_ && rate_hz <= kFastest * rate_hz_;
}

}  // namespace ignis::pipeline
