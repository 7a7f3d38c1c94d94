#include "ignis/pipeline/driver_monitoring/camera.h"

#include "ignis/pipeline/frames/layout.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace ignis::pipeline {
namespace {

// Section 4: 567 px is the focal length of the AR and OX sensors; the OS sensor bins 2x behind the same lens.
const std::vector<Camera>& table() {
  static const std::vector<Camera> cameras = [] {
    Camera a;
    a.name = "cabin-a";
    a.width_px = 1928;
    a.height_px = 1208;
    a.focal_px = 567.0;
    a.center_x_px = 964;
    a.center_y_px = 604;
    Camera b;
    b.name = "cabin-b";
    b.width_px = 1344;
    b.height_px = 760;
    b.focal_px = 425.25;
    b.center_x_px = 672;
    b.center_y_px = 380;
    return std::vector<Camera>{a, b};
  }();
  return cameras;
}

std::string describe(const Camera& camera) {
  std::string text = "'" + camera.name + "' " + std::to_string(camera.width_px) + "x" +
                     std::to_string(camera.height_px);
  if (camera.y_stride != 0) text += ", stride " + std::to_string(camera.y_stride);
  if (camera.sensor_id != 0) text += ", sensor " + std::to_string(camera.sensor_id);
  return text;
}

std::string describe(std::span<const Camera> cameras) {
  std::string text;
  for (const Camera& camera : cameras) text += (text.empty() ? "" : "; ") + describe(camera);
  return text.empty() ? "nothing" : text;
}

bool fits(const Camera& camera, const FrameLayout& layout) {
  return camera.width_px == layout.width_px && camera.height_px == layout.height_px &&
         (camera.y_stride == 0 || camera.y_stride == layout.y_stride) &&
         (camera.sensor_id == 0 || camera.sensor_id == layout.sensor_id);
}

// A camera that states its sensor is meant for fewer frames than one that does not, and wins over it.
int specificity(const Camera& camera) {
  return (camera.sensor_id != 0 ? 2 : 0) + (camera.y_stride != 0 ? 1 : 0);
}

bool is_same_lens(const Camera& a, const Camera& b) {
  return a.focal_px == b.focal_px && a.center_x_px == b.center_x_px &&
         a.center_y_px == b.center_y_px && a.pose_focal_px == b.pose_focal_px &&
         a.version == b.version;
}

Error bad_camera(const std::string& why) {
  return Error(ErrorCode::InvalidArgument, why, "BadCamera");
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// "1280x720" -> 1280, 720
std::optional<std::pair<double, double>> parse_pair(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return {};
  const auto first = parse_number(text.substr(0, at));
  const auto second = parse_number(text.substr(at + 1));
  if (!first || !second) return {};
  return std::pair(*first, *second);
}

}  // namespace

std::span<const Camera> known_cameras() { return table(); }

Status check_camera(const Camera& camera) {
  const std::string size = std::to_string(camera.width_px) + "x" + std::to_string(camera.height_px);
  if (camera.width_px <= 0 || camera.height_px <= 0 || camera.width_px > kMaxFrameWidthPx ||
      camera.height_px > kMaxFrameHeightPx) {
    return bad_camera("Camera '" + camera.name + "' has size " + size +
                      "; sizes from 1x1 to 4096x3072 are supported.");
  }
  for (const double focal : {camera.focal_px, camera.pose_focal_px}) {
    if (std::isfinite(focal) && focal >= 1 && focal <= 1e6) continue;
    return bad_camera("Camera '" + camera.name + "' has a focal length of " +
                      std::to_string(focal) + " px; 1 to 1000000 px are supported.");
  }
  for (const double center : {camera.center_x_px, camera.center_y_px}) {
    if (std::isfinite(center) && std::abs(center) <= 1e6) continue;
    return bad_camera("Camera '" + camera.name + "' has its centre at " + std::to_string(center) +
                      " px, which is not within 1000000 px.");
  }
  return {};
}

Result<Camera> parse_camera(std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    return bad_camera("Camera '" + std::string(text) + "' " + why +
                      "; write WIDTHxHEIGHT,focal=PX[,center=X:Y][,pose_focal=PX][,sensor=N], as "
                      "1280x720,focal=610.");
  };
  Camera camera;
  camera.name = "own";
  bool has_focal = false;
  for (size_t begin = 0, index = 0; begin <= text.size(); ++index) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    if (index == 0) {
      const auto size = parse_pair(part, 'x');
      const bool is_whole = size && size->first >= 1 && size->first <= kMaxFrameWidthPx &&
                            size->second >= 1 && size->second <= kMaxFrameHeightPx &&
                            std::floor(size->first) == size->first &&
                            std::floor(size->second) == size->second;
      if (!is_whole) return refuse("has no size between 1x1 and 4096x3072");
      camera.width_px = static_cast<int>(size->first);
      camera.height_px = static_cast<int>(size->second);
      camera.center_x_px = camera.width_px / 2.0;
      camera.center_y_px = camera.height_px / 2.0;
      continue;
    }
    const size_t equals = std::min(part.find('='), part.size());
    const std::string_view key = part.substr(0, equals);
    const std::string_view word = part.substr(std::min(equals + 1, part.size()));
    const auto number = parse_number(word);
    const auto pair = parse_pair(word, ':');
    if (key == "focal" && number) {
      camera.focal_px = *number;
      has_focal = true;
    } else if (key == "pose_focal" && number) {
      camera.pose_focal_px = *number;
    } else if (key == "sensor" && number && *number >= 1 && *number <= 4294967295.0 &&
               std::floor(*number) == *number) {
      camera.sensor_id = static_cast<uint32_t>(*number);
    } else if (key == "center" && pair) {
      camera.center_x_px = pair->first;
      camera.center_y_px = pair->second;
    } else {
      return refuse("has the part '" + std::string(part) + "', which is not understood");
    }
  }
  if (!has_focal) return refuse("states no focal length");
  IGNIS_TRY(check_camera(camera));
  return camera;
}

