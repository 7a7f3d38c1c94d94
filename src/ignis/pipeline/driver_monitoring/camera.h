#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"
#include "ignis/pipeline/frames/layout.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::pipeline {

/// A camera as the cabin pipeline knows it: lens, size, and the constants of the consumer's pose conversion, under one
/// version that producer and consumer both check.
struct Camera {
  std::string name;        ///< "cabin-a"
  uint32_t sensor_id = 0;  ///< 0 fits any stated or unstated sensor
  int width_px = 0, height_px = 0;
  int64_t y_stride = 0;  ///< 0: any
  double focal_px = 0, center_x_px = 0, center_y_px = 0;
  double pose_focal_px =
      598.0;  ///< of the consumer's pose conversion, in its reference image of 1928x1208
  uint32_t version = 1;
};

/// The cameras known without being told: A (1928x1208) and B (1344x760).
std::span<const Camera> known_cameras();

/// Intrinsics given by a user: "1280x720,focal=610[,center=640:360][,pose_focal=598][,sensor=7]". The centre is half of
/// the size unless stated. Errors: InvalidArgument with reason "BadCamera".
Result<Camera> parse_camera(std::string_view text);

/// Size, focal lengths and centre are possible. Errors: InvalidArgument with reason "BadCamera".
Status check_camera(const Camera& camera);

/// `own` and those known cameras that none of them replaces (one of the same size without a sensor or stride).
std::vector<Camera> known_cameras_and(std::span<const Camera> own);

/// The one camera whose size, stride and sensor are the layout's. Errors: NotFound with reason "UnknownGeometry"; the
/// message names the layout's size and all that is known.
Result<Camera> find_camera(std::span<const Camera> cameras, const FrameLayout& layout);

/// 3x3, row-major: takes output pixels to source pixels. Computed in double, stored as float32.
/// M = K_camera * inverse(K_model).
std::array<float, 9> warp_matrix(const Camera& camera, double model_focal_px,
                                 double model_center_x_px, double model_center_y_px);

}  // namespace ignis::pipeline
