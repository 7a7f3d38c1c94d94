#pragma once

#include <cstdint>
#include <vector>

namespace ignis::onnx {

enum class ResizeMode : uint8_t { Nearest, Linear, Cubic };
enum class NearestMode : uint8_t { RoundPreferFloor, RoundPreferCeil, Floor, Ceil };
enum class CoordinateMode : uint8_t {
  HalfPixel,
  HalfPixelSymmetric,
  PytorchHalfPixel,
  AlignCorners,
  Asymmetric,
  TfHalfPixelForNn,
  TfCropAndResize,
};

/// How one axis is resampled. `out` and `scale` are stated separately: with `scales` given, the coordinate formulas use
/// the scale itself, which need not be out / in.
struct AxisResize {
  int64_t in = 1, out = 1;
  double scale = 1;
  double roi_start = 0, roi_end = 1;
  ResizeMode mode = ResizeMode::Nearest;
  NearestMode nearest = NearestMode::RoundPreferFloor;
  CoordinateMode coordinate = CoordinateMode::HalfPixel;
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
};

/// Where each output position of one axis reads, and with which weight: y[o] = sum over t of weight[o, t] *
/// x[index[o, t]]. Indices are inside the axis; positions beyond the border repeat the border's sample.
struct AxisTable {
  int64_t out = 0;
  int64_t taps = 1;
  std::vector<int64_t> index;    ///< [out, taps]
  std::vector<double> weight;    ///< [out, taps]
  std::vector<uint8_t> outside;  ///< [out]; 1 where tf_crop_and_resize extrapolates
  bool has_outside = false;

  /// One tap of weight 1 everywhere: a pure selection.
  bool is_selection() const { return taps == 1; }
  /// y[o] = x[o] for every o, nothing outside.
  bool is_identity(int64_t in) const;
};

/// The position of output `o` on the input axis, by the formulas of ONNX Resize-19.
double source_coordinate(const AxisResize& axis, int64_t o);

/// Builds the table of one axis. Requires in >= 1, out >= 0, scale > 0.
AxisTable make_axis_table(const AxisResize& axis);

}  // namespace ignis::onnx
