#include "ignis/onnx/ops_common.h"

#include <algorithm>

// Pooling.
namespace ignis::onnx {
namespace {

constexpr int64_t kMostPadding = int64_t{1} << 31;

std::vector<int64_t> per_axis(const OpContext& ctx, std::string_view name, size_t count,
                              int64_t fallback, int64_t lowest) {
  std::vector<int64_t> values = ctx.attr_ints(name);
  if (values.empty()) values.assign(count, fallback);
  bool is_valid = values.size() == count;
  for (const int64_t v : values) is_valid = is_valid && v >= lowest && v <= kMostPadding;
  if (!is_valid) {
    tensor::fail("Attribute '" + std::string(name) + "' is " + to_string(values) + " for " +
                 std::to_string(count) + " values.");
  }
  return values;
}

/// auto_pad SAME_*: the output is ceil(in / stride); an odd cell goes to the end (UPPER) or the beginning (LOWER).
void pad_same(WindowAttributes& w, const Shape& extents, bool is_upper) {
  for (size_t i = 0; i < extents.size(); ++i) {
    const int64_t out = (extents[i] + w.strides[i] - 1) / w.strides[i];
    const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    const int64_t total = std::max<int64_t>((out - 1) * w.strides[i] + reach - extents[i], 0);
    w.pads_lo[i] = is_upper ? total / 2 : total - total / 2;
    w.pads_hi[i] = total - w.pads_lo[i];
  }
}

Shape spatial_extents(const Tensor& x) {
  if (x.rank() < 3) tensor::fail("Pooling takes [N, C, spatial…], not " + x.describe() + ".");
  return {x.shape().begin() + 2, x.shape().end()};
}

tensor::PoolOptions pool_options(const OpContext& ctx) {
  const Shape extents = spatial_extents(ctx.input(0));
  const std::vector<int64_t> kernel = ctx.attr_ints("kernel_shape");
  if (kernel.size() != extents.size()) {
    tensor::fail("Attribute 'kernel_shape' is " + to_string(kernel) + " for " +
                 ctx.input(0).describe() + ".");
  }
  const WindowAttributes w = window_attributes(ctx, extents, kernel);
  tensor::PoolOptions options;
  options.kernel = w.kernel;
  options.strides = w.strides;
  options.dilations = w.dilations;
  options.pads_lo = w.pads_lo;
  options.pads_hi = w.pads_hi;
  options.ceil_mode = ctx.attr_int("ceil_mode", 0) != 0;
  options.count_include_pad = ctx.attr_int("count_include_pad", 0) != 0;
  return options;
}

OpOutputs max_pool(const OpContext& ctx) {
  const tensor::PoolOptions options = pool_options(ctx);
  std::vector<Tensor> outputs{tensor::max_pool(ctx.input(0), options)};
  if (ctx.wants_output(1)) {
    const bool is_column_major = ctx.attr_int("storage_order", 0) != 0;
    outputs.push_back(tensor::max_pool_indices(ctx.input(0), options, is_column_major));
  }
  return outputs;
}

OpOutputs average_pool(const OpContext& ctx) {
  require_float(ctx, 0);
  return one(tensor::avg_pool(ctx.input(0), pool_options(ctx)));
}

OpOutputs lp_pool(const OpContext& ctx) {
  require_float(ctx, 0);
  return one(
      tensor::lp_pool(ctx.input(0), pool_options(ctx), static_cast<double>(ctx.attr_int("p", 2))));
}

OpOutputs global_lp_pool(const OpContext& ctx) {
  require_float(ctx, 0);
  return one(tensor::global_lp_pool(ctx.input(0), static_cast<double>(ctx.attr_int("p", 2))));
}

/// Puts each value back to where MaxPool found it. The indices count in the tensor that was pooled, which may be
/// smaller than the shape asked for.
OpOutputs max_unpool(const OpContext& ctx) {
  const Tensor &x = ctx.input(0), &indices = ctx.input(1);
  const Shape extents = spatial_extents(x);
  if (indices.shape() != x.shape() || !is_int(indices.dtype())) {
    return ctx.error("The indices are " + indices.describe() + " for " + x.describe() + ".");
  }
  const std::vector<int64_t> kernel = ctx.attr_ints("kernel_shape");
  if (kernel.size() != extents.size())
    return ctx.error("Attribute 'kernel_shape' is " + to_string(kernel) + ".");
  const WindowAttributes w = window_attributes(ctx, extents, kernel);
  Shape pooled{x.dim(0), x.dim(1)};
  for (size_t i = 0; i < extents.size(); ++i) {
    const int64_t extent =
        (extents[i] - 1) * w.strides[i] + w.kernel[i] - w.pads_lo[i] - w.pads_hi[i];
    if (extent < 0) return ctx.error("The pads are larger than the result.");
    pooled.push_back(extent);
  }
  Shape result = pooled;
  if (ctx.has_input(2)) {
    IGNIS_TRY_ASSIGN(result, ctx.const_ints(2));
    if (result.size() != pooled.size() || result[0] != pooled[0] || result[1] != pooled[1]) {
      return ctx.error("The output shape is " + to_string(result) + " for " + to_string(pooled) +
                       ".");
    }
  }
  require_size(ctx, result);
  require_size(ctx, pooled);
  const int64_t places = element_count(pooled), values = x.count();
  require_size(ctx, {places, values});
  const Tensor flat =
      tensor::scatter_elements(Tensor::full(ctx.graph(), {places}, 0, x.dtype()),
                               tensor::reshape(indices, {values}), tensor::reshape(x, {values}), 0);
  std::vector<std::pair<int64_t, int64_t>> amounts;
  for (size_t i = 0; i < pooled.size(); ++i) amounts.emplace_back(0, result[i] - pooled[i]);
  return one(tensor::pad(tensor::reshape(flat, pooled), amounts));
}

// clang-format off
constexpr OpEntry kPoolOps[] = {
    {"", "MaxPool", 1, 1, 1, max_pool},
    {"", "AveragePool", 1, 1, 1, average_pool},
    {"", "LpPool", 2, 1, 1, lp_pool},
    {"", "GlobalMaxPool", 1, 1, 1, unary<tensor::global_max_pool>},
    {"", "GlobalAveragePool", 1, 1, 1, unary<tensor::global_avg_pool>},
    {"", "GlobalLpPool", 2, 1, 1, global_lp_pool},
    {"", "MaxUnpool", 9, 2, 3, max_unpool},
};
// clang-format on

}  // namespace

WindowAttributes window_attributes(const OpContext& ctx, const Shape& spatial,
                                   std::vector<int64_t> kernel) {
  const size_t count = spatial.size();
  WindowAttributes w;
  w.kernel = std::move(kernel);
  for (const int64_t k : w.kernel) {
    if (k < 1 || k > kMostPadding) tensor::fail("The kernel is " + to_string(w.kernel) + ".");
  }
  w.strides = per_axis(ctx, "strides", count, 1, 1);
  w.dilations = per_axis(ctx, "dilations", count, 1, 1);
  w.pads_lo.assign(count, 0);
  w.pads_hi.assign(count, 0);
  const std::string auto_pad = ctx.attr_string("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    pad_same(w, spatial, auto_pad == "SAME_UPPER");
  } else if (auto_pad == "NOTSET" || auto_pad.empty()) {
    const std::vector<int64_t> pads = per_axis(ctx, "pads", 2 * count, 0, 0);
    std::copy_n(pads.begin(), count, w.pads_lo.begin());
    std::copy_n(pads.begin() + static_cast<std::ptrdiff_t>(count), count, w.pads_hi.begin());
  } else if (auto_pad != "VALID") {
    tensor::fail("Attribute 'auto_pad' is '" + auto_pad + "'.");
  }
  return w;
}

std::span<const OpEntry> pool_ops() { return kPoolOps; }

}  // namespace ignis::onnx