std::vector<Camera> known_cameras_and(std::span<const Camera> own) {
  std::vector<Camera> cameras(own.begin(), own.end());
  for (const Camera& known : table()) {
    bool is_replaced = false;
    for (const Camera& camera : own) {
      is_replaced =
          is_replaced || (camera.width_px == known.width_px &&
                          camera.height_px == known.height_px && specificity(camera) == 0);
    }
    if (!is_replaced) cameras.push_back(known);
  }
  return cameras;
}

Result<Camera> find_camera(std::span<const Camera> cameras, const FrameLayout& layout) {
  const Camera* best = nullptr;
  const Camera* rival = nullptr;
  for (const Camera& camera : cameras) {
    if (!fits(camera, layout)) continue;
    if (best == nullptr || specificity(camera) > specificity(*best)) {
      best = &camera;
      rival = nullptr;
    } else if (specificity(camera) == specificity(*best) && !is_same_lens(camera, *best)) {
      rival = &camera;
    }
  }
  std::string stream = std::to_string(layout.width_px) + "x" + std::to_string(layout.height_px) +
                       ", stride " + std::to_string(layout.y_stride);
  if (layout.sensor_id != 0) stream += ", sensor " + std::to_string(layout.sensor_id);
  if (best == nullptr) {
    return Error(ErrorCode::NotFound,
                 "The stream is " + stream + "; no camera is known for that. Known: " +
                     describe(cameras) + ". State the intrinsics of yours.",
                 "UnknownGeometry");
  }
  if (rival != nullptr) {
    return Error(ErrorCode::NotFound,
                 "The stream is " + stream + "; cameras " + describe(*best) + " and " +
                     describe(*rival) +
                     " both fit and have different lenses. Remove one or state its sensor.",
                 "UnknownGeometry");
  }
  return *best;
}

std::array<float, 9> warp_matrix(const Camera& camera, double model_focal_px,
                                 double model_center_x_px, double model_center_y_px) {
  const double scale = camera.focal_px / model_focal_px;
  const double shift_x = camera.center_x_px - scale * model_center_x_px;
  const double shift_y = camera.center_y_px - scale * model_center_y_px;
  return {static_cast<float>(scale),
          0,
          static_cast<float>(shift_x),
          0,
          static_cast<float>(scale),
          static_cast<float>(shift_y),
          0,
          0,
          1};
}

}  // namespace ignis::pipeline
