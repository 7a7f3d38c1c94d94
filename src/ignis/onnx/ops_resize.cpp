// Resize and Upsample, from per-axis tables (resize_table.h).
#include "ignis/onnx/ops_common.h"
#include "ignis/onnx/resize_table.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace ignis::onnx {
namespace {

namespace t = tensor;

// Longer filters (antialiased ones) become a product with a matrix instead of one term a tap.
constexpr int64_t kMaxTaps = 4;

// Every index is o / factor: each element is repeated.
int64_t repeat_factor(const AxisTable& table, int64_t in) {
  if (in == 0 || table.out % in != 0) return 0;
  const int64_t factor = table.out / in;
  for (int64_t o = 0; o < table.out; ++o) {
    if (table.index[static_cast<size_t>(o)] != o / factor) return 0;
  }
  return factor;
}

// Every index is first + o * step: a strided slice.
int64_t slice_step(const AxisTable& table) {
  if (table.out < 2) return table.out == 1 ? 1 : 0;
  const int64_t step = table.index[1] - table.index[0];
  if (step <= 0) return 0;
  for (int64_t o = 1; o < table.out; ++o) {
    if (table.index[static_cast<size_t>(o)] != table.index[0] + o * step) return 0;
  }
  return step;
}

// x[index] along one axis, as a movement where the indices are regular.
Tensor take(const OpContext& ctx, const Tensor& x, int64_t axis, const AxisTable& table) {
  const int64_t in = x.dim(static_cast<int>(axis));
  if (const int64_t factor = repeat_factor(table, in); factor > 0) {
    return factor == 1 ? x : t::repeat_interleave(x, axis, factor);
  }
  if (const int64_t step = slice_step(table); step > 0) {
    const int64_t first = table.index[0];
    return t::slice(x, axis, first, first + (table.out - 1) * step + 1, step);
  }
  return t::gather(x, ctx.ints(table.index), axis);
}

// A constant vector along `axis` of a tensor of rank `rank`.
Tensor along(const OpContext& ctx, const Tensor& like, int64_t axis, DType dtype,
             const std::vector<double>& values) {
  HostTensor host = HostTensor::from<double>(dtype, {static_cast<int64_t>(values.size())}, values);
  Shape shape(like.shape().size(), 1);
  shape[static_cast<size_t>(axis)] = static_cast<int64_t>(values.size());
  return t::reshape(ctx.constant(host), shape);
}

// Column `tap` of a table as a table of its own.
AxisTable tap_of(const AxisTable& table, int64_t tap) {
  AxisTable column;
  column.out = table.out;
  for (int64_t o = 0; o < table.out; ++o) {
    column.index.push_back(table.index[static_cast<size_t>(o * table.taps + tap)]);
  }
  return column;
}

// The whole table as a matrix [in, out].
Tensor dense_weights(const OpContext& ctx, const AxisTable& table, int64_t in, DType dtype) {
  HostTensor w = HostTensor::zeros(DType::Float64, {in, table.out});
  for (int64_t o = 0; o < table.out; ++o) {
    for (int64_t tap = 0; tap < table.taps; ++tap) {
      const size_t at = static_cast<size_t>(o * table.taps + tap);
      w.data<double>()[table.index[at] * table.out + o] += table.weight[at];
    }
  }
  return t::cast(ctx.constant(w), dtype);
}

Tensor resample_axis(const OpContext& ctx, const Tensor& x, int64_t axis, const AxisTable& table) {
  if (table.is_selection()) return take(ctx, x, axis, table);
  if (table.taps > kMaxTaps) {
    const Tensor last = t::move_axis(x, axis, x.rank() - 1);
    const Tensor w = dense_weights(ctx, table, x.dim(static_cast<int>(axis)), x.dtype());
    return t::move_axis(t::matmul(last, w), x.rank() - 1, axis);
  }
  Tensor sum;
  for (int64_t tap = 0; tap < table.taps; ++tap) {
    std::vector<double> weights;
    bool is_used = false;
    for (int64_t o = 0; o < table.out; ++o) {
      weights.push_back(table.weight[static_cast<size_t>(o * table.taps + tap)]);
      is_used = is_used || weights.back() != 0;
    }
    if (!is_used) continue;
    const Tensor term =
        take(ctx, x, axis, tap_of(table, tap)) * along(ctx, x, axis, x.dtype(), weights);
    sum = sum ? sum + term : term;
  }
  return sum ? sum : take(ctx, x, axis, tap_of(table, 0)) * 0.0;
}

// Names of the standard's string attributes.
Result<ResizeMode> resize_mode(const OpContext& ctx) {
  const std::string name = ctx.attr_string("mode", "nearest");
  if (name == "nearest") return ResizeMode::Nearest;
  if (name == "linear" || name == "bilinear" || name == "trilinear") return ResizeMode::Linear;
  if (name == "cubic") return ResizeMode::Cubic;
  return ctx.error("Unknown mode '" + name + "'.");
}

Result<NearestMode> nearest_mode(const OpContext& ctx) {
  const std::string name = ctx.attr_string("nearest_mode", "round_prefer_floor");
  if (name == "round_prefer_floor") return NearestMode::RoundPreferFloor;
  if (name == "round_prefer_ceil") return NearestMode::RoundPreferCeil;
  if (name == "floor") return NearestMode::Floor;
  if (name == "ceil") return NearestMode::Ceil;
  return ctx.error("Unknown nearest_mode '" + name + "'.");
}

Result<CoordinateMode> coordinate_mode(const OpContext& ctx) {
  const std::string name = ctx.attr_string("coordinate_transformation_mode", "half_pixel");
  if (name == "half_pixel") return CoordinateMode::HalfPixel;
  if (name == "half_pixel_symmetric") return CoordinateMode::HalfPixelSymmetric;
  if (name == "pytorch_half_pixel") return CoordinateMode::PytorchHalfPixel;
  if (name == "align_corners") return CoordinateMode::AlignCorners;
  if (name == "asymmetric") return CoordinateMode::Asymmetric;
  if (name == "tf_half_pixel_for_nn") return CoordinateMode::TfHalfPixelForNn;
  if (name == "tf_crop_and_resize") return CoordinateMode::TfCropAndResize;
  return ctx.error("Unknown coordinate_transformation_mode '" + name + "'.");
}

Result<std::vector<double>> const_doubles(const OpContext& ctx, int i) {
  IGNIS_TRY_ASSIGN(const HostTensor value, ctx.const_input(i));
  std::vector<double> out;
  for (int64_t k = 0; k < value.count(); ++k) out.push_back(element_as_double(value, k));
  return out;
}

// The axis keeps its values, whatever the mode.
bool is_copied(const AxisResize& axis) {
  return axis.in == axis.out && axis.scale == 1 &&
         axis.coordinate != CoordinateMode::TfCropAndResize &&
         axis.coordinate != CoordinateMode::TfHalfPixelForNn;
}

// Applies one table an axis: first those that shrink, so that the intermediate values stay small.
OpOutputs resample(const OpContext& ctx, const std::vector<AxisResize>& axes,
                   double extrapolation) {
  const Tensor& x = ctx.input(0);
  const bool is_selection = axes.empty() || axes[0].mode == ResizeMode::Nearest;
  // Interpolated integers are computed as floats and rounded to the nearest; narrow floats are widened.
  const bool widen = !is_selection && x.dtype() != DType::Float64;
  Tensor y = widen ? t::cast(x, DType::Float32) : x;
  std::optional<Tensor> outside;
  std::vector<size_t> order(axes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return axes[a].out * axes[b].in < axes[b].out * axes[a].in;
  });
  for (const size_t axis : order) {
    if (is_copied(axes[axis])) continue;
    const AxisTable table = make_axis_table(axes[axis]);
    if (table.is_identity(axes[axis].in)) continue;
    y = resample_axis(ctx, y, static_cast<int64_t>(axis), table);
    if (!table.has_outside) continue;
    std::vector<double> flags(table.outside.begin(), table.outside.end());
    const Tensor flag = along(ctx, x, static_cast<int64_t>(axis), DType::Bool, flags);
    outside = outside ? t::logical_or(*outside, flag) : flag;
  }
  if (outside) y = t::where(*outside, extrapolation, y);
  if (widen && !is_float(x.dtype())) y = t::round(y);
  return one(t::cast(y, x.dtype()));
}

