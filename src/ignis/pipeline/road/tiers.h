#pragma once

#include "ignis/pipeline/road/runner.h"

#include <chrono>
#include <memory>
#include <optional>

namespace ignis::pipeline {

struct TierOptions {
  /// `big.make_model` may be empty: then there is only the small model.
  RoadRunnerOptions big, small;
  /// Between two requests to try the big model again, and how many are granted at all.
  std::chrono::nanoseconds requalify_interval = std::chrono::seconds(60);
  int requalify_limit = 3;
};

/// The big model with the small one behind it (section 11.5).
///
/// The small one is loaded and warmed before anything runs. When the big one fails, the small one serves the same frame
/// if time is left, and every later one. Nothing leads back to the big one by itself: requalify() must be called. A
/// caller who wants the same frame to be served gives run() a deadline beyond the big model's run limit.
///
/// State: Ready: the big model serves, or the only one. Degraded(reason): the small one serves, and why the big one does
/// not. Failed(Unavailable): the small one failed; nothing runs any more.
class TieredRunner : public RoadRunner {
 public:
  explicit TieredRunner(TierOptions options);

  /// Loads both, each within its own limit. A big model that is not loaded then is Failed(LoadTimeout) and what it may
  /// still complete is ignored.
  /// Once. Errors: NotFound, reason Unavailable, when the small model cannot be loaded; InvalidArgument, reason
  /// LoadedAlready.
  Status load(const FrameLayout& layout);
  RunnerState state() override;
  Result<RoadOutput> run(const RoadInput& input,
                         const std::array<float, kDesireCount>& desire_pulse,
                         runtime::Deadline deadline) override;

  /// Begins to load a new big model while the small one serves; run() changes over when it has qualified.
  /// `now`: of the rate limit. Errors: InvalidArgument: there is no big model, it is in use, or is being tried; reason
  /// RateLimited: too soon after the last time, or too often.
  Status requalify(runtime::Deadline now = std::chrono::steady_clock::now());
  /// The big model that is being tried, or the one in use, or the one that failed last.
  RunnerState big_state();
  RoadTier active() const { return active_; }
  uint64_t fallbacks() const { return fallbacks_; }
  const RoadContract* contract() const { return small_.contract(); }

 private:
  void poll_candidate();
  RoadOutput delivered(RoadOutput output);

  TierOptions options_;
  FencedRunner small_;
  std::unique_ptr<FencedRunner> big_, candidate_;
  FrameLayout layout_;
  RoadTier active_ = RoadTier::Small;
  RoadFault big_fault_ = RoadFault::NotConfigured;
  std::optional<RoadTier> last_tier_;
  std::optional<runtime::Deadline> last_try_;
  int tries_ = 0;
  uint64_t fallbacks_ = 0;
};

}  // namespace ignis::pipeline
