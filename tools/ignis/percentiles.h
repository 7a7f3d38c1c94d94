#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ignis::tools {

/// What is said about a set of latencies, in seconds.
struct LatencyStats {
  size_t count = 0;
  double mean = 0, deviation = 0, min = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, p999 = 0, max = 0;
  /// Mean of the last third over that of the first: far from 1, the machine was not steady.
  double trend = 1;
};
LatencyStats latency_stats(const std::vector<double>& samples);

/// The smallest sample that at least `share` (0 < share <= 1) of all samples do not exceed; `sorted` is not empty.
double percentile(const std::vector<double>& sorted, double share);

}  // namespace ignis::tools
