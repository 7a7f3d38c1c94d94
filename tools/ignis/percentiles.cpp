#include "tools/ignis/percentiles.h"

#include <algorithm>
#include <cmath>

namespace ignis::tools {

double percentile(const std::vector<double>& sorted, double share) {
  const double rank =
      std::ceil(share * static_cast<double>(sorted.size()) - 1e-9);  // 0.9 * 10 is 9, not 9.000…1
  return sorted[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

LatencyStats latency_stats(const std::vector<double>& samples) {
  LatencyStats stats;
  stats.count = samples.size();
  if (samples.empty()) return stats;
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const auto mean_of = [&](size_t from, size_t to) {
    double sum = 0;
    for (size_t i = from; i < to; ++i) sum += samples[i];
    return sum / static_cast<double>(to - from);
  };
  const size_t n = samples.size();
  stats.mean = mean_of(0, n);
  for (const double s : samples) stats.deviation += (s - stats.mean) * (s - stats.mean);
  stats.deviation = n > 1 ? std::sqrt(stats.deviation / static_cast<double>(n - 1)) : 0;
  stats.min = sorted.front();
  stats.p50 = percentile(sorted, 0.5);
  stats.p90 = percentile(sorted, 0.9);
  stats.p95 = percentile(sorted, 0.95);
  stats.p99 = percentile(sorted, 0.99);
  stats.p999 = percentile(sorted, 0.999);
  stats.max = sorted.back();
  if (n >= 9) stats.trend = mean_of(n - n / 3, n) / mean_of(0, n / 3);
  return stats;
}

}  // namespace ignis::tools
