#include "ignis/drivers/cpu/parts.h"

#include <algorithm>

namespace ignis::cpu {
namespace {

// Handing a part to a thread that is awake costs about a microsecond, waking one some tens. A part shorter than
// kPartNs is not worth the first, a run shorter than kRunNs not the second. The rates are what one core does on
// data that its second-level cache holds.
constexpr uint64_t kPartNs = 2'500;
constexpr uint64_t kRunNs = 50'000;
constexpr double kFlopsPerNs = 80;
constexpr double kBytesPerNs = 40;
constexpr double kMostNs = 1e15;  // of an estimate: days

}  // namespace

uint64_t estimate_ns(double flops, double bytes) {
  if (!(flops > 0) && !(bytes > 0)) return 0;
  const double ns = std::max(flops / kFlopsPerNs, bytes / kBytesPerNs);
  return static_cast<uint64_t>(std::clamp(ns, 1.0, kMostNs));
}

bool is_short_run(uint64_t work_ns) { return work_ns != 0 && work_ns < kRunNs; }

int64_t choose_parts(int64_t max_parts, uint64_t work_ns, int threads) {
  int64_t parts = std::min<int64_t>(max_parts, threads);
  if (work_ns != 0) parts = std::min(parts, static_cast<int64_t>(work_ns / kPartNs));
  return std::max<int64_t>(parts, 1);
}

}  // namespace ignis::cpu
