#include "ignis/tensor/build.h"
#include "ignis/tensor/contraction.h"
#include "ignis/tensor/elementwise.h"
#include "ignis/tensor/movement.h"

#include <algorithm>

// Convolutions as one product under one sum: Pad, Window, Reshape and Expand keep the index maps affine
// (out * stride + k * dilation), from which the schedule recognises the contraction.

namespace ignis::tensor {

namespace {

/// ConvOptions with every vector filled, one entry a spatial axis, and checked.
struct Geometry {
  size_t spatial = 0;
  std::vector<int64_t> kernel, strides, dilations, lo, hi, output_padding;
};

Geometry read_geometry(std::string_view operation, const Tensor& x, const Tensor& w,
                       const ConvOptions& options) {
  const auto refuse = [&](const std::string& why) {
    fail(std::string(operation) + ": " + why + " (x " + x.describe() + ", w " + w.describe() + ")");
  };
  if (x.rank() < 3 || x.rank() != w.rank()) refuse("x and w must have equal ranks of 3 or more");
  Geometry g;
  g.spatial = static_cast<size_t>(x.rank()) - 2;
  const auto fill = [&](const std::vector<int64_t>& given, int64_t value, int64_t least,
                        std::string_view what) {
    if (!given.empty() && given.size() != g.spatial) {
      refuse(std::string(what) + " has " + std::to_string(given.size()) + " entries");
    }
    std::vector<int64_t> full = given.empty() ? std::vector<int64_t>(g.spatial, value) : given;
    for (const int64_t v : full) {
      if (v < least || v > (int64_t{1} << 30))
        refuse(std::string(what) + " holds " + std::to_string(v));
    }
    return full;
  };
  g.strides = fill(options.strides, 1, 1, "strides");
  g.dilations = fill(options.dilations, 1, 1, "dilations");
  g.lo = fill(options.pads_lo, 0, -(int64_t{1} << 30), "pads_lo");
  g.hi = fill(options.pads_hi, 0, -(int64_t{1} << 30), "pads_hi");
  g.output_padding = fill(options.output_padding, 0, 0, "output_padding");
  for (size_t i = 0; i < g.spatial; ++i) {
    g.kernel.push_back(w.shape()[i + 2]);
    if (g.kernel[i] < 1) refuse("the kernel is empty");
    // Extents of at most 2^30 keep every product below in 64 bits.
    if (std::max(g.kernel[i], x.shape()[i + 2]) > (int64_t{1} << 30)) refuse("an axis is too long");
  }
  if (options.groups < 1) refuse("groups is " + std::to_string(options.groups));
  return g;
}

/// [N, C, L…] -> [N, C, out…, kernel…].
Tensor windows(const Tensor& x, const std::vector<int64_t>& kernel,
               const std::vector<int64_t>& strides, const std::vector<int64_t>& dilations) {
  Tensor y = x;
  for (size_t i = 0; i < kernel.size(); ++i) {
    y = kernel[i] == 1 && strides[i] == 1
            ? unsqueeze(y, {-1})
            : window(y, static_cast<int64_t>(i) + 2, kernel[i], strides[i], dilations[i]);
  }
  return y;
}

Tensor pad_spatial(const Tensor& x, const std::vector<int64_t>& lo,
                   const std::vector<int64_t>& hi) {
  std::vector<std::pair<int64_t, int64_t>> amounts{{0, 0}, {0, 0}};
  for (size_t i = 0; i < lo.size(); ++i) amounts.emplace_back(lo[i], hi[i]);
  return pad(x, amounts);
}

Tensor add_bias(std::string_view operation, const Tensor& y, const std::optional<Tensor>& bias) {
  if (!bias) return y;
  if (bias->rank() != 1 || bias->dim(0) != y.dim(1)) {
    fail(std::string(operation) + ": the bias " + bias->describe() + " does not fit " +
         std::to_string(y.dim(1)) + " output channels.");
  }
  Shape shape(static_cast<size_t>(y.rank()), 1);
  shape[1] = y.dim(1);
  return add(y, reshape(*bias, shape));
}

}  // namespace

Tensor conv(const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias,
            const ConvOptions& options, std::optional<DType> result) {
  const Tensor both[] = {x, w};
  detail::common_graph("conv", both);
  const Geometry g = read_geometry("conv", x, w, options);
  const int64_t groups = options.groups, outputs = w.dim(0), inputs = w.dim(1);
  if (outputs % groups != 0 || x.dim(1) != inputs * groups) {
    fail("conv: x " + x.describe() + " and w " + w.describe() + " do not fit " +
         std::to_string(groups) + " groups.");
  }
  for (size_t i = 0; i < g.spatial; ++i) {
    const int64_t extent = x.shape()[i + 2] + g.lo[i] + g.hi[i];
    if (extent < (g.kernel[i] - 1) * g.dilations[i] + 1) {
      fail("conv: the kernel of w " + w.describe() + " is larger than padded x " + x.describe() +
           " on axis " + std::to_string(i + 2) + ".");
    }
  }
  const Tensor view = windows(pad_spatial(x, g.lo, g.hi), g.kernel, g.strides, g.dilations);
  const Shape out(view.shape().begin() + 2,
                  view.shape().begin() + 2 + static_cast<std::ptrdiff_t>(g.spatial));
  // [N, G, 1, Cg, out…, kernel…] * [1, G, Og, Cg, 1…, kernel…], summed over Cg and the kernel.
  Shape x_shape{x.dim(0), groups, 1, inputs}, w_shape{1, groups, outputs / groups, inputs};
  Shape y_shape{x.dim(0), outputs};
  std::vector<int64_t> axes{3};
  for (size_t i = 0; i < g.spatial; ++i) {
    x_shape.push_back(out[i]);
    w_shape.push_back(1);
    y_shape.push_back(out[i]);
    axes.push_back(static_cast<int64_t>(4 + g.spatial + i));
  }
  x_shape.insert(x_shape.end(), g.kernel.begin(), g.kernel.end());
  w_shape.insert(w_shape.end(), g.kernel.begin(), g.kernel.end());
  const Tensor y =
      detail::sum_of_products(reshape(view, x_shape), reshape(w, w_shape), axes, result);
  return add_bias("conv", reshape(y, y_shape), bias);
}

namespace {

/// A kernel with zeros between its taps, then at its end up to a multiple of the stride.
Tensor spread_kernel(Tensor w, const Geometry& g, std::vector<int64_t>* taps) {
  for (size_t i = 0; i < g.spatial; ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const int64_t dilation = g.dilations[i], dense = (g.kernel[i] - 1) * dilation + 1;
    if (dilation > 1 && g.kernel[i] > 1) {
      Tensor spread = unsqueeze(w, {axis + 1});
      std::vector<std::pair<int64_t, int64_t>> amounts(static_cast<size_t>(spread.rank()), {0, 0});
      amounts[static_cast<size_t>(axis) + 1] = {0, dilation - 1};
      w = flatten(pad(spread, amounts), axis, axis + 1);
    }
    taps->push_back((dense + g.strides[i] - 1) / g.strides[i]);
    std::vector<std::pair<int64_t, int64_t>> amounts(static_cast<size_t>(w.rank()), {0, 0});
    amounts[static_cast<size_t>(axis)] = {0, taps->back() * g.strides[i] - w.shape()[i + 2]};
    w = pad(w, amounts);
  }
  return w;
}

}  // namespace

// Output element p (before cropping) = q * stride + r takes the taps k = t * stride + r at input q - t. So all phases r
// are one dense contraction whose kernel is cut into [taps, stride]: y[q, r] = sum over t of x[q - t] * w[t, r].
Tensor conv_transpose(const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias,
                      const ConvOptions& options) {
  const Tensor both[] = {x, w};
  detail::common_graph("conv_transpose", both);
  const Geometry g = read_geometry("conv_transpose", x, w, options);
  const int64_t groups = options.groups, inputs = x.dim(1), outputs = w.dim(1);
  if (w.dim(0) != inputs || inputs % groups != 0) {
    fail("conv_transpose: x " + x.describe() + " and w " + w.describe() + " do not fit " +
         std::to_string(groups) + " groups.");
  }
  std::vector<int64_t> taps, lo, hi, length, skip;
  const Tensor kernel = spread_kernel(w, g, &taps);
  for (size_t i = 0; i < g.spatial; ++i) {
    const int64_t extent = x.shape()[i + 2], stride = g.strides[i];
    const int64_t full = (extent - 1) * stride + (g.kernel[i] - 1) * g.dilations[i] + 1;
    length.push_back(full - g.lo[i] - g.hi[i] + g.output_padding[i]);
    if (extent < 1 || length[i] < 1) {
      fail("conv_transpose: nothing is left of axis " + std::to_string(i + 2) + " of x " +
           x.describe() + ".");
    }
    const int64_t first =
        std::max<int64_t>(g.lo[i], 0) / stride;  // whole strides that the crop removes
    const int64_t blocks = (g.lo[i] + length[i] + stride - 1) / stride;
    skip.push_back(g.lo[i] - first * stride);
    lo.push_back(taps[i] - 1 - first);
    hi.push_back(blocks - extent);
  }
  const Tensor view = windows(pad_spatial(x, lo, hi), taps, std::vector<int64_t>(g.spatial, 1),
                              std::vector<int64_t>(g.spatial, 1));
  // [N, G, 1, (q, 1)…, Cg, taps…] * [1, G, Og, (1, stride)…, Cg, taps…]; the taps are read backwards.
  Shape view_shape{x.dim(0), groups, inputs / groups}, w_shape{groups, inputs / groups, outputs};
  for (size_t i = 0; i < g.spatial; ++i) view_shape.push_back(view.shape()[i + 2]);
  for (size_t i = 0; i < g.spatial; ++i) {
    view_shape.push_back(taps[i]);
    w_shape.insert(w_shape.end(), {taps[i], g.strides[i]});
  }
  std::vector<int64_t> view_perm{0, 1}, w_perm{0, 2}, reversed;
  Shape view_aligned{x.dim(0), groups, 1}, w_aligned{1, groups, outputs},
      y_shape{x.dim(0), groups * outputs};
  const auto n = static_cast<int64_t>(g.spatial);
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    view_perm.push_back(3 + i);
    w_perm.push_back(4 + 2 * i);
    reversed.push_back(3 + 2 * i);
    view_aligned.insert(view_aligned.end(), {view_shape[3 + at], 1});
    w_aligned.insert(w_aligned.end(), {1, g.strides[at]});
    y_shape.push_back(view_shape[3 + at] * g.strides[at]);
  }
  view_perm.push_back(2);
  w_perm.push_back(1);
  view_aligned.push_back(inputs / groups);
  w_aligned.push_back(inputs / groups);
  std::vector<int64_t> axes{3 + 2 * n};
  for (int64_t i = 0; i < n; ++i) {
    view_perm.push_back(3 + n + i);
    w_perm.push_back(3 + 2 * i);
    view_aligned.push_back(taps[static_cast<size_t>(i)]);
    w_aligned.push_back(taps[static_cast<size_t>(i)]);
    axes.push_back(4 + 2 * n + i);
  }
  const Tensor left = reshape(permute(reshape(view, view_shape), view_perm), view_aligned);
  const Tensor right =
      reshape(permute(flip(reshape(kernel, w_shape), reversed), w_perm), w_aligned);
  const Tensor y = reshape(detail::sum_of_products(left, right, axes, {}), y_shape);
  std::vector<int64_t> crop_lo, crop_hi;
  for (size_t i = 0; i < g.spatial; ++i) {
    crop_lo.push_back(-skip[i]);
    crop_hi.push_back(skip[i] + length[i] - y.shape()[i + 2]);
  }
  return add_bias("conv_transpose", pad_spatial(y, crop_lo, crop_hi), bias);
}

}  // namespace ignis::tensor
