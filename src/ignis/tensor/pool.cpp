#include "ignis/base/math.h"
#include "ignis/tensor/build.h"
#include "ignis/tensor/elementwise.h"
#include "ignis/tensor/movement.h"
#include "ignis/tensor/nn.h"
#include "ignis/tensor/reduce.h"

#include <algorithm>
#include <cmath>

namespace ignis::tensor {

namespace {

/// One spatial axis of a pool. `hi` is the padding that the last window needs, which may crop.
struct PoolAxis {
  int64_t extent, kernel, stride, dilation, lo, declared_hi, hi, out;
};

std::vector<PoolAxis> read_axes(std::string_view operation, const Tensor& x,
                                const PoolOptions& options) {
  const auto refuse = [&](const std::string& why) {
    fail(std::string(operation) + " of " + x.describe() + ": " + why);
  };
  if (x.rank() < 3) refuse("there is no spatial axis.");
  const size_t spatial = static_cast<size_t>(x.rank()) - 2;
  const auto entry = [&](const std::vector<int64_t>& values, size_t i, int64_t otherwise,
                         std::string_view what) {
    if (!values.empty() && values.size() != spatial)
      refuse(std::string(what) + " has " + std::to_string(values.size()) + " entries.");
    const int64_t value = values.empty() ? otherwise : values[i];
    if (value < (what == "pads" ? 0 : 1) || value > (int64_t{1} << 30))
      refuse(std::string(what) + " holds " + std::to_string(value) + ".");
    return value;
  };
  if (options.kernel.size() != spatial)
    refuse("kernel has " + std::to_string(options.kernel.size()) + " entries.");
  std::vector<PoolAxis> axes;
  for (size_t i = 0; i < spatial; ++i) {
    PoolAxis a{};
    a.extent = x.shape()[i + 2];
    if (a.extent > (int64_t{1} << 30)) refuse("axis " + std::to_string(i + 2) + " is too long.");
    a.kernel = entry(options.kernel, i, 1, "kernel");
    a.stride = entry(options.strides, i, 1, "strides");
    a.dilation = entry(options.dilations, i, 1, "dilations");
    a.lo = entry(options.pads_lo, i, 0, "pads");
    a.declared_hi = entry(options.pads_hi, i, 0, "pads");
    const int64_t span = (a.kernel - 1) * a.dilation + 1,
                  room = a.extent + a.lo + a.declared_hi - span;
    if (room < 0) refuse("the window is larger than padded axis " + std::to_string(i + 2) + ".");
    a.out = room / a.stride + 1;
    if (options.ceil_mode && room % a.stride != 0 && a.out * a.stride < a.extent + a.lo) ++a.out;
    a.hi = (a.out - 1) * a.stride + span - a.extent - a.lo;
    axes.push_back(a);
  }
  return axes;
}

/// [N, C, out…, kernel…] over x padded with `value`.
Tensor pool_windows(const Tensor& x, const std::vector<PoolAxis>& axes, const Operand& value) {
  std::vector<std::pair<int64_t, int64_t>> amounts{{0, 0}, {0, 0}};
  for (const PoolAxis& a : axes) amounts.emplace_back(a.lo, a.hi);
  Tensor y = pad(x, amounts, value);
  for (size_t i = 0; i < axes.size(); ++i) {
    y = window(y, static_cast<int64_t>(i) + 2, axes[i].kernel, axes[i].stride, axes[i].dilation);
  }
  return y;
}

Axes kernel_axes(const Tensor& x) {
  Axes axes;
  for (int i = x.rank(); i < 2 * x.rank() - 2; ++i) axes.push_back(i);
  return axes;
}

Axes spatial_axes(std::string_view operation, const Tensor& x) {
  if (x.rank() < 3) fail(std::string(operation) + ": " + x.describe() + " has no spatial axis.");
  Axes axes;
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  return axes;
}

Operand lowest(const Tensor& x) {
  const DType dtype = x.dtype();
  if (is_float(dtype)) return -HUGE_VAL;
  return int_min(dtype);
}

}  // namespace

Tensor max_pool(const Tensor& x, const PoolOptions& options) {
  const std::vector<PoolAxis> axes = read_axes("max_pool", x, options);
  // Narrow floats are compared in float32, where -inf exists for all of them.
  const bool narrow = is_float(x.dtype()) && bits(x.dtype()) < 32;
  const Tensor wide = narrow ? cast(x, DType::Float32) : x;
  return cast(max(pool_windows(wide, axes, lowest(wide)), kernel_axes(x)), x.dtype());
}

Tensor max_pool_indices(const Tensor& x, const PoolOptions& options, bool column_major) {
  const std::vector<PoolAxis> axes = read_axes("max_pool", x, options);
  const auto spatial = static_cast<int64_t>(axes.size());
  const Tensor wide = is_float(x.dtype()) && bits(x.dtype()) < 32 ? cast(x, DType::Float32) : x;
  const Tensor view = flatten(pool_windows(wide, axes, lowest(wide)), 2 + spatial, -1);
  Tensor tap = cast(argmax(view, -1), DType::Int64);  // [N, C, out…]
  // Position on each axis, then the linear index; the last axis varies fastest, or the first with column_major.
  const auto along = [&](int64_t axis, int64_t start, int64_t count, int64_t step) {
    Shape shape(static_cast<size_t>(2 + spatial), 1);
    shape[static_cast<size_t>(axis)] = count;
    return reshape(Tensor::arange(x.graph(), start, count, step, DType::Int64), shape);
  };
  std::vector<Tensor> positions(axes.size());
  for (int64_t i = spatial - 1; i >= 0; --i) {
    const PoolAxis& a = axes[static_cast<size_t>(i)];
    const Tensor k = floormod(tap, a.kernel);
    tap = floordiv(tap, a.kernel);
    positions[static_cast<size_t>(i)] =
        add(along(2 + i, -a.lo, a.out, a.stride), mul(k, a.dilation));
  }
  int64_t plane = 1;
  Tensor index;
  for (int64_t step = 0; step < spatial; ++step) {
    const auto i = static_cast<size_t>(column_major ? step : spatial - 1 - step);
    const Tensor term = mul(positions[i], plane);
    index = index ? add(index, term) : term;
    plane *= axes[i].extent;
  }
  index = add(index, along(1, 0, x.dim(1), plane));
  return add(index, along(0, 0, x.dim(0), plane * x.dim(1)));
}

namespace {

/// Number of elements each window of one axis divides by.
std::vector<double> window_counts(const PoolAxis& a, bool include_pad) {
  std::vector<double> counts;
  const int64_t end = include_pad ? a.extent + a.declared_hi : a.extent;
  for (int64_t o = 0; o < a.out; ++o) {
    const int64_t start =
        o * a.stride - a.lo;  // taps k with 0 or no bound <= start + k * dilation < end
    const int64_t first = include_pad ? 0 : ceil_div(std::max<int64_t>(-start, 0), a.dilation);
    const int64_t last =
        std::min(a.kernel, ceil_div(std::max<int64_t>(end - start, 0), a.dilation));
    counts.push_back(static_cast<double>(std::max<int64_t>(last - first, 1)));
  }
  return counts;
}

}  // namespace

Tensor avg_pool(const Tensor& x, const PoolOptions& options) {
  const std::vector<PoolAxis> axes = read_axes("avg_pool", x, options);
  const Tensor wide = commit(detail::widen(x));
  const Tensor total = sum(pool_windows(wide, axes, 0), kernel_axes(x));
  // Divisors are known now: one number when all windows of each axis are alike, else a constant over the plane.
  std::vector<std::vector<double>> counts;
  double product = 1;
  bool alike = true;
  Shape plane;
  for (const PoolAxis& a : axes) {
    counts.push_back(window_counts(a, options.count_include_pad));
    alike &= std::all_of(counts.back().begin(), counts.back().end(),
                         [&](double c) { return c == counts.back()[0]; });
    product *= counts.back()[0];
    plane.push_back(a.out);
  }
  if (alike) return cast(div(total, product), strong(detail::float_dtype(x.dtype())));
  std::vector<double> divisors{1};
  for (const std::vector<double>& here : counts) {
    std::vector<double> next;
    for (const double outer : divisors) {
      for (const double inner : here) next.push_back(outer * inner);
    }
    divisors = std::move(next);
  }
  const Tensor divisor =
      Tensor::constant(x.graph(), HostTensor::from(wide.dtype(), plane, divisors));
  return cast(div(total, divisor), strong(detail::float_dtype(x.dtype())));
}

namespace {

/// (sum of |x|^p)^(1/p), the sum being done by `total`.
template <typename Sum>
Tensor power_mean(const Tensor& x, double p, const Sum& total) {
  const Tensor wide = commit(detail::widen(x));
  Tensor y;
  if (p == 1) y = total(abs(wide));
  else if (p == 2) y = sqrt(total(square(wide)));
  else y = pow(total(pow(abs(wide), p)), 1 / p);
  return cast(y, strong(detail::float_dtype(x.dtype())));
}

}  // namespace

Tensor lp_pool(const Tensor& x, const PoolOptions& options, double p) {
  const std::vector<PoolAxis> axes = read_axes("lp_pool", x, options);
  return power_mean(x, p,
                    [&](const Tensor& t) { return sum(pool_windows(t, axes, 0), kernel_axes(x)); });
}

Tensor global_max_pool(const Tensor& x) {
  return max(x, spatial_axes("global_max_pool", x), /*keep=*/true);
}
Tensor global_avg_pool(const Tensor& x) {
  return mean(x, spatial_axes("global_avg_pool", x), /*keep=*/true);
}
Tensor global_lp_pool(const Tensor& x, double p) {
  const Axes axes = spatial_axes("global_lp_pool", x);
  return power_mean(x, p, [&](const Tensor& t) { return sum(t, axes, /*keep=*/true); });
}

}  // namespace ignis::tensor
