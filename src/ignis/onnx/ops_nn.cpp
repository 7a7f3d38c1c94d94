#include "ignis/onnx/ops_common.h"

#include <algorithm>

// Products, convolutions, and the normalisations of inference.
namespace ignis::onnx {
namespace {

std::optional<Tensor> optional_input(const OpContext& ctx, int i) {
  return ctx.has_input(i) ? std::optional<Tensor>(ctx.input(i)) : std::nullopt;
}

OpOutputs mat_mul(const OpContext& ctx) {
  require_same_dtype(ctx);
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  return one(tensor::matmul(a, b, a.dtype()));
}

OpOutputs gemm(const OpContext& ctx) {
  require_same_dtype(ctx);
  const auto form = [&](std::string_view name) {
    return ctx.attr_int(name, 0) != 0 ? tensor::Trans::Yes : tensor::Trans::No;
  };
  const double alpha = ctx.attr_float("alpha", 1), beta = ctx.attr_float("beta", 1);
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  if (is_float(a.dtype()) || (alpha == 1 && beta == 1)) {
    return one(tensor::cast(
        tensor::gemm(a, b, optional_input(ctx, 2), alpha, beta, form("transA"), form("transB")),
        a.dtype()));
  }
  return ctx.unsupported("Gemm of integers with a factor other than 1 is not supported.");
}

/// The spatial extents of x, and the window of the weights over them.
struct ConvWindow {
  Shape spatial;
  WindowAttributes window;
};

ConvWindow conv_window(const OpContext& ctx, const Tensor& x, const Tensor& weights) {
  if (x.rank() < 3 || weights.rank() != x.rank()) {
    tensor::fail("A convolution of " + x.describe() + " by " + weights.describe() + ".");
  }
  const std::vector<int64_t> kernel(weights.shape().begin() + 2, weights.shape().end());
  const std::vector<int64_t> stated = ctx.attr_ints("kernel_shape");
  if (!stated.empty() && stated != kernel) {
    tensor::fail("Attribute 'kernel_shape' is " + to_string(stated) + "; the weights are " +
                 weights.describe() + ".");
  }
  const Shape spatial(x.shape().begin() + 2, x.shape().end());
  return {spatial, window_attributes(ctx, spatial, kernel)};
}

OpOutputs conv(const OpContext& ctx) {
  require_float(ctx, 0);
  require_same_dtype(ctx);
  const ConvWindow w = conv_window(ctx, ctx.input(0), ctx.input(1));
  tensor::ConvOptions options;
  options.strides = w.window.strides;
  options.dilations = w.window.dilations;
  options.groups = ctx.attr_int("group", 1);
  options.pads_lo = w.window.pads_lo;
  options.pads_hi = w.window.pads_hi;
  return one(tensor::conv(ctx.input(0), ctx.input(1), optional_input(ctx, 2), options));
}

/// Pads that give the output shape asked for; see ConvTranspose in the standard.
Status pad_to_shape(const OpContext& ctx, const std::vector<int64_t>& wanted, const Shape& spatial,
                    const WindowAttributes& w, tensor::ConvOptions& options) {
  // An odd rest goes to the end for SAME_UPPER, else to the beginning. Before version 11 the text said the opposite.
  const bool is_upper = ctx.attr_string("auto_pad", "NOTSET") == "SAME_UPPER";
  const bool is_end_heavy = ctx.opset() >= 11 ? is_upper : !is_upper;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const int64_t total = w.strides[i] * (spatial[i] - 1) + options.output_padding[i] +
                          (w.kernel[i] - 1) * w.dilations[i] + 1 - wanted[i];
    if (wanted[i] < 1) return ctx.error("The output shape is " + to_string(wanted) + ".");
    if (total < 0) {
      // The result is larger than what the kernel reaches: the rest is padding at the end.
      options.output_padding[i] -= total;
      options.pads_lo[i] = options.pads_hi[i] = 0;
      continue;
    }
    options.pads_lo[i] = is_end_heavy ? total / 2 : total - total / 2;
    options.pads_hi[i] = total - options.pads_lo[i];
  }
  return Status::ok();
}

OpOutputs conv_transpose(const OpContext& ctx) {
  require_float(ctx, 0);
  require_same_dtype(ctx);
  const Tensor &x = ctx.input(0), &weights = ctx.input(1);
  const auto [spatial, w] = conv_window(ctx, x, weights);
  const std::string auto_pad = ctx.attr_string("auto_pad", "NOTSET");
  tensor::ConvOptions options;
  options.strides = w.strides;
  options.dilations = w.dilations;
  options.groups = ctx.attr_int("group", 1);
  options.pads_lo = w.pads_lo;
  options.pads_hi = w.pads_hi;
  options.output_padding = ctx.attr_ints("output_padding", std::vector<int64_t>(spatial.size(), 0));
  if (options.output_padding.empty()) options.output_padding.assign(spatial.size(), 0);
  bool is_valid = options.output_padding.size() == spatial.size();
  for (const int64_t p : options.output_padding)
    is_valid = is_valid && p >= 0 && p < (int64_t{1} << 31);
  if (!is_valid) return ctx.error("output_padding is " + to_string(options.output_padding) + ".");
  std::vector<int64_t> wanted = ctx.attr_ints("output_shape");
  // Some exporters list the batch and channel extents too.
  if (wanted.size() == spatial.size() + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (wanted.empty() && auto_pad.starts_with("SAME")) {
    for (size_t i = 0; i < spatial.size(); ++i) wanted.push_back(spatial[i] * w.strides[i]);
  }
  if (!wanted.empty()) {
    if (wanted.size() != spatial.size())
      return ctx.error("output_shape is " + to_string(wanted) + ".");
    IGNIS_TRY(pad_to_shape(ctx, wanted, spatial, w, options));
  }
  return one(tensor::conv_transpose(x, weights, optional_input(ctx, 2), options));
}

/// Statistics of the batch, and the running ones moved towards them.
OpOutputs batch_norm_training(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  std::vector<int64_t> axes{0};
  for (int64_t i = 2; i < x.rank(); ++i) axes.push_back(i);
  const double momentum = ctx.attr_float("momentum", 0.9);
  const Tensor mean = tensor::mean(x, axes), variance = tensor::var(x, axes);
  const auto moved = [&](int i, const Tensor& current) {
    const Tensor& running = ctx.input(i);
    return tensor::cast(
        running * momentum + tensor::cast(current, running.dtype()) * (1 - momentum),
        running.dtype());
  };
  return std::vector<Tensor>{tensor::batch_norm(x, ctx.input(1), ctx.input(2), mean, variance,
                                                ctx.attr_float("epsilon", 1e-5)),
                             moved(3, mean), moved(4, variance)};
}

OpOutputs batch_normalization(const OpContext& ctx) {
  require_float(ctx, 0);
  if (ctx.input(0).rank() < 2)
    return ctx.error("BatchNormalization takes [N, C, …], not " + ctx.input(0).describe() + ".");
  if (ctx.opset() < 9 && ctx.attr_int("spatial", 1) == 0) {
    return ctx.unsupported("BatchNormalization per activation (spatial=0) is not supported.");
  }
  if (ctx.opset() >= 14 && ctx.attr_int("training_mode", 0) != 0) return batch_norm_training(ctx);
  const Tensor y = tensor::batch_norm(ctx.input(0), ctx.input(1), ctx.input(2), ctx.input(3),
                                      ctx.input(4), ctx.attr_float("epsilon", 1e-5));
  return one(tensor::cast(y, ctx.input(0).dtype()));
}

OpOutputs lrn(const OpContext& ctx) {
  require_float(ctx, 0);
  return one(tensor::local_response_norm(ctx.input(0), ctx.attr_int("size"),
                                         ctx.attr_float("alpha", 1e-4),
                                         ctx.attr_float("beta", 0.75), ctx.attr_float("bias", 1)));
}

OpOutputs einsum(const OpContext& ctx) {
  require_same_dtype(ctx);
  const std::vector<Tensor> operands = ctx.inputs();
  return one(
      tensor::cast(tensor::einsum(ctx.attr_string("equation", ""), operands), operands[0].dtype()));
}

// clang-format off
constexpr OpEntry kNnOps[] = {
    {"", "MatMul", 1, 2, 2, mat_mul},
    {"", "Gemm", 1, 2, 3, gemm},
    {"", "Conv", 1, 2, 3, conv},
    {"", "ConvTranspose", 1, 2, 3, conv_transpose},
    {"", "BatchNormalization", 1, 5, 5, batch_normalization},
    {"", "LRN", 1, 1, 1, lrn},
    {"", "Einsum", 12, 1, -1, einsum},
};
// clang-format on

}  // namespace

std::span<const OpEntry> nn_ops() { return kNnOps; }

}  // namespace ignis::onnx