Status check_axis(const OpContext& ctx, const AxisResize& axis) {
  if (!(axis.scale > 0) || !std::isfinite(axis.scale)) {
    return ctx.error("A scale of " + std::to_string(axis.scale) + " is not positive.");
  }
  if (axis.out < 0 || axis.out > ctx.limits().max_elements || (axis.out > 0 && axis.in == 0)) {
    return ctx.error("An axis of " + std::to_string(axis.in) + " cannot become " +
                     std::to_string(axis.out) + ".");
  }
  if (is_copied(axis)) return Status::ok();
  // The table, and for long filters the matrix, is made on the host.
  const double taps = axis.antialias ? 4 / std::min(1.0, axis.scale) + 2 : 4;
  const double width = taps > kMaxTaps ? std::max(taps, static_cast<double>(axis.in)) : taps;
  if (width * static_cast<double>(axis.out) > static_cast<double>(ctx.limits().max_fold_elements)) {
    return Error(ErrorCode::InvalidArgument,
                 "The table that makes an axis of " + std::to_string(axis.in) + " one of " +
                     std::to_string(axis.out) + " is over the limit.",
                 "LimitExceeded");
  }
  return Status::ok();
}

void require_output_size(const OpContext& ctx, const std::vector<AxisResize>& axes) {
  Shape shape;
  for (const AxisResize& axis : axes) shape.push_back(axis.out);
  require_size(ctx, shape);
}

