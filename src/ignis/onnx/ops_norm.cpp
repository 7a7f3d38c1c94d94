// Normalisations over chosen axes (BatchNormalization and LRN are in ops_nn.cpp).
#include "ignis/onnx/ops_common.h"

#include <numeric>

namespace ignis::onnx {
namespace {

namespace t = tensor;

// The type of the statistics (attribute stash_type): float32 unless the model says otherwise. A wider input keeps its
// own type, so that nothing is lost for float64.
DType stash_dtype(const OpContext& ctx, const Tensor& x) {
  return promote(ctx.attr_dtype("stash_type", DType::Float32), x.dtype());
}

std::vector<int64_t> axes_from(int64_t first, int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank - first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// Reshapes a [C] vector so that it lies along axis 1 of a tensor of rank `rank`.
Tensor along_channels(const Tensor& v, int64_t rank) {
  Shape shape(static_cast<size_t>(rank), 1);
  shape[1] = v.count();
  return t::reshape(v, shape);
}

OpOutputs layer_normalization(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t axis = ctx.axis(ctx.attr_int("axis", -1), x.rank());
  const double epsilon = ctx.attr_float("epsilon", 1e-5);
  const std::vector<int64_t> axes = axes_from(axis, x.rank());
  const Tensor wide = t::cast(x, stash_dtype(ctx, x));
  Tensor y = t::cast(t::normalize(wide, axes, epsilon), x.dtype()) * ctx.input(1);
  if (ctx.has_input(2)) y = y + ctx.input(2);
  std::vector<Tensor> outputs{y};
  // Mean and InvStdDev keep the stash type.
  if (ctx.output_count() > 1) outputs.push_back(t::mean(wide, axes, /*keep=*/true));
  if (ctx.output_count() > 2) {
    outputs.push_back(t::rsqrt(t::var(wide, axes, /*keep=*/true) + epsilon));
  }
  return outputs;
}

OpOutputs rms_normalization(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t axis = ctx.axis(ctx.attr_int("axis", -1), x.rank());
  const Tensor wide = t::cast(x, stash_dtype(ctx, x));
  const Tensor y = t::rms_norm(wide, axis, std::nullopt, ctx.attr_float("epsilon", 1e-5));
  return one(t::cast(y, x.dtype()) * ctx.input(1));
}

OpOutputs instance_normalization(const OpContext& ctx) {
  return one(
      t::instance_norm(ctx.input(0), ctx.input(1), ctx.input(2), ctx.attr_float("epsilon", 1e-5)));
}

OpOutputs group_normalization(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t groups = ctx.attr_int("num_groups");
  if (x.rank() < 3)
    return ctx.error("GroupNormalization needs a rank of 3 or more, not " + x.describe() + ".");
  const int64_t channels = x.dim(1);
  if (groups <= 0 || channels % groups != 0) {
    return ctx.error("num_groups " + std::to_string(groups) + " does not divide the " +
                     std::to_string(channels) + " channels.");
  }
  // One group of [N * groups] rows: normalise over everything in the row.
  const Tensor wide = t::cast(x, stash_dtype(ctx, x));
  const Tensor rows = t::reshape(wide, {x.dim(0) * groups, -1});
  const Tensor normal = t::normalize(rows, {1}, ctx.attr_float("epsilon", 1e-5));
  const Tensor y = t::cast(t::reshape(normal, x.shape()), x.dtype());
  // Until opset 20 scale and bias have one value a group, since 21 one a channel.
  const auto per_channel = [&](const Tensor& v) {
    const Tensor full = v.count() == channels ? v : t::repeat_interleave(v, 0, channels / groups);
    return along_channels(full, x.rank());
  };
  return one(y * per_channel(ctx.input(1)) + per_channel(ctx.input(2)));
}

OpOutputs mean_variance_normalization(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  std::vector<int64_t> axes = ctx.attr_ints("axes", {0, 2, 3});
  for (int64_t& a : axes) a = ctx.axis(a, x.rank());
  const Tensor centred = x - t::mean(x, axes, /*keep=*/true);
  // The standard's function body adds 1e-9 to the deviation, not to the variance.
  return one(centred / (t::sqrt(t::var(x, axes, /*keep=*/true)) + 1e-9));
}

OpOutputs lp_normalization(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t axis = ctx.axis(ctx.attr_int("axis", -1), x.rank());
  const int64_t p = ctx.attr_int("p", 2);
  if (p != 1 && p != 2)
    return ctx.error("LpNormalization has p 1 or 2, not " + std::to_string(p) + ".");
  const Tensor norm =
      p == 1 ? t::norm_l1(x, {axis}, /*keep=*/true) : t::norm_l2(x, {axis}, /*keep=*/true);
  // A row of zeros stays a row of zeros.
  return one(t::where(t::equal(norm, 0.0), 0.0, x / norm));
}

// clang-format off
constexpr OpEntry kOps[] = {
    {"", "LayerNormalization",        17, 2, 3, layer_normalization},
    {"", "RMSNormalization",          23, 2, 2, rms_normalization},
    {"", "InstanceNormalization",      6, 3, 3, instance_normalization},
    {"", "GroupNormalization",        18, 3, 3, group_normalization},
    {"", "MeanVarianceNormalization",  9, 1, 1, mean_variance_normalization},
    {"", "LpNormalization",            1, 1, 1, lp_normalization},
};
// clang-format on

}  // namespace

std::span<const OpEntry> norm_ops() { return kOps; }

}  // namespace ignis::onnx
