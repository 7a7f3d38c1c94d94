#pragma once

#include "ignis/pipeline/road/frame_pairing.h"
#include "ignis/pipeline/road/tiers.h"

#include <optional>
#include <span>
#include <vector>

namespace ignis::pipeline {

/// What the road host says of one frame pair. Spans live until the next call.
struct RoadReport {
  uint32_t frame_id = 0, wide_frame_id = 0;
  uint64_t timestamp_sof_ns = 0;
  bool is_valid = false;
  RoadTier tier = RoadTier::Big;  ///< of a valid report
  bool is_tier_switch = false;
  /// Rises with each change of tier and each gap of valid output: what was derived from reports of another epoch (filters,
  /// histories) is void. It tells of a switch even if the report that had it was lost.
  uint32_t epoch = 0;
  RunnerState state;  ///< of both tiers together
  std::string
      reason;  ///< of a report that is not valid: RunTimeout, NonFinite, Unavailable, BadFrame, …
  std::string error_text;                  ///< the same as a sentence
  std::span<const float> decoded;          ///< of a valid report
  const RoadContract* contract = nullptr;  ///< names the parts of `decoded`
  uint32_t dropped = 0;
  double drop_ratio = 0;
  uint64_t pack_ns = 0, run_ns = 0;
};

/// The road-model host: pulse, run on one of two tiers, decode, drop statistics. Never fails: what goes wrong is in the
/// report. From one thread. A stream that changes its layout gets reports of reason BadFrame; it needs a new host, which
/// loads anew, because every program and view is made for one layout.
class RoadHost {
 public:
  explicit RoadHost(TierOptions options) : tiers_(std::move(options)) {}

  /// Errors: as TieredRunner::load.
  Status load(const FrameLayout& layout) { return tiers_.load(layout); }
  /// `deadline`: when the report must be there.
  RoadReport run(const RoadInput& input, runtime::Deadline deadline);
  TieredRunner& tiers() { return tiers_; }

 private:
  TieredRunner tiers_;
  DesirePulse pulse_;
  DropStatistics drops_;
  std::vector<float> decoded_;
  uint32_t epoch_ = 0;
  bool was_valid_ = false;
};

}  // namespace ignis::pipeline