// Sizes after keep_aspect_ratio_policy; `scale` of each listed axis is set as well.
Status apply_sizes(const OpContext& ctx, const std::vector<int64_t>& listed,
                   const std::vector<int64_t>& sizes, std::vector<AxisResize>& axes) {
  const std::string policy = ctx.attr_string("keep_aspect_ratio_policy", "stretch");
  const bool is_stretch = policy == "stretch";
  if (!is_stretch && policy != "not_larger" && policy != "not_smaller") {
    return ctx.error("Unknown keep_aspect_ratio_policy '" + policy + "'.");
  }
  double common = policy == "not_larger" ? INFINITY : 0;
  for (size_t i = 0; i < listed.size(); ++i) {
    AxisResize& axis = axes[static_cast<size_t>(listed[i])];
    axis.out = sizes[i];
    axis.scale = axis.in == 0 ? 1 : static_cast<double>(sizes[i]) / static_cast<double>(axis.in);
    common = policy == "not_larger" ? std::min(common, axis.scale) : std::max(common, axis.scale);
  }
  if (is_stretch) return Status::ok();
  for (const int64_t i : listed) {
    AxisResize& axis = axes[static_cast<size_t>(i)];
    axis.scale = common;
    // Halfway cases are rounded up.
    const double extent = std::floor(common * static_cast<double>(axis.in) + 0.5);
    axis.out = extent >= 0 && extent < 9e15 ? static_cast<int64_t>(extent) : -1;
  }
  return Status::ok();
}

void apply_scales(const std::vector<int64_t>& listed, const std::vector<double>& scales,
                  std::vector<AxisResize>& axes) {
  for (size_t i = 0; i < listed.size(); ++i) {
    AxisResize& axis = axes[static_cast<size_t>(listed[i])];
    axis.scale = scales[i];
    const double roi =
        axis.coordinate == CoordinateMode::TfCropAndResize ? axis.roi_end - axis.roi_start : 1.0;
    const double extent = static_cast<double>(axis.in) * roi * scales[i];
    // Scales are float32: 3 * 1.6666666 is meant to be 5. A product this near an integer is that integer.
    const double nearest = std::round(extent);
    const bool is_whole = std::abs(extent - nearest) <= std::abs(nearest) * 1e-7;
    axis.out = extent >= 0 && extent < 9e15
                   ? static_cast<int64_t>(is_whole ? nearest : std::floor(extent))
                   : -1;
  }
}

