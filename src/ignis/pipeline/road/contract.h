#pragma once

#include "ignis/base/dtype.h"
#include "ignis/base/host_tensor.h"
#include "ignis/base/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::pipeline {

/// A tensor that a road network takes or gives, as its artifact states it.
struct RoadPort {
  std::string name;
  DType dtype = DType::Float32;
  Shape shape;
};

/// How a named part of the output vector is read.
enum class RoadDecode : uint8_t { Raw, Logit, Softmax };

/// values[start, stop) of the output vector.
struct RoadSlice {
  std::string name;
  int64_t start = 0, stop = 0;
  RoadDecode decode = RoadDecode::Raw;
};

/// What an artifact says of itself: the part of it that the host depends on.
struct RoadContract {
  /// In upload order (section 11.1): "transforms", then the float inputs in the artifact's order, then "frames".
  std::vector<RoadPort> inputs;
  int64_t output_count = 0;
  std::vector<RoadSlice> slices;
};

/// Names of the inputs that the host can fill.
inline constexpr std::string_view kTransformsInput = "transforms";  ///< f32 [2, 3, 3]: main, wide
inline constexpr std::string_view kDesireInput = "desire_pulse";    ///< f32 [1, 8]
inline constexpr std::string_view kTrafficInput =
    "traffic_convention";  ///< f32 [1, 2]: one-hot, index 1 drives on the left
inline constexpr std::string_view kActionInput =
    "action_t";  ///< f32 [1, 2]: lateral, longitudinal look-ahead in s
inline constexpr std::string_view kFramesInput = "frames";  ///< u8 [2, bytes of one frame]

/// Checks start < stop <= output_count, no overlap, no name twice.
/// Errors: InvalidArgument, reason SliceOutOfRange, SliceOverlap or SliceName, naming the slice.
Status check_slices(std::span<const RoadSlice> slices, int64_t output_count);

}  // namespace ignis::pipeline
