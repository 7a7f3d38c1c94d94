// Sampling an image at computed positions: GridSample, AffineGrid, RoiAlign.
#include "ignis/onnx/ops_common.h"

#include <optional>

namespace ignis::onnx {
namespace {

namespace t = tensor;

enum class Padding : uint8_t { Zeros, Border, Reflection };

// One spatial axis of the sampled image.
struct Axis {
  int64_t extent = 1;
  bool is_corner_aligned = false;
  double lo() const { return is_corner_aligned ? 0.0 : -0.5; }
  double hi() const { return static_cast<double>(extent) - (is_corner_aligned ? 1.0 : 0.5); }
};

// Mirrors positions at the axis' borders until they are inside.
Tensor reflect(const Tensor& x, const Axis& axis) {
  const double range = axis.hi() - axis.lo();
  if (range <= 0) return x * 0.0;
  const Tensor distance = t::abs(x - axis.lo());
  const Tensor turns = t::floor(distance / range);
  const Tensor rest = distance - turns * range;
  const Tensor is_even = t::equal(turns - t::floor(turns * 0.5) * 2.0, 0.0);
  return t::where(is_even, rest + axis.lo(), axis.hi() - rest);
}

Tensor apply_padding(const Tensor& x, const Axis& axis, Padding padding) {
  if (padding == Padding::Zeros) return x;
  // Between the border and the first sample a mirrored neighbour is that sample itself: clamping gives the same value.
  return t::clamp(padding == Padding::Reflection ? reflect(x, axis) : x, 0.0,
                  static_cast<double>(axis.extent - 1));
}

// The value at whole positions `at` (one float tensor [N, out…] an axis) of image [N, spatial…, C]: [N, out…, C].
// Outside the image it is 0.
Tensor fetch(const Tensor& image, const std::vector<Tensor>& at, const std::vector<Axis>& axes) {
  std::vector<Tensor> indices;
  std::optional<Tensor> is_inside;
  for (size_t i = 0; i < axes.size(); ++i) {
    const double last = static_cast<double>(axes[i].extent - 1);
    const Tensor inside = t::logical_and(t::greater_equal(at[i], 0.0), t::less_equal(at[i], last));
    is_inside = is_inside ? t::logical_and(*is_inside, inside) : inside;
    indices.push_back(t::cast(t::clamp(at[i], 0.0, last), DType::Int32));
  }
  const Tensor value = t::gather_nd(image, t::stack(indices, indices[0].rank()), /*batch_dims=*/1);
  return t::where(t::unsqueeze(*is_inside, {-1}), value, 0.0);
}

// Keys' cubic kernel with a = -0.75 at distance offset from a sample; `offset` is -1, 0, 1 or 2 and f in [0, 1).
Tensor cubic_weight(const Tensor& f, int offset) {
  constexpr double a = -0.75;
  const Tensor d = t::abs(f - static_cast<double>(offset));
  if (offset == 0 || offset == 1) return ((a + 2) * d - (a + 3)) * d * d + 1.0;
  return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

// Sum over the products of `taps` positions an axis, walked like an odometer.
Tensor interpolate(const Tensor& image, const std::vector<Tensor>& position,
                   const std::vector<Axis>& axes, Padding padding, bool is_cubic) {
  const int taps = is_cubic ? 4 : 2;
  const int first = is_cubic ? -1 : 0;
  const size_t rank = axes.size();
  std::vector<std::vector<Tensor>> at(rank), weight(rank);
  for (size_t i = 0; i < rank; ++i) {
    // Linear: the position is brought inside first. Cubic: each of the four samples is.
    const Tensor x = is_cubic ? position[i] : apply_padding(position[i], axes[i], padding);
    const Tensor base = t::floor(x);
    const Tensor f = x - base;
    for (int tap = 0; tap < taps; ++tap) {
      const int offset = first + tap;
      const Tensor sample = base + static_cast<double>(offset);
      at[i].push_back(is_cubic ? apply_padding(sample, axes[i], padding) : sample);
      weight[i].push_back(is_cubic ? cubic_weight(f, offset) : offset == 0 ? 1.0 - f : f);
    }
  }
  Tensor sum;
  std::vector<size_t> tap(rank, 0);
  while (true) {
    std::vector<Tensor> corner;
    Tensor w;
    for (size_t i = 0; i < rank; ++i) {
      corner.push_back(at[i][tap[i]]);
      w = w ? w * weight[i][tap[i]] : weight[i][tap[i]];
    }
    const Tensor term = fetch(image, corner, axes) * t::unsqueeze(w, {-1});
    sum = sum ? sum + term : term;
    size_t i = 0;
    while (i < rank && ++tap[i] == static_cast<size_t>(taps)) tap[i++] = 0;
    if (i == rank) return sum;
  }
}

OpOutputs grid_sample(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& grid = ctx.input(1);
  const int64_t spatial = x.rank() - 2;
  if (spatial < 1 || spatial > 3 || grid.rank() != x.rank() || grid.dim(-1) != spatial ||
      grid.dim(0) != x.dim(0)) {
    return ctx.error("X " + x.describe() + " and grid " + grid.describe() + " do not fit.");
  }
  const std::string mode = ctx.attr_string("mode", ctx.opset() < 20 ? "bilinear" : "linear");
  const bool is_nearest = mode == "nearest";
  const bool is_cubic = mode == "bicubic" || mode == "cubic";
  if (!is_nearest && !is_cubic && mode != "bilinear" && mode != "linear") {
    return ctx.error("Unknown mode '" + mode + "'.");
  }
  const std::string padding_name = ctx.attr_string("padding_mode", "zeros");
  Padding padding = Padding::Zeros;
  if (padding_name == "border") padding = Padding::Border;
  else if (padding_name == "reflection") padding = Padding::Reflection;
  else if (padding_name != "zeros")
    return ctx.error("Unknown padding_mode '" + padding_name + "'.");
  const bool is_aligned = ctx.attr_int("align_corners", 0) != 0;

  std::vector<Axis> axes;
  std::vector<Tensor> position;
  const Tensor wide_grid = t::cast(grid, DType::Float32);
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t extent = x.dim(static_cast<int>(i + 2));
    if (extent < 1) return ctx.error("X " + x.describe() + " has no samples.");
    axes.push_back({extent, is_aligned});
    // The grid lists the innermost axis first; -1 and 1 are the axis' ends.
    const Tensor g = t::select(wide_grid, -1, spatial - 1 - i) + 1.0;
    const double n = static_cast<double>(extent);
    position.push_back(is_aligned ? g * ((n - 1) / 2) : (g * n - 1.0) / 2.0);
  }
  const Tensor image = t::move_axis(t::cast(x, DType::Float32), 1, x.rank() - 1);
  Tensor y;
  if (is_nearest) {
    std::vector<Tensor> at;
    for (size_t i = 0; i < axes.size(); ++i) {
      at.push_back(apply_padding(t::round(position[i]), axes[i], padding));
    }
    y = fetch(image, at, axes);
  } else {
    y = interpolate(image, position, axes, padding, is_cubic);
  }
  return one(t::cast(t::move_axis(y, y.rank() - 1, 1), x.dtype()));
}

OpOutputs affine_grid(const OpContext& ctx) {
  const Tensor& theta = ctx.input(0);
  IGNIS_TRY_ASSIGN(const std::vector<int64_t> size, ctx.const_ints(1));
  const int64_t spatial = static_cast<int64_t>(size.size()) - 2;
  if ((spatial != 2 && spatial != 3) || theta.rank() != 3 || theta.dim(1) != spatial ||
      theta.dim(2) != spatial + 1 || theta.dim(0) != size[0]) {
    return ctx.error("theta " + theta.describe() + " and size " + to_string(size) + " do not fit.");
  }
  const bool is_aligned = ctx.attr_int("align_corners", 0) != 0;
  const Shape extents(size.begin() + 2, size.end());
  IGNIS_TRY_ASSIGN(const int64_t points, checked_element_count(extents));
  if (points > ctx.limits().max_fold_elements) {
    return Error(ErrorCode::InvalidArgument,
                 "A grid of " + std::to_string(points) + " points is over the limit.",
                 "LimitExceeded");
  }
  // [points, spatial + 1]: homogeneous positions, the innermost axis first.
  HostTensor base = HostTensor::zeros(DType::Float64, {points, spatial + 1});
  for (int64_t p = 0; p < points; ++p) {
    int64_t rest = p;
    for (int64_t i = spatial; i-- > 0;) {
      const double n = static_cast<double>(extents[static_cast<size_t>(i)]);
      const double at = static_cast<double>(rest % extents[static_cast<size_t>(i)]);
      rest /= extents[static_cast<size_t>(i)];
      double v = is_aligned ? (n > 1 ? 2 * at / (n - 1) - 1 : 0) : (2 * at + 1) / n - 1;
      base.data<double>()[p * (spatial + 1) + (spatial - 1 - i)] = v;
    }
    base.data<double>()[p * (spatial + 1) + spatial] = 1;
  }
  const Tensor grid = t::matmul(t::cast(ctx.constant(base), theta.dtype()), t::transpose(theta));
  Shape shape{size[0]};
  shape.insert(shape.end(), extents.begin(), extents.end());
  shape.push_back(spatial);
  return one(t::reshape(grid, shape));
}

// Positions of one axis of all regions: [regions, bins * samples], and the two samples around each with weights.
struct RoiAxis {
  Tensor low, high;  // int32, inside the image
  Tensor low_weight, high_weight;
  Tensor is_inside;  // a sample more than one pixel outside counts as 0
};

RoiAxis roi_axis(const OpContext& ctx, const Tensor& begin, const Tensor& end, int64_t extent,
                 int64_t bins, int64_t samples, double spatial_scale, bool is_half_pixel) {
  const double offset = is_half_pixel ? 0.5 : 0.0;
  const Tensor start = begin * spatial_scale - offset;
  Tensor length = end * spatial_scale - offset - start;
  if (!is_half_pixel) length = t::maximum(length, 1.0);
  // Sample s of bin b lies at (b + (s + 0.5) / samples) bins from the start.
  HostTensor steps = HostTensor::zeros(DType::Float32, {1, bins * samples});
  for (int64_t i = 0; i < bins * samples; ++i) {
    steps.data<float>()[i] = static_cast<float>(
        (static_cast<double>(i / samples) +
         (static_cast<double>(i % samples) + 0.5) / static_cast<double>(samples)) /
        static_cast<double>(bins));
  }
  const Tensor at = t::unsqueeze(start, {1}) + t::unsqueeze(length, {1}) * ctx.constant(steps);
  const double last = static_cast<double>(extent - 1);
  RoiAxis axis;
  axis.is_inside =
      t::logical_and(t::greater_equal(at, -1.0), t::less_equal(at, static_cast<double>(extent)));
  const Tensor clamped = t::clamp(at, 0.0, last);
  const Tensor low = t::floor(clamped);
  axis.high_weight = clamped - low;
  axis.low_weight = 1.0 - axis.high_weight;
  axis.low = t::cast(low, DType::Int32);
  axis.high = t::cast(t::minimum(low + 1.0, last), DType::Int32);
  return axis;
}

OpOutputs roi_align(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor rois = t::cast(ctx.input(1), DType::Float32);
  const Tensor& batch = ctx.input(2);
  if (x.rank() != 4 || rois.rank() != 2 || rois.dim(1) != 4 || x.dim(2) < 1 || x.dim(3) < 1) {
    return ctx.error("X " + x.describe() + " and rois " + rois.describe() + " do not fit.");
  }
  const int64_t samples = ctx.attr_int("sampling_ratio", 0);
  if (samples > 1024) return ctx.error("A sampling_ratio of " + std::to_string(samples) + ".");
  if (samples < 1) {
    return ctx.unsupported(
        "RoiAlign with sampling_ratio 0: the number of samples depends on the regions.");
  }
  const std::string mode = ctx.attr_string("mode", "avg");
  if (mode != "avg" && mode != "max") return ctx.error("Unknown mode '" + mode + "'.");
  const bool is_max = mode == "max";
  // Before version 16 there was no half-pixel shift.
  const std::string transform = ctx.attr_string(
      "coordinate_transformation_mode", ctx.opset() < 16 ? "output_half_pixel" : "half_pixel");
  const bool is_half_pixel = transform == "half_pixel";
  const double scale = ctx.attr_float("spatial_scale", 1.0);
  const int64_t bins_y = ctx.attr_int("output_height", 1);
  const int64_t bins_x = ctx.attr_int("output_width", 1);
  if (bins_y < 1 || bins_x < 1 || bins_y > (1 << 16) || bins_x > (1 << 16)) {
    return ctx.error("An output of " + std::to_string(bins_y) + " x " + std::to_string(bins_x) +
                     ".");
  }
  require_size(ctx, {rois.dim(0), bins_y * samples, bins_x * samples, x.dim(1)});
  const RoiAxis ay = roi_axis(ctx, t::select(rois, 1, 1), t::select(rois, 1, 3), x.dim(2), bins_y,
                              samples, scale, is_half_pixel);
  const RoiAxis ax = roi_axis(ctx, t::select(rois, 1, 0), t::select(rois, 1, 2), x.dim(3), bins_x,
                              samples, scale, is_half_pixel);
  const int64_t regions = rois.dim(0), ny = bins_y * samples, nx = bins_x * samples;
  const Tensor image = t::permute(t::cast(x, DType::Float32), {0, 2, 3, 1});
  const Shape points{regions, ny, nx};
  const Tensor which =
      t::broadcast_to(t::reshape(t::cast(batch, DType::Int32), {regions, 1, 1}), points);
  Tensor sum;
  for (int corner = 0; corner < 4; ++corner) {
    const bool is_high_y = corner / 2 == 1, is_high_x = corner % 2 == 1;
    const Tensor iy = t::broadcast_to(t::unsqueeze(is_high_y ? ay.high : ay.low, {2}), points);
    const Tensor ix = t::broadcast_to(t::unsqueeze(is_high_x ? ax.high : ax.low, {1}), points);
    const Tensor w = t::unsqueeze(is_high_y ? ay.high_weight : ay.low_weight, {2}) *
                     t::unsqueeze(is_high_x ? ax.high_weight : ax.low_weight, {1});
    const Tensor term = t::gather_nd(image, t::stack({which, iy, ix}, 3)) * t::unsqueeze(w, {3});
    // The standard's data takes the largest weighted corner of all samples, not the largest interpolated value.
    sum = !sum ? term : is_max ? t::maximum(sum, term) : sum + term;
  }
  const Tensor is_inside =
      t::logical_and(t::unsqueeze(ay.is_inside, {2}), t::unsqueeze(ax.is_inside, {1}));
  sum = t::where(t::unsqueeze(is_inside, {3}), sum, 0.0);
  // [regions, bins_y, samples, bins_x, samples, channels] -> one value a bin.
  const Tensor split = t::reshape(sum, {regions, bins_y, samples, bins_x, samples, x.dim(1)});
  const Tensor pooled = is_max ? t::max(split, {2, 4}) : t::mean(split, {2, 4});
  return one(t::cast(t::permute(pooled, {0, 3, 1, 2}), x.dtype()));
}

// clang-format off
constexpr OpEntry kOps[] = {
    {"", "GridSample", 16, 2, 2, grid_sample},
    {"", "AffineGrid", 20, 2, 2, affine_grid},
    {"", "RoiAlign",   10, 3, 3, roi_align},
};
// clang-format on

}  // namespace

std::span<const OpEntry> sample_ops() { return kOps; }

}  // namespace ignis::onnx
