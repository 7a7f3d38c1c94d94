#include "ignis/pipeline/driver_monitoring/geometry.h"

#include "ignis/pipeline/driver_monitoring/staged_model.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace ignis::pipeline {
namespace {

// The two-sided model's virtual camera (section 4 of the contract).
constexpr int kCommaWidthPx = 1440, kCommaHeightPx = 960;
constexpr double kFocalPx = 567, kCenterXPx = 720, kCenterYPx = 356;

// A driver's face fills a large part of a cabin camera's picture, so a small one is enough. Multiples of 32: the network
// halves five times.
constexpr int kFaceWidthPx = 480, kFaceHeightPx = 320;
constexpr int64_t kSizeMultiple = 32;
// Sizes below are placeholders of the exporter, not what the network was made for.
constexpr int64_t kLeastStatedPx = 128;

// All numbers of a layout, so that two that differ in anything have two names.
std::string layout_text(const FrameLayout& layout) {
  return std::string(to_string(layout.format)) + " " + std::to_string(layout.width_px) + "x" +
         std::to_string(layout.height_px) + " stride " + std::to_string(layout.y_stride) + "/" +
         std::to_string(layout.uv_stride) + " planes " + std::to_string(layout.u_offset) + "/" +
         std::to_string(layout.v_offset) + " bytes " + std::to_string(layout.size_bytes);
}

// As exact as the number: a camera whose lens differs in the last bit has another crop.
std::string number_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace

std::array<float, 9> comma_553_matrix(const Camera& camera) {
  return warp_matrix(camera, kFocalPx, kCenterXPx, kCenterYPx);
}

double rgb_scale(const FrameLayout& layout, int width_px, int height_px) {
  return std::max(static_cast<double>(layout.width_px) / width_px,
                  static_cast<double>(layout.height_px) / height_px);
}

std::string WarpRequest::name() const {
  switch (profile) {
    case Profile::Comma553:
      return "warp luma " + std::to_string(shape.source_width_px) + "x" +
             std::to_string(shape.source_height_px) + " stride " +
             std::to_string(shape.source_stride) +
             (kind == WarpKind::AxisAligned ? " axis-aligned" : " projective");
    case Profile::Comma38:
      return "warp planes " + std::string(side == DriverSide::Left ? "left" : "right") + " " +
             layout_text(layout) + " focal " + number_text(camera.focal_px) + " centre " +
             number_text(camera.center_x_px) + "/" + number_text(camera.center_y_px);
    case Profile::Face:
      return "warp rgb " + std::to_string(width_px) + "x" + std::to_string(height_px) + " of " +
             layout_text(layout) + (layout.range == ColorRange::Full ? " full" : " limited");
  }
  return "warp";
}

Result<WarpRequest> make_warp_request(Profile profile, const FrameLayout& layout,
                                      const Camera& camera, DriverSide side, int width_px,
                                      int height_px) {
  WarpRequest request;
  request.profile = profile;
  request.layout = layout;
  request.camera = camera;
  request.side = side;
  request.width_px = width_px;
  request.height_px = height_px;
  if (profile == Profile::Comma553) {
    request.shape = {layout.width_px, layout.height_px, layout.y_stride, kCommaWidthPx,
                     kCommaHeightPx};
    request.kind = warp_kind(comma_553_matrix(camera));
  }
  return request;
}

// A picture size of the file itself, where it states a usable one.
Result<std::pair<int, int>> choose_picture_size(const PortShape& input) {
  const int64_t height = input.dims[2], width = input.dims[3];
  if (height < kLeastStatedPx || width < kLeastStatedPx) {
    return std::pair(kFaceWidthPx, kFaceHeightPx);
  }
  if (height % kSizeMultiple != 0 || width % kSizeMultiple != 0 || height > 4096 || width > 4096) {
    return Error(ErrorCode::Unsupported,
                 "Input '" + input.name + "' is a picture of " + std::to_string(width) + "x" +
                     std::to_string(height) + "; multiples of 32 up to 4096 are read.",
                 "ArtifactMismatch");
  }
  return std::pair(static_cast<int>(width), static_cast<int>(height));
}

exec::Geometry describe_geometry(Profile profile, int width_px, int height_px) {
  exec::Geometry geometry;
  geometry.profile = to_string(profile);
  switch (profile) {
    case Profile::Comma553:
      geometry.width_px = kCommaWidthPx;
      geometry.height_px = kCommaHeightPx;
      geometry.focal_px = kFocalPx;
      geometry.center_x_px = kCenterXPx;
      geometry.center_y_px = kCenterYPx;
      geometry.warp = "homography";
      geometry.rounding = "nearest, ties to even";
      geometry.planes = "y";
      geometry.fill = WarpShape().fill;
      break;
    case Profile::Comma38:
      geometry.width_px = 320;
      geometry.height_px = 640;
      geometry.warp = "crop";
      geometry.rounding = "bilinear, to a byte";
      geometry.planes = "y4uv";
      break;
    case Profile::Face:
      geometry.width_px = width_px;
      geometry.height_px = height_px;
      geometry.warp = "scale";
      geometry.rounding = "bilinear";
      geometry.planes = "rgb";
      break;
  }
  return geometry;
}

}  // namespace ignis::pipeline
