#include "ignis/pipeline/road/tiers.h"

#include "ignis/base/log.h"

#include <utility>

namespace ignis::pipeline {
namespace {

RoadRunnerOptions of_tier(RoadRunnerOptions options, RoadTier tier) {
  options.tier = tier;
  return options;
}

}  // namespace

TieredRunner::TieredRunner(TierOptions options)
    : options_(std::move(options)), small_(of_tier(options_.small, RoadTier::Small)) {
  options_.big = of_tier(options_.big, RoadTier::Big);
}

Status TieredRunner::load(const FrameLayout& layout) {
  if (small_.state() != RunnerState{}) {
    return Error(ErrorCode::InvalidArgument, "The models are loaded already.", "LoadedAlready");
  }
  layout_ = layout;
  small_.start_load(layout);
  if (options_.big.make_model) {
    big_ = std::make_unique<FencedRunner>(options_.big);
    big_->start_load(layout);
  }
  const RunnerState small = small_.wait_loaded(runtime::Deadline::max());
  if (small.kind != RunnerState::Kind::Ready) {
    return Error(ErrorCode::NotFound,
                 "The small model is " + to_string(small) + ": " + small_.fault_text(),
                 "Unavailable");
  }
  if (big_ == nullptr) return {};
  const RunnerState big = big_->wait_loaded(runtime::Deadline::max());
  big_fault_ = big.reason;
  if (big.kind == RunnerState::Kind::Ready) active_ = RoadTier::Big;
  return {};
}

RunnerState TieredRunner::big_state() {
  if (candidate_ != nullptr) return candidate_->state();
  if (big_ != nullptr) return big_->state();
  return {RunnerState::Kind::Absent, RoadFault::NotConfigured};
}

RunnerState TieredRunner::state() {
  const RunnerState small = small_.state();
  if (active_ == RoadTier::Big && big_->state().kind == RunnerState::Kind::Ready) {
    // Without the small one there is nothing to fall back to.
    if (small.kind == RunnerState::Kind::Failed) {
      return {RunnerState::Kind::Degraded, small.reason};
    }
    return {RunnerState::Kind::Ready, RoadFault::None};
  }
  if (small.kind == RunnerState::Kind::Failed) {
    return {RunnerState::Kind::Failed, RoadFault::Unavailable};
  }
  if (small.kind != RunnerState::Kind::Ready) return small;
  if (!options_.big.make_model) return {RunnerState::Kind::Ready, RoadFault::None};
  if (big_ != nullptr && big_->state().kind == RunnerState::Kind::Failed) {
    big_fault_ = big_->state().reason;
  }
  return {RunnerState::Kind::Degraded, big_fault_};
}

Status TieredRunner::requalify(runtime::Deadline now) {
  if (!options_.big.make_model || active_ == RoadTier::Big || candidate_ != nullptr) {
    return Error(ErrorCode::InvalidArgument,
                 !options_.big.make_model   ? "There is no big model to try."
                 : active_ == RoadTier::Big ? "The big model is in use."
                                            : "The big model is being tried already.",
                 "NothingToTry");
  }
  if (tries_ >= options_.requalify_limit ||
      (last_try_ && now - *last_try_ < options_.requalify_interval)) {
    return Error(ErrorCode::InvalidArgument,
                 "The big model was tried " + std::to_string(tries_) + " times; " +
                     std::to_string(options_.requalify_limit) + " tries, " +
                     std::to_string(options_.requalify_interval / std::chrono::seconds(1)) +
                     " s apart, are allowed.",
                 "RateLimited");
  }
  ++tries_;
  last_try_ = now;
  big_.reset();  // now, because it may take its close limit, which a frame has no time for
  candidate_ = std::make_unique<FencedRunner>(options_.big);
  candidate_->start_load(layout_);
  return {};
}

void TieredRunner::poll_candidate() {
  if (candidate_ == nullptr) return;
  const RunnerState state = candidate_->state();
  if (state.kind == RunnerState::Kind::Loading) return;
  big_ = std::move(candidate_);  // a failed one says why in its turn
  big_fault_ = state.reason;
  if (state.kind != RunnerState::Kind::Ready) return;
  active_ = RoadTier::Big;
  IGNIS_LOG(Info, "road") << "The big model '" << options_.big.name << "' has qualified again.";
}

RoadOutput TieredRunner::delivered(RoadOutput output) {
  output.is_switch = last_tier_ && *last_tier_ != output.tier;
  last_tier_ = output.tier;
  return output;
}

Result<RoadOutput> TieredRunner::run(const RoadInput& input,
                                     const std::array<float, kDesireCount>& desire_pulse,
                                     runtime::Deadline deadline) {
  poll_candidate();
  if (active_ == RoadTier::Big) {
    Result<RoadOutput> output = big_->run(input, desire_pulse, deadline);
    if (output) return delivered(*std::move(output));
    const RunnerState big = big_->state();
    // A bad frame, or one that had too little time, is not the model's fault.
    if (big.kind == RunnerState::Kind::Ready) return output;
    active_ = RoadTier::Small;
    big_fault_ = big.reason;
    ++fallbacks_;
    IGNIS_LOG(Warning, "road") << "The small model takes over at frame " << input.main.info.frame_id
                               << ": " << output.error().to_string();
  }
  Result<RoadOutput> output = small_.run(input, desire_pulse, deadline);
  if (output) return delivered(*std::move(output));
  if (small_.state().kind != RunnerState::Kind::Failed) return output;
  return Error(ErrorCode::DeviceLost,
               "No road model is left: the small one is " + to_string(small_.state()) + ": " +
                   small_.fault_text(),
               "Unavailable");
}

}  // namespace ignis::pipeline
