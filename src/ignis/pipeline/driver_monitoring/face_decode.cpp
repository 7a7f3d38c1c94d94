#include "ignis/pipeline/driver_monitoring/face_decode.h"

#include <algorithm>
#include <cmath>

namespace ignis::pipeline {
namespace {

using Face = Prediction::Face;

constexpr float kCellPx = 4;  // the network halves the picture twice on its way to the grid
constexpr float kMaxOverlap = 0.3f;
// A hostile or broken heat map may be above the threshold everywhere; suppression is quadratic.
constexpr size_t kMaxCandidates = 512;

float area(const Face& face) {
  return std::max(0.0f, face.x1 - face.x0) * std::max(0.0f, face.y1 - face.y0);
}

float overlap(const Face& a, const Face& b) {
  Face both;
  both.x0 = std::max(a.x0, b.x0);
  both.y0 = std::max(a.y0, b.y0);
  both.x1 = std::min(a.x1, b.x1);
  both.y1 = std::min(a.y1, b.y1);
  const float shared = area(both), all = area(a) + area(b) - shared;
  return all > 0 ? shared / all : 0;
}

// The face whose centre lies in a cell; not finite where the maps are not.
Face face_at(const FaceMaps& maps, int64_t row, int64_t column) {
  const auto at = [&](std::span<const float> map, int64_t channel) {
    return map[static_cast<size_t>((channel * maps.rows + row) * maps.columns + column)];
  };
  const float height_px = std::exp(at(maps.size, 0)) * kCellPx;
  const float width_px = std::exp(at(maps.size, 1)) * kCellPx;
  const float y_px = (static_cast<float>(row) + at(maps.offset, 0) + 0.5f) * kCellPx;
  const float x_px = (static_cast<float>(column) + at(maps.offset, 1) + 0.5f) * kCellPx;
  Face face;
  face.score = at(maps.heat, 0);
  face.x0 = x_px - width_px / 2;
  face.y0 = y_px - height_px / 2;
  face.x1 = x_px + width_px / 2;
  face.y1 = y_px + height_px / 2;
  face.has_landmarks = true;
  for (size_t i = 0; i < face.landmarks.size(); ++i) {
    const auto channel = static_cast<int64_t>(2 * i);
    face.landmarks[i] = {face.x0 + at(maps.landmarks, channel + 1) * width_px,
                         face.y0 + at(maps.landmarks, channel) * height_px};
  }
  return face;
}

bool is_finite(const Face& face) {
  float sum = face.x0 + face.y0 + face.x1 + face.y1;
  for (const auto& [x, y] : face.landmarks) sum += x + y;
  return std::isfinite(sum);
}

bool is_better(const Face& a, const Face& b) { return a.score > b.score; }

}  // namespace

FaceDecode FaceDecoder::decode(const FaceMaps& maps) {
  FaceDecode result;
  const auto cells =
      static_cast<size_t>(std::max<int64_t>(maps.rows, 0) * std::max<int64_t>(maps.columns, 0));
  if (cells == 0 || maps.heat.size() != cells || maps.size.size() != 2 * cells ||
      maps.offset.size() != 2 * cells || maps.landmarks.size() != 10 * cells) {
    result.reasons = Reason::OutputSize;
    return result;
  }
  bool is_degenerate = true;
  for (const float value : maps.heat) {
    is_degenerate = is_degenerate && value == maps.heat[0];
    if (!std::isfinite(value)) result.reasons |= Reason::NonFinite;
    result.score = std::max(result.score, value);
  }
  if (is_degenerate) result.reasons |= Reason::DegenerateOutput;
  if (result.score > 1) result.reasons |= Reason::RangeViolation;
  if (!result.reasons.is_empty()) {
    result.head = "heat";
    return result;
  }
  candidates_.clear();
  for (int64_t row = 0; row < maps.rows; ++row) {
    for (int64_t column = 0; column < maps.columns; ++column) {
      if (maps.heat[static_cast<size_t>(row * maps.columns + column)] <= threshold_) continue;
      const Face face = face_at(maps, row, column);
      if (!is_finite(face)) {
        result.reasons |= Reason::NonFinite;
        result.head = "boxes";
        return result;
      }
      candidates_.push_back(face);
    }
  }
  std::sort(candidates_.begin(), candidates_.end(), is_better);
  if (candidates_.size() > kMaxCandidates) candidates_.resize(kMaxCandidates);
  faces_.clear();
  for (const Face& candidate : candidates_) {
    const bool is_new = std::none_of(faces_.begin(), faces_.end(), [&](const Face& face) {
      return overlap(face, candidate) > kMaxOverlap;
    });
    if (is_new) faces_.push_back(candidate);
  }
  for (const Face& face : faces_) {
    if (result.has_face && face.score * area(face) <= result.face.score * area(result.face)) {
      continue;
    }
    result.has_face = true;
    result.face = face;
  }
  return result;
}

}  // namespace ignis::pipeline
