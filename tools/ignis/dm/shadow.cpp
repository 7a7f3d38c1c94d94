#include "tools/ignis/dm/shadow.h"

#include <utility>

namespace ignis::tools {
namespace {

using pipeline::Answer;
using pipeline::Attention;
using pipeline::DriverField;

/// Why the policy knows nothing, in words for people.
std::string_view words(pipeline::Unknown unknown) {
  switch (unknown) {
    case pipeline::Unknown::Nothing: return {};
    case pipeline::Unknown::NoMessage: return "no message";
    case pipeline::Unknown::NoState: return "no frame";
    case pipeline::Unknown::NotValid: return "not valid";
    case pipeline::Unknown::RepeatedFrame: return "same frame again";
    case pipeline::Unknown::NotAlive: return "last message too old";
    case pipeline::Unknown::WrongRate: return "messages not at 20 Hz";
    case pipeline::Unknown::EmptyLists: return "no face pose";
    case pipeline::Unknown::UnknownField: return "the model cannot tell eyes";
    case pipeline::Unknown::NoCalibration: return "no calibration";
    default: return to_string(unknown);
  }
}

/// What tipped the verdict, for people.
std::string_view cause_of(const pipeline::Verdict& v) {
  if (v.eyes_closed == Answer::Yes) return "eyes closed";
  if (v.pose_distracted == Answer::Yes) return "looks away";
  if (v.phone_used == Answer::Yes) return "phone";
  if (v.face_seen == Answer::No) return "no face";
  if (v.low_std == Answer::No) return "pose uncertain";
  return words(v.unknown);
}

}  // namespace

Shadow::Shadow(std::span<const pipeline::Camera> cameras, pipeline::Side side, uint64_t now_ns)
    : cameras_(cameras.begin(), cameras.end()), side_(side), gate_({}, now_ns) {}

void Shadow::follow(const pipeline::FrameReport& report, const pipeline::FrameLayout& layout) {
  if (!report.quality.valid) return;
  // A model without a phone output could never be judged. The page shows the phone as unknown, and this policy drives
  // nothing, so it may do without.
  const uint32_t known = report.quality.known_left | report.quality.known_right;
  const uint32_t waived = bit(DriverField::PhoneProb) & ~known;
  if (consumer_ && layout == layout_ && waived == waived_fields_) return;
  const auto camera = pipeline::find_camera(cameras_, layout);
  if (!camera) return;
  layout_ = layout;
  waived_fields_ = waived;
  pipeline::ConsumerOptions options;
  options.camera = *camera;
  options.stored_side = side_;
  options.waived_fields = waived;
  consumer_.emplace(std::move(options));
}

AttentionView Shadow::step(const pipeline::FrameReport* report, const pipeline::FrameLayout& layout,
                           const std::optional<std::array<float, 3>>& rpy_rad, uint64_t now_ns) {
  AttentionView view;
  view.is_there = true;
  if (report != nullptr) {
    follow(*report, layout);
    gate_.receive(report->quality, now_ns);
  }
  const pipeline::ControlRequest request = gate_.check(now_ns);
  if (request.kind == pipeline::ControlRequest::Kind::LeaveControl) {
    view.gate = "leave control";
    view.gate_cause = to_string(request.cause);
  }
  view.state = to_string(Attention::Unknown);
  if (!consumer_) return view;
  pipeline::DriverMessage message;
  if (report != nullptr) {
    if (report->has_state) message.state = report->state;
    message.quality = report->quality;
    message.is_envelope_valid = report->quality.valid;
  }
  const pipeline::Verdict verdict =
      consumer_->step(report != nullptr ? &message : nullptr, {}, rpy_rad, now_ns);
  view.state = to_string(verdict.attention);
  view.is_known = verdict.attention != Attention::Unknown;
  view.cause = cause_of(verdict);
  view.filter = static_cast<float>(verdict.distraction);
  if (verdict.pose) {
    view.has_pose = true;
    view.pitch_rad = static_cast<float>(verdict.pose->pitch_rad);
    view.yaw_rad = static_cast<float>(verdict.pose->yaw_rad);
  }
  return view;
}

}  // namespace ignis::tools
