#pragma once

#include "ignis/base/host_tensor.h"

#include "tools/io/image.h"

#include <array>
#include <vector>

namespace ignis::demo {

struct Point {
  float x_px = 0, y_px = 0;
};

/// A face in picture coordinates: pixels from the upper left corner.
struct Face {
  Point upper_left, lower_right;
  float score = 0;                   ///< 0 to 1
  std::array<Point, 5> landmarks{};  ///< both eyes, nose, both corners of the mouth
};

/// What CenterFace answers for one picture, on a grid of one cell for 4 x 4 pixels; each float32 [1, C, h, w].
struct CenterFaceOutputs {
  const HostTensor&
      heatmap;  ///< C = 1: how sure the network is that a face's centre lies in the cell
  const HostTensor& scale;   ///< C = 2: logarithm of the box's height and width in cells
  const HostTensor& offset;  ///< C = 2: y and x of the centre within the cell
  const HostTensor&
      landmarks;  ///< C = 10: y and x of each landmark, in box heights and widths from its corner
};

/// The picture as float32 [1, 3, H, W] in 0 … 255, colour order RGB, black below and to the right up to the next
/// multiple of 32, which the network's five halvings need.
HostTensor make_input(const tools::Image& image);

/// Boxes of all cells above `threshold`, best first, without those that overlap a better one by more than 0.3
/// (intersection over union). Errors: InvalidArgument when the outputs' shapes do not belong together.
Result<std::vector<Face>> decode_faces(const CenterFaceOutputs& outputs, float threshold = 0.5F);

/// Draws each face's box and landmarks into the picture; what lies outside is left out.
void draw_faces(tools::Image& image, const std::vector<Face>& faces);

}  // namespace ignis::demo
