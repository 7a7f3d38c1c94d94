#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ignis::tools {

/// Shrinks frames and writes them as JPEG. Keeps its planes from frame to frame; used from one thread.
class JpegEncoder {
 public:
  explicit JpegEncoder(int max_width_px = 960, int quality = 80)
      : max_width_px_(max_width_px), quality_(quality) {}

  /// Colour picture (4:2:0, full range) of at most max_width_px, with the frame's aspect. Errors: InvalidArgument when the
  /// layout's planes lie outside of the frame's bytes, Unsupported in a build without libjpeg, Internal.
  Result<std::vector<std::byte>> encode(const pipeline::Frame& frame);

 private:
  struct Plane {
    int width_px = 0, height_px = 0;  ///< of the picture; the memory is padded to whole JPEG blocks
    int stride = 0, rows = 0;
    std::vector<uint8_t> samples;
  };
  void shrink(const std::byte* from, int64_t stride, int step, int width_px, int height_px,
              const std::vector<uint8_t>& levels, Plane& to) const;

  int max_width_px_, quality_;
  Plane y_, u_, v_;
};

}  // namespace ignis::tools