OpOutputs resize(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const bool is_v10 = ctx.opset() < 11;
  const int roi_input = is_v10 ? -1 : 1;
  const int scales_input = is_v10 ? 1 : 2;
  const int sizes_input = is_v10 ? -1 : 3;

  AxisResize common;
  IGNIS_TRY_ASSIGN(common.mode, resize_mode(ctx));
  if (is_v10) {
    // Version 10 had one way: nearest takes the floor of x / scale.
    common.coordinate = CoordinateMode::Asymmetric;
    common.nearest = NearestMode::Floor;
  } else {
    IGNIS_TRY_ASSIGN(common.nearest, nearest_mode(ctx));
    IGNIS_TRY_ASSIGN(common.coordinate, coordinate_mode(ctx));
  }
  common.cubic_a = ctx.attr_float("cubic_coeff_a", -0.75);
  common.exclude_outside = ctx.attr_int("exclude_outside", 0) != 0;
  common.antialias = ctx.attr_int("antialias", 0) != 0 && common.mode != ResizeMode::Nearest;
  std::vector<AxisResize> axes;
  for (const int64_t extent : x.shape()) {
    axes.push_back(common);
    axes.back().in = axes.back().out = extent;
  }

  std::vector<int64_t> listed = ctx.attr_ints("axes");
  if (listed.empty()) {
    listed.resize(x.shape().size());
    std::iota(listed.begin(), listed.end(), int64_t{0});
  }
  for (int64_t& axis : listed) axis = ctx.axis(axis, x.rank());

  if (common.coordinate == CoordinateMode::TfCropAndResize) {
    IGNIS_TRY_ASSIGN(const std::vector<double> roi, const_doubles(ctx, roi_input));
    if (roi.size() != 2 * listed.size()) return ctx.error("roi needs two values an axis.");
    for (size_t i = 0; i < listed.size(); ++i) {
      axes[static_cast<size_t>(listed[i])].roi_start = roi[i];
      axes[static_cast<size_t>(listed[i])].roi_end = roi[listed.size() + i];
    }
  }
  // In version 11 an unused `scales` is an empty tensor, later it is absent.
  std::vector<double> scales;
  if (ctx.has_input(scales_input)) {
    IGNIS_TRY_ASSIGN(scales, const_doubles(ctx, scales_input));
  }
  if (!scales.empty()) {
    if (scales.size() != listed.size()) return ctx.error("scales needs one value an axis.");
    apply_scales(listed, scales, axes);
  } else {
    if (sizes_input < 0 || !ctx.has_input(sizes_input)) {
      return ctx.error("Neither scales nor sizes is given.");
    }
    IGNIS_TRY_ASSIGN(const std::vector<int64_t> sizes, ctx.const_ints(sizes_input));
    if (sizes.size() != listed.size()) return ctx.error("sizes needs one value an axis.");
    IGNIS_TRY(apply_sizes(ctx, listed, sizes, axes));
  }
  // Axes outside the list are copied whatever the coordinate mode says.
  for (size_t i = 0; i < axes.size(); ++i) {
    if (std::find(listed.begin(), listed.end(), static_cast<int64_t>(i)) == listed.end()) {
      axes[i].coordinate = CoordinateMode::Asymmetric;
    }
  }
  for (const AxisResize& axis : axes) IGNIS_TRY(check_axis(ctx, axis));
  require_output_size(ctx, axes);
  return resample(ctx, axes, ctx.attr_float("extrapolation_value", 0));
}

OpOutputs upsample(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  AxisResize common;
  IGNIS_TRY_ASSIGN(common.mode, resize_mode(ctx));
  common.coordinate = CoordinateMode::Asymmetric;
  common.nearest = NearestMode::Floor;
  std::vector<double> scales;
  if (ctx.opset() >= 9) {
    IGNIS_TRY_ASSIGN(scales, const_doubles(ctx, 1));
  } else {
    for (const float s : ctx.attr_floats("scales")) scales.push_back(static_cast<double>(s));
  }
  if (scales.size() != x.shape().size()) return ctx.error("scales needs one value an axis.");
  std::vector<AxisResize> axes;
  std::vector<int64_t> listed(x.shape().size());
  std::iota(listed.begin(), listed.end(), int64_t{0});
  for (const int64_t extent : x.shape()) {
    axes.push_back(common);
    axes.back().in = extent;
  }
  apply_scales(listed, scales, axes);
  for (const AxisResize& axis : axes) IGNIS_TRY(check_axis(ctx, axis));
  require_output_size(ctx, axes);
  return resample(ctx, axes, 0);
}

// clang-format off
constexpr OpEntry kOps[] = {
    {"", "Resize",   10, 1, 4, resize},
    {"", "Upsample",  7, 1, 2, upsample},
};
// clang-format on

}  // namespace

std::span<const OpEntry> resize_ops() { return kOps; }

}  // namespace ignis::onnx
