#include "tools/ignis/dm/page_data.h"

#include "tools/ignis/dm/reason_text.h"

#include <cmath>

namespace ignis::tools {
namespace {

using Json = nlohmann::ordered_json;
using pipeline::DriverField;

constexpr double kReferenceFocalPx = 567, kReferenceWidthPx = 1928, kReferenceHeightPx = 1208;

double rounded(double value, double step) { return std::round(value / step) * step; }

/// A value when the model can know it and it is one, else null.
Json value_or_null(bool is_known, float value) {
  if (!is_known || !std::isfinite(value)) return nullptr;
  return std::round(static_cast<double>(value) * 1e4) / 1e4;
}

template <size_t N>
Json list_or_null(bool is_known, const std::array<float, N>& values) {
  if (!is_known) return nullptr;
  Json list = Json::array();
  for (const float v : values) list.push_back(value_or_null(true, v));
  return list;
}

Json side_json(const pipeline::DriverData& d, uint32_t known, const pipeline::FrameLayout& layout) {
  if (known == 0) return nullptr;
  const auto knows = [known](DriverField f) { return (known & bit(f)) != 0; };
  Json json;
  json["orientation"] =
      list_or_null(d.has_lists && knows(DriverField::FaceOrientation), d.face_orientation);
  json["orientation_std"] =
      list_or_null(d.has_lists && knows(DriverField::FaceOrientationStd), d.face_orientation_std);
  json["position"] = list_or_null(d.has_lists && knows(DriverField::FacePosition), d.face_position);
  json["position_px"] = nullptr;
  if (d.has_lists && knows(DriverField::FacePosition)) {
    if (const auto at = position_in_frame(d.face_position, layout);
        at && std::isfinite((*at)[0]) && std::isfinite((*at)[1])) {
      json["position_px"] = {rounded((*at)[0], 0.1), rounded((*at)[1], 0.1)};
    }
  }
  json["face"] = value_or_null(knows(DriverField::FaceProb), d.face_prob);
  json["left_eye"] = value_or_null(knows(DriverField::LeftEyeProb), d.left_eye_prob);
  json["right_eye"] = value_or_null(knows(DriverField::RightEyeProb), d.right_eye_prob);
  json["left_blink"] = value_or_null(knows(DriverField::LeftBlinkProb), d.left_blink_prob);
  json["right_blink"] = value_or_null(knows(DriverField::RightBlinkProb), d.right_blink_prob);
  json["glasses"] = value_or_null(knows(DriverField::SunglassesProb), d.sunglasses_prob);
  json["phone"] = value_or_null(knows(DriverField::PhoneProb), d.phone_prob);
  json["sleep"] = value_or_null(knows(DriverField::SleepProb), d.sleep_prob);
  return json;
}

Json face_json(const pipeline::Prediction& p) {
  if (!p.has_face_box) return nullptr;
  const auto px = [](float v) { return std::round(static_cast<double>(v) * 10) / 10; };
  Json json{{"box", {px(p.face.x0), px(p.face.y0), px(p.face.x1), px(p.face.y1)}},
            {"score", value_or_null(true, p.face.score)},
            {"landmarks", nullptr}};
  if (p.face.has_landmarks) {
    json["landmarks"] = Json::array();
    for (const auto& point : p.face.landmarks)
      json["landmarks"].push_back({px(point[0]), px(point[1])});
  }
  return json;
}

Json attention_json(const AttentionView& a) {
  if (!a.is_there) return nullptr;
  Json json{{"known", a.is_known},
            {"state", std::string(a.state)},
            {"cause", std::string(a.cause)},
            {"gate", std::string(a.gate)},
            {"gate_cause", std::string(a.gate_cause)},
            {"filter", value_or_null(a.is_known, a.filter)}};
  json["pose"] = nullptr;
  if (a.has_pose) json["pose"] = {value_or_null(true, a.pitch_rad), value_or_null(true, a.yaw_rad)};
  return json;
}

double to_ms(uint64_t ns) { return std::round(static_cast<double>(ns) / 1e3) / 1e3; }

Json age_json(uint64_t ns) {
  if (ns == pipeline::kUnknownAge) return nullptr;
  return to_ms(ns);
}

std::string text_of(const SinkState& sink) { return std::string(sink.last_error.data()); }

Json sink_json(const SinkState& sink) {
  if (!sink.is_on) return nullptr;
  return {{"done", sink.done},
          {"lost", sink.lost},
          {"errors", sink.errors},
          {"last_error", text_of(sink)}};
}

}  // namespace

std::optional<std::array<double, 2>> position_in_frame(const std::array<float, 2>& position,
                                                       const pipeline::FrameLayout& layout) {
  const auto camera = pipeline::find_camera(pipeline::known_cameras(), layout);
  if (!camera) return std::nullopt;
  const double scale = camera->focal_px / kReferenceFocalPx;
  return std::array<double, 2>{
      static_cast<double>(position[0]) * kReferenceWidthPx * scale + camera->center_x_px,
      static_cast<double>(position[1]) * kReferenceHeightPx * scale + camera->center_y_px};
}

Json info_json(const PageInfo& info) {
  Json json{{"version", info.version},
            {"source", info.source},
            {"model", info.model},
            {"model_hash", info.model_hash},
            {"profile", info.profile},
            {"device", info.device},
            {"side", info.side},
            {"publish", info.publish},
            {"log", info.log},
            {"record", info.record},
            {"limit_ms", info.frame_limit_ms}};
  for (int i = 0; i < pipeline::kReasonCount; ++i) {
    const auto reason = static_cast<pipeline::Reason>(i);
    json["reasons"].push_back({{"name", std::string(pipeline::to_string(reason))},
                               {"text", std::string(explain(reason))},
                               {"blocks", pipeline::kBlockingReasons.has(reason)}});
  }
  for (int s = 0; s < kStageCount; ++s)
    json["stages"].push_back(std::string(to_string(static_cast<Stage>(s))));
  return json;
}

Json snapshot_json(const Snapshot& s) {
  const pipeline::DriverStateQuality& q = s.quality;
  Json json{{"seq", s.sequence},
            {"t", to_ms(s.time_ns)},
            {"frame", s.has_frame},
            {"id", q.frame_id},
            {"valid", q.valid},
            {"reasons", Json::array()},
            {"size", {s.layout.width_px, s.layout.height_px}},
            {"age_ms", age_json(q.frame_age_ns)},
            {"dropped", s.dropped_frames},
            {"restarts", q.restarts},
            {"tier", q.tier}};
  for (int i = 0; i < pipeline::kReasonCount; ++i)
    if (q.reasons.has(static_cast<pipeline::Reason>(i))) json["reasons"].push_back(i);
  // A state that is not valid is all zeros; showing these as values would be a lie.
  json["left"] = q.valid ? side_json(s.state.left, q.known_left, s.layout) : Json(nullptr);
  json["right"] = q.valid ? side_json(s.state.right, q.known_right, s.layout) : Json(nullptr);
  json["known_left"] = q.known_left;
  json["known_right"] = q.known_right;
  json["wheel"] = value_or_null(q.valid && q.known_wheel, s.state.wheel_on_right_prob);
  json["face"] = q.valid ? face_json(s.prediction) : Json(nullptr);
  json["calibration"] = nullptr;
  if (s.has_calibration) {
    json["calibration"] = {{"rpy", list_or_null(true, s.rpy_rad)},
                           {"age_ms", age_json(q.calibration_age_ns)}};
  }
  json["attention"] = attention_json(s.attention);
  json["times"] = nullptr;
  if (s.has_frame) {
    json["times"] = Json::array();
    for (const uint64_t ns : s.times.ns) json["times"].push_back(to_ms(ns));
  }
  return json;
}

Json statistics_json(const LiveFeed& feed) {
  const StageSummary summary = summarize(feed.recent_times());
  Json json{{"fps", std::round(feed.frames_per_s() * 100) / 100},
            {"now", to_ms(pipeline::monotonic_ns())},
            {"frames", summary.count}};
  json["p50"] = Json::array();
  json["p99"] = Json::array();
  for (size_t s = 0; s < static_cast<size_t>(kStageCount); ++s) {
    json["p50"].push_back(summary.count > 0 ? Json(to_ms(summary.p50_ns[s])) : Json(nullptr));
    json["p99"].push_back(summary.count > 0 ? Json(to_ms(summary.p99_ns[s])) : Json(nullptr));
  }
  const SinkStates sinks = feed.sinks();
  json["sinks"] = {{"publish", sink_json(sinks.publish)},
                   {"log", sink_json(sinks.log)},
                   {"record", sink_json(sinks.record)},
                   {"view", sink_json(sinks.view)}};
  return json;
}

}  // namespace ignis::tools
