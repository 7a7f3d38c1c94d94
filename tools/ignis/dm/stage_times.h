#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ignis::tools {

/// The ways a frame's time is spent, in order, and their sum.
enum class Stage : uint8_t {
  Receive,  ///< the source handed it over … the run begins
  Upload,
  Warp,
  Model,
  ReadBack,
  Decode,
  Publish,
  Total,  ///< the source handed it over … the message is out
};
inline constexpr int kStageCount = 8;
/// "receive", "read_back".
std::string_view to_string(Stage stage);

/// Nanoseconds of one frame by stage.
struct StageSample {
  std::array<uint64_t, kStageCount> ns{};
  uint64_t& operator[](Stage stage) { return ns[static_cast<size_t>(stage)]; }
  uint64_t operator[](Stage stage) const { return ns[static_cast<size_t>(stage)]; }
};

/// Percentiles of a whole run in fixed memory: counts by the leading bits, so a value read back is at most 1/64 above
/// the true one.
class TimeHistogram {
 public:
  TimeHistogram();
  void add(uint64_t ns);  ///< allocates nothing
  uint64_t count() const { return count_; }
  uint64_t max_ns() const { return max_ns_; }
  /// The upper end of the bucket that holds this share of the values (0 < share <= 1); 0 when there is none.
  uint64_t percentile_ns(double share) const;

 private:
  std::vector<uint32_t> buckets_;
  uint64_t count_ = 0, max_ns_ = 0;
};

/// One histogram for each stage.
struct StageHistograms {
  std::array<TimeHistogram, kStageCount> stages;
  void add(const StageSample& sample);
};

/// p50 and p99 of the samples, stage by stage, by the nearest-rank rule.
struct StageSummary {
  std::array<uint64_t, kStageCount> p50_ns{}, p99_ns{};
  size_t count = 0;
};
StageSummary summarize(const std::vector<StageSample>& samples);

}  // namespace ignis::tools
