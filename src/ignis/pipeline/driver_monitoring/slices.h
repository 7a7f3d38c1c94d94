#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/driver_monitoring/pickle.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ignis::pipeline {

/// A checked range of an output vector.
struct Slice {
  std::string name;
  int64_t start = 0, stop = 0;

  int64_t width() const { return stop - start; }
  bool operator==(const Slice&) const = default;
};

/// The one-value heads of a side, in the order of the probabilities in DriverData.
enum class Head : uint8_t {
  Face,
  LeftEye,
  RightEye,
  LeftBlink,
  RightBlink,
  Sunglasses,
  Phone,
  Sleep
};
inline constexpr int kHeadCount = 8;
inline constexpr int64_t kDescriptorWidth = 12;

/// Where a two-sided model's heads lie in its output vector: checked, so that decoding needs no look at bounds.
struct HeadTable {
  struct Side {
    Slice descriptor;                     ///< kDescriptorWidth values
    std::array<Slice, kHeadCount> heads;  ///< width 1; width 0: this generation has no such head
    bool has(Head head) const { return heads[static_cast<size_t>(head)].width() == 1; }
  };
  int64_t output_count = 0;
  Side left, right;  ///< lhd, rhd
  Slice wheel_on_right;
  std::vector<Slice> used;  ///< all of the above, by ascending start
};

/// Checks a model file's own map against the contract: start < stop <= output_count, width 12 for descriptors and 1 for
/// heads, no two heads overlapping, nothing but the sleep heads missing.
/// Errors: InvalidArgument with reason SliceOutOfRange, SliceWidth, SliceOverlap or SliceMissing, naming the slice.
Result<HeadTable> make_head_table(std::span<const NamedSlice> slices, int64_t output_count);

/// The map of a file that brings none, by the number of outputs: 553 (with sleep heads) or 551 (without). The order of
/// the heads follows the order of their names; only for synthetic models and the oldest files.
/// Errors: Unsupported for other counts, 595 and 596 too: where their eye landmarks lie is not certain.
Result<std::vector<NamedSlice>> default_slices(int64_t output_count);

}  // namespace ignis::pipeline
