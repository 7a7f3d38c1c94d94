#include "tools/demo_face/centerface.h"

#include "ignis/base/math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace ignis::demo {
namespace {

constexpr float kCellPx = 4;  // the network halves the picture twice on its way to the grid
constexpr float kMaxOverlap = 0.3F;
constexpr int64_t kSizeMultiple = 32;

/// One network output seen as planes of cells.
struct Grid {
  const float* data;
  int64_t rows, columns;
  float at(int64_t channel, int64_t row, int64_t column) const {
    return data[(channel * rows + row) * columns + column];
  }
};

Result<Grid> as_grid(const HostTensor& tensor, const char* name, int64_t channels,
                     const HostTensor& like) {
  const Shape wanted = {1, channels, like.shape.size() == 4 ? like.shape[2] : 0,
                        like.shape.size() == 4 ? like.shape[3] : 0};
  if (tensor.dtype != DType::Float32 || tensor.shape != wanted) {
    return Error(ErrorCode::InvalidArgument,
                 std::string("Output '") + name + "' is " + std::string(to_string(tensor.dtype)) +
                     to_string(tensor.shape) + "; the face decoder reads f32" + to_string(wanted) +
                     ".");
  }
  return Grid{tensor.data<float>(), wanted[2], wanted[3]};
}

float area(const Face& f) {
  return std::max(0.0F, f.lower_right.x_px - f.upper_left.x_px) *
         std::max(0.0F, f.lower_right.y_px - f.upper_left.y_px);
}

/// Intersection over union of two boxes.
float overlap(const Face& a, const Face& b) {
  Face both;
  both.upper_left = {std::max(a.upper_left.x_px, b.upper_left.x_px),
                     std::max(a.upper_left.y_px, b.upper_left.y_px)};
  both.lower_right = {std::min(a.lower_right.x_px, b.lower_right.x_px),
                      std::min(a.lower_right.y_px, b.lower_right.y_px)};
  const float shared = area(both);
  const float all = area(a) + area(b) - shared;
  return all > 0 ? shared / all : 0;
}

void fill_disc(tools::Image& image, Point centre, float radius_px,
               const std::array<uint8_t, 3>& colour) {
  const int reach = static_cast<int>(std::ceil(radius_px));
  const int cx = static_cast<int>(std::lround(centre.x_px));
  const int cy = static_cast<int>(std::lround(centre.y_px));
  for (int y = std::max(0, cy - reach); y <= std::min(image.height_px - 1, cy + reach); ++y) {
    for (int x = std::max(0, cx - reach); x <= std::min(image.width_px - 1, cx + reach); ++x) {
      const float dx = static_cast<float>(x - cx);
      const float dy = static_cast<float>(y - cy);
      if (dx * dx + dy * dy <= radius_px * radius_px)
        std::copy(colour.begin(), colour.end(), image.pixel(x, y));
    }
  }
}

void draw_frame(tools::Image& image, const Face& face, int thickness_px,
                const std::array<uint8_t, 3>& colour) {
  const int left = static_cast<int>(std::lround(face.upper_left.x_px));
  const int top = static_cast<int>(std::lround(face.upper_left.y_px));
  const int right = static_cast<int>(std::lround(face.lower_right.x_px));
  const int bottom = static_cast<int>(std::lround(face.lower_right.y_px));
  for (int y = std::max(0, top); y < std::min(image.height_px, bottom); ++y) {
    for (int x = std::max(0, left); x < std::min(image.width_px, right); ++x) {
      const int depth = std::min({x - left, right - 1 - x, y - top, bottom - 1 - y});
      if (depth < thickness_px) std::copy(colour.begin(), colour.end(), image.pixel(x, y));
    }
  }
}

}  // namespace

HostTensor make_input(const tools::Image& image) {
  const int64_t height = align_up<int64_t>(image.height_px, kSizeMultiple);
  const int64_t width = align_up<int64_t>(image.width_px, kSizeMultiple);
  HostTensor input = HostTensor::zeros(DType::Float32, {1, 3, height, width});
  for (int64_t channel = 0; channel < 3; ++channel) {
    float* plane = input.data<float>() + channel * height * width;
    for (int y = 0; y < image.height_px; ++y) {
      for (int x = 0; x < image.width_px; ++x) plane[y * width + x] = image.pixel(x, y)[channel];
    }
  }
  return input;
}

Result<std::vector<Face>> decode_faces(const CenterFaceOutputs& outputs, float threshold) {
  IGNIS_TRY_ASSIGN(const Grid heatmap, as_grid(outputs.heatmap, "heatmap", 1, outputs.heatmap));
  IGNIS_TRY_ASSIGN(const Grid scale, as_grid(outputs.scale, "scale", 2, outputs.heatmap));
  IGNIS_TRY_ASSIGN(const Grid offset, as_grid(outputs.offset, "offset", 2, outputs.heatmap));
  IGNIS_TRY_ASSIGN(const Grid landmarks,
                   as_grid(outputs.landmarks, "landmarks", 10, outputs.heatmap));

  std::vector<Face> candidates;
  for (int64_t row = 0; row < heatmap.rows; ++row) {
    for (int64_t column = 0; column < heatmap.columns; ++column) {
      const float score = heatmap.at(0, row, column);
      if (!(score > threshold)) continue;  // NaN is no face
      const float height_px = std::exp(scale.at(0, row, column)) * kCellPx;
      const float width_px = std::exp(scale.at(1, row, column)) * kCellPx;
      const float centre_y_px =
          (static_cast<float>(row) + offset.at(0, row, column) + 0.5F) * kCellPx;
      const float centre_x_px =
          (static_cast<float>(column) + offset.at(1, row, column) + 0.5F) * kCellPx;
      Face face;
      face.score = score;
      face.upper_left = {centre_x_px - width_px / 2, centre_y_px - height_px / 2};
      face.lower_right = {centre_x_px + width_px / 2, centre_y_px + height_px / 2};
      for (size_t i = 0; i < face.landmarks.size(); ++i) {
        const auto channel = static_cast<int64_t>(2 * i);
        face.landmarks[i] = {
            face.upper_left.x_px + landmarks.at(channel + 1, row, column) * width_px,
            face.upper_left.y_px + landmarks.at(channel, row, column) * height_px};
      }
      candidates.push_back(face);
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Face& a, const Face& b) { return a.score > b.score; });
  std::vector<Face> faces;
  for (const Face& candidate : candidates) {
    const bool is_new = std::none_of(faces.begin(), faces.end(), [&](const Face& f) {
      return overlap(f, candidate) >= kMaxOverlap;
    });
    if (is_new) faces.push_back(candidate);
  }
  return faces;
}

void draw_faces(tools::Image& image, const std::vector<Face>& faces) {
  const std::array<uint8_t, 3> green = {64, 224, 96};
  const std::array<uint8_t, 3> amber = {255, 176, 0};
  // Thick enough to be seen when the picture is shown small.
  const int thickness_px = std::max(3, std::min(image.width_px, image.height_px) / 160);
  for (const Face& face : faces) {
    draw_frame(image, face, thickness_px, green);
    for (const Point& p : face.landmarks)
      fill_disc(image, p, static_cast<float>(thickness_px) * 1.5F, amber);
  }
}

}  // namespace ignis::demo
