#pragma once

#include "ignis/pipeline/driver_monitoring/model.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ignis::pipeline {

/// The maps of a centre-point face detector on a grid of one cell for 4x4 input pixels, each float32, planar.
struct FaceMaps {
  int64_t rows = 0, columns = 0;
  std::span<const float>
      heat;  ///< [1]: how sure the network is that a face's centre lies in the cell
  std::span<const float> size;    ///< [2]: logarithm of the box's height and width in cells
  std::span<const float> offset;  ///< [2]: y and x of the centre within the cell
  std::span<const float>
      landmarks;  ///< [10]: y and x of each, in box heights and widths from its corner
};

/// What the maps say of one picture, in pixels of the network's input.
struct FaceDecode {
  Reasons reasons;        ///< OutputSize, NonFinite, DegenerateOutput
  std::string_view head;  ///< the map at fault
  float score = 0;        ///< of the best cell, whether it counts as a face or not
  bool has_face = false;
  Prediction::Face face;
};

/// Finds the best face: of the boxes above `threshold`, without those that overlap a better one by more than 0.3
/// (intersection over union), the one with the largest score * area: the driver sits nearest to the camera. Checks all
/// that it uses. Keeps its lists, so that decoding allocates nothing once they have grown.
class FaceDecoder {
 public:
  explicit FaceDecoder(float threshold = 0.5f) : threshold_(threshold) {}
  FaceDecode decode(const FaceMaps& maps);

 private:
  float threshold_;
  std::vector<Prediction::Face> candidates_, faces_;
};

}  // namespace ignis::pipeline
