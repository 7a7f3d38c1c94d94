#include "ignis/onnx/resize_table.h"

#include <algorithm>
#include <cmath>

namespace ignis::onnx {
namespace {

// Keys' cubic convolution kernel, equation (4) of "Cubic Convolution Interpolation for Digital Image Processing"
// (IEEE Transactions on ASSP 29(6), 1981), with its free parameter a.
double cubic_kernel(double t, double a) {
  t = std::abs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  if (t < 2) return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
  return 0;
}

double kernel_value(const AxisResize& axis, double t) {
  if (axis.mode == ResizeMode::Cubic) return cubic_kernel(t, axis.cubic_a);
  return std::max(0.0, 1 - std::abs(t));
}

int64_t nearest_index(NearestMode mode, double x) {
  // Scales come as float32: 3.5 / 0.7f - 0.5 is meant to be the tie 4.5, not 4.50000009. A position as near to a half or a
  // whole number as float32 can tell is that number.
  const double half = std::round(2 * x) / 2;
  if (std::abs(x - half) <= 2.5e-7 * std::max(1.0, std::abs(x))) x = half;
  switch (mode) {
    case NearestMode::RoundPreferFloor: return static_cast<int64_t>(std::ceil(x - 0.5));
    case NearestMode::RoundPreferCeil: return static_cast<int64_t>(std::floor(x + 0.5));
    case NearestMode::Floor: return static_cast<int64_t>(std::floor(x));
    case NearestMode::Ceil: return static_cast<int64_t>(std::ceil(x));
  }
  return 0;
}

}  // namespace

bool AxisTable::is_identity(int64_t in) const {
  if (out != in || has_outside) return false;
  // A longer filter is the identity when all its weight lies on the position itself.
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t t = 0; t < taps; ++t) {
      const size_t at = static_cast<size_t>(o * taps + t);
      if (weight[at] != (index[at] == o ? 1.0 : 0.0) && weight[at] != 0) return false;
    }
  }
  return true;
}

double source_coordinate(const AxisResize& axis, int64_t o) {
  const double x = static_cast<double>(o);
  const double in = static_cast<double>(axis.in);
  const double out = static_cast<double>(axis.out);
  switch (axis.coordinate) {
    case CoordinateMode::HalfPixel: return (x + 0.5) / axis.scale - 0.5;
    case CoordinateMode::HalfPixelSymmetric: {
      // The exact output width may be fractional; the crop to whole pixels is shared by both ends.
      const double adjustment = out / (axis.scale * in);
      return in / 2 * (1 - adjustment) + (x + 0.5) / axis.scale - 0.5;
    }
    case CoordinateMode::PytorchHalfPixel: return axis.out > 1 ? (x + 0.5) / axis.scale - 0.5 : 0;
    case CoordinateMode::AlignCorners: return axis.out > 1 ? x * (in - 1) / (out - 1) : 0;
    case CoordinateMode::Asymmetric: return x / axis.scale;
    case CoordinateMode::TfHalfPixelForNn: return (x + 0.5) / axis.scale;
    case CoordinateMode::TfCropAndResize:
      return axis.out > 1 ? axis.roi_start * (in - 1) +
                                x * (axis.roi_end - axis.roi_start) * (in - 1) / (out - 1)
                          : 0.5 * (axis.roi_start + axis.roi_end) * (in - 1);
  }
  return 0;
}

AxisTable make_axis_table(const AxisResize& axis) {
  AxisTable table;
  table.out = axis.out;
  // An antialias filter is stretched when shrinking, so that every input sample counts.
  const double stretch = axis.antialias ? std::max(1.0, 1 / axis.scale) : 1.0;
  const double half_width = (axis.mode == ResizeMode::Cubic ? 2 : 1) * stretch;
  if (axis.mode != ResizeMode::Nearest) {
    table.taps = 2 * static_cast<int64_t>(std::ceil(half_width));
  }
  const size_t n = static_cast<size_t>(table.out * table.taps);
  table.index.resize(n);
  table.weight.assign(n, 1.0);
  table.outside.assign(static_cast<size_t>(table.out), 0);
  for (int64_t o = 0; o < axis.out; ++o) {
    // A far or undefined position (tiny scales, an odd region) is one beyond the border.
    double x = source_coordinate(axis, o);
    x = std::isnan(x) ? 0 : std::clamp(x, -1e15, 1e15);
    if (axis.coordinate == CoordinateMode::TfCropAndResize &&
        (x < 0 || x > static_cast<double>(axis.in - 1))) {
      table.outside[static_cast<size_t>(o)] = 1;
      table.has_outside = true;
    }
    const size_t row = static_cast<size_t>(o * table.taps);
    if (axis.mode == ResizeMode::Nearest) {
      table.index[row] = std::clamp<int64_t>(nearest_index(axis.nearest, x), 0, axis.in - 1);
      continue;
    }
    const int64_t first = static_cast<int64_t>(std::floor(x)) - table.taps / 2 + 1;
    double sum = 0;
    for (int64_t t = 0; t < table.taps; ++t) {
      const int64_t i = first + t;
      double w = kernel_value(axis, (static_cast<double>(i) - x) / stretch);
      if (axis.exclude_outside && (i < 0 || i >= axis.in)) w = 0;
      table.index[row + static_cast<size_t>(t)] = std::clamp<int64_t>(i, 0, axis.in - 1);
      table.weight[row + static_cast<size_t>(t)] = w;
      sum += w;
    }
    // The plain filters sum to 1 by construction; a stretched or cut one has to be brought back.
    if ((axis.exclude_outside || axis.antialias) && sum != 0) {
      for (int64_t t = 0; t < table.taps; ++t) table.weight[row + static_cast<size_t>(t)] /= sum;
    }
  }
  return table;
}

}  // namespace ignis::onnx
