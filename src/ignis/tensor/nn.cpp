#include "ignis/tensor/nn.h"

#include "ignis/tensor/build.h"
#include "ignis/tensor/elementwise.h"
#include "ignis/tensor/movement.h"
#include "ignis/tensor/reduce.h"

// Normalisation and softmax run in float32 for narrower floats and return to the argument's dtype.

namespace ignis::tensor {

namespace {

Tensor wide_float(const Tensor& x) { return commit(detail::widen(x)); }
Tensor narrow(const Tensor& y, const Tensor& x) {
  return cast(y, strong(detail::float_dtype(x.dtype())));
}

/// x minus its maximum along the axis. The bound says what no compiler sees: exponentials of it need not reach infinity.
Tensor below_maximum(const Tensor& x, int axis) {
  return minimum(sub(x, max(x, {axis}, /*keep=*/true)), 0.0);
}

/// A per-channel vector [C] as [1, C, 1…].
Tensor per_channel(std::string_view operation, const Tensor& x, const Tensor& vector) {
  if (x.rank() < 2 || vector.rank() != 1 || vector.dim(0) != x.dim(1)) {
    fail(std::string(operation) + ": " + vector.describe() + " is not one value a channel of " +
         x.describe() + ".");
  }
  Shape shape(static_cast<size_t>(x.rank()), 1);
  shape[1] = x.dim(1);
  return reshape(wide_float(vector), shape);
}

Tensor wide_normalize(const Tensor& wide, const Axes& axes, double epsilon) {
  const Tensor centred = sub(wide, mean(wide, axes, /*keep=*/true));
  return mul(centred, rsqrt(add(mean(square(centred), axes, /*keep=*/true), epsilon)));
}

Axes trailing_axes(std::string_view operation, const Tensor& x, int64_t axis) {
  Axes axes;
  for (int i = normalize_axis(operation, axis, x.rank()); i < x.rank(); ++i) axes.push_back(i);
  return axes;
}

Tensor scale_and_shift(Tensor y, const std::optional<Tensor>& scale,
                       const std::optional<Tensor>& bias) {
  const Shape shape = y.shape();
  if (scale) y = mul(y, wide_float(*scale));
  if (bias) y = add(y, wide_float(*bias));
  if (y.shape() != shape)
    fail("norm: scale or bias of shape " + ignis::to_string(y.shape()) + " does not stretch to " +
         ignis::to_string(shape) + ".");
  return y;
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t axis_in) {
  const int axis = normalize_axis("softmax", axis_in, x.rank());
  const Tensor e = exp(below_maximum(wide_float(x), axis));
  return narrow(div(e, sum(e, {axis}, /*keep=*/true)), x);
}

Tensor log_softmax(const Tensor& x, int64_t axis_in) {
  const int axis = normalize_axis("log_softmax", axis_in, x.rank());
  const Tensor shifted = below_maximum(wide_float(x), axis);
  return narrow(sub(shifted, log(sum(exp(shifted), {axis}, /*keep=*/true))), x);
}

Tensor normalize(const Tensor& x, const std::vector<int64_t>& axes, double epsilon) {
  return narrow(wide_normalize(wide_float(x), axes, epsilon), x);
}

Tensor layer_norm(const Tensor& x, int64_t axis, const std::optional<Tensor>& scale,
                  const std::optional<Tensor>& bias, double epsilon) {
  const Tensor y = wide_normalize(wide_float(x), trailing_axes("layer_norm", x, axis), epsilon);
  return narrow(scale_and_shift(y, scale, bias), x);
}

Tensor rms_norm(const Tensor& x, int64_t axis, const std::optional<Tensor>& scale, double epsilon) {
  const Tensor wide = wide_float(x);
  const Tensor power = mean(square(wide), trailing_axes("rms_norm", x, axis), /*keep=*/true);
  return narrow(scale_and_shift(mul(wide, rsqrt(add(power, epsilon))), scale, {}), x);
}

Tensor batch_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, const Tensor& mean_of,
                  const Tensor& variance, double epsilon) {
  // Folded into one factor and one offset a channel: with constant statistics both are computed once, at load.
  const Tensor factor = div(per_channel("batch_norm", x, scale),
                            sqrt(add(per_channel("batch_norm", x, variance), epsilon)));
  const Tensor offset =
      sub(per_channel("batch_norm", x, bias), mul(per_channel("batch_norm", x, mean_of), factor));
  return narrow(add(mul(wide_float(x), factor), offset), x);
}

Tensor instance_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, double epsilon) {
  if (x.rank() < 3) fail("instance_norm: " + x.describe() + " has no spatial axis.");
  const Tensor y = wide_normalize(wide_float(x), trailing_axes("instance_norm", x, 2), epsilon);
  return narrow(
      add(mul(y, per_channel("instance_norm", x, scale)), per_channel("instance_norm", x, bias)),
      x);
}

Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& bias,
                  double epsilon) {
  if (x.rank() < 2 || groups < 1 || x.dim(1) % groups != 0) {
    fail("group_norm: " + std::to_string(groups) + " groups of " + x.describe() + ".");
  }
  const Tensor grouped = reshape(wide_float(x), {x.dim(0), groups, -1});
  const Tensor y = reshape(wide_normalize(grouped, {2}, epsilon), x.shape());
  return narrow(
      add(mul(y, per_channel("group_norm", x, scale)), per_channel("group_norm", x, bias)), x);
}

Tensor local_response_norm(const Tensor& x, int64_t size, double alpha, double beta, double bias) {
  if (x.rank() < 2 || size < 1)
    fail("local_response_norm: size " + std::to_string(size) + " of " + x.describe() + ".");
  const Tensor wide = wide_float(x);
  std::vector<std::pair<int64_t, int64_t>> amounts(static_cast<size_t>(x.rank()), {0, 0});
  amounts[1] = {(size - 1) / 2, size / 2};
  const Tensor squares = sum(window(pad(square(wide), amounts), 1, size), {-1});
  const Tensor base = add(mul(squares, alpha / static_cast<double>(size)), bias);
  return narrow(div(wide, pow(base, beta)), x);
}

Tensor depth_to_space(const Tensor& x, int64_t block, bool channel_first) {
  if (x.rank() != 4 || block < 1 || x.dim(1) % (block * block) != 0) {
    fail("depth_to_space: blocks of " + std::to_string(block) + " of " + x.describe() + ".");
  }
  const int64_t n = x.dim(0), c = x.dim(1) / (block * block), h = x.dim(2), w = x.dim(3);
  const Tensor y = channel_first
                       ? permute(reshape(x, {n, c, block, block, h, w}), {0, 1, 4, 2, 5, 3})
                       : permute(reshape(x, {n, block, block, c, h, w}), {0, 3, 4, 1, 5, 2});
  return reshape(y, {n, c, h * block, w * block});
}

Tensor space_to_depth(const Tensor& x, int64_t block) {
  if (x.rank() != 4 || block < 1 || x.dim(2) % block != 0 || x.dim(3) % block != 0) {
    fail("space_to_depth: blocks of " + std::to_string(block) + " of " + x.describe() + ".");
  }
  const int64_t n = x.dim(0), c = x.dim(1), h = x.dim(2) / block, w = x.dim(3) / block;
  return reshape(permute(reshape(x, {n, c, h, block, w, block}), {0, 3, 5, 1, 2, 4}),
                 {n, c * block * block, h, w});
}

}  // namespace ignis::tensor
