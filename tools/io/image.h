#pragma once

#include "ignis/base/host_tensor.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ignis::tools {

/// 8-bit RGB pixels, row by row from the top left.
struct Image {
  int width_px = 0, height_px = 0;
  std::vector<uint8_t> rgb;  ///< 3 * width_px * height_px

  uint8_t* pixel(int x, int y) {
    return rgb.data() +
           3 * (static_cast<size_t>(y) * static_cast<size_t>(width_px) + static_cast<size_t>(x));
  }
  const uint8_t* pixel(int x, int y) const { return const_cast<Image*>(this)->pixel(x, y); }
};

/// Decodes PNG (any kind, 16 bits become 8, transparency goes on black), JPEG where the build has libjpeg, or binary
/// PPM and PGM. At most 2^28 pixels. Errors: InvalidArgument.
Result<Image> parse_image(std::span<const std::byte> bytes);
Result<std::vector<std::byte>> format_png(const Image& image);
/// Binary PPM (P6).
std::vector<std::byte> format_ppm(const Image& image);

/// Bilinear, pixel centres at halves; edges are repeated. Both extents > 0.
Image resize(const Image& image, int width_px, int height_px);

/// How pixels become a tensor: element = (pixel - mean) * scale, channel by channel.
struct ImageLayout {
  std::string order = "NCHW";     ///< some order of N, C, H and W; N and C may be missing
  std::string color = "rgb";      ///< "rgb", "bgr" or "gray" (one channel, Rec. 601 weights)
  std::vector<double> mean{0.0};  ///< one value, or one for each channel
  std::vector<double> scale{1.0};
};
/// The shape to_tensor gives. Errors: InvalidArgument when the order or colour is none.
Result<Shape> tensor_shape(const Image& image, const ImageLayout& layout);
Result<HostTensor> to_tensor(const Image& image, const ImageLayout& layout, DType dtype);

}  // namespace ignis::tools
