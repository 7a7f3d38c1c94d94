#include "tools/ignis/dm/stage_times.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ignis::tools {
namespace {

constexpr int kMantissaBits = 6;
constexpr size_t kBuckets = (64 - kMantissaBits + 1) << kMantissaBits;

/// Values below 64 have a bucket each; above, the six bits behind the leading one tell them apart.
size_t bucket_of(uint64_t ns) {
  const int width = static_cast<int>(std::bit_width(ns));
  if (width <= kMantissaBits) return static_cast<size_t>(ns);
  const int shift = width - 1 - kMantissaBits;
  return (static_cast<size_t>(shift + 1) << kMantissaBits) +
         static_cast<size_t>((ns >> shift) & ((1u << kMantissaBits) - 1));
}

uint64_t upper_end(size_t bucket) {
  const size_t row = bucket >> kMantissaBits;
  const uint64_t low = bucket & ((1u << kMantissaBits) - 1);
  if (row == 0) return low;
  const int shift = static_cast<int>(row) - 1;
  return (((uint64_t{1} << kMantissaBits) + low + 1) << shift) - 1;
}

}  // namespace

std::string_view to_string(Stage stage) {
  constexpr std::string_view kNames[kStageCount] = {"receive",   "upload", "warp",    "model",
                                                    "read_back", "decode", "publish", "total"};
  return kNames[static_cast<size_t>(stage)];
}

TimeHistogram::TimeHistogram() : buckets_(kBuckets, 0) {}

void TimeHistogram::add(uint64_t ns) {
  ++buckets_[bucket_of(ns)];
  ++count_;
  max_ns_ = std::max(max_ns_, ns);
}

uint64_t TimeHistogram::percentile_ns(double share) const {
  if (count_ == 0) return 0;
  const auto rank = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= rank && buckets_[i] != 0) return std::min(upper_end(i), max_ns_);
  }
  return max_ns_;
}

void StageHistograms::add(const StageSample& sample) {
  for (size_t s = 0; s < stages.size(); ++s) stages[s].add(sample.ns[s]);
}

StageSummary summarize(const std::vector<StageSample>& samples) {
  StageSummary summary;
  summary.count = samples.size();
  if (samples.empty()) return summary;
  std::vector<uint64_t> values(samples.size());
  const auto rank = [&](double share) {
    const auto at = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
    return std::max<size_t>(at, 1) - 1;
  };
  for (size_t s = 0; s < static_cast<size_t>(kStageCount); ++s) {
    for (size_t i = 0; i < samples.size(); ++i) values[i] = samples[i].ns[s];
    std::sort(values.begin(), values.end());
    summary.p50_ns[s] = values[rank(0.5)];
    summary.p99_ns[s] = values[rank(0.99)];
  }
  return summary;
}

}  // namespace ignis::tools
