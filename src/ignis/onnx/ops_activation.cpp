#include "ignis/onnx/ops_common.h"

// Activations of one input and their parameters; softmax and its relatives.
namespace ignis::onnx {
namespace {

OpOutputs leaky_relu(const OpContext& ctx) {
  return one(tensor::leaky_relu(ctx.input(0), ctx.attr_float("alpha", 0.01)));
}

OpOutputs elu(const OpContext& ctx) {
  return one(tensor::elu(ctx.input(0), ctx.attr_float("alpha", 1.0)));
}

OpOutputs celu(const OpContext& ctx) {
  return one(tensor::celu(ctx.input(0), ctx.attr_float("alpha", 1.0)));
}

OpOutputs selu(const OpContext& ctx) {
  // The defaults were rounded differently before operator set 6.
  const bool is_old = ctx.opset() < 6;
  const double alpha = ctx.attr_float("alpha", is_old ? 1.6732 : 1.67326319217681884765625);
  const double gamma = ctx.attr_float("gamma", is_old ? 1.0507 : 1.05070102214813232421875);
  return one(tensor::selu(ctx.input(0), alpha, gamma));
}

OpOutputs thresholded_relu(const OpContext& ctx) {
  return one(tensor::thresholded_relu(ctx.input(0), ctx.attr_float("alpha", 1.0)));
}

OpOutputs hard_sigmoid(const OpContext& ctx) {
  return one(tensor::hard_sigmoid(ctx.input(0), ctx.attr_float("alpha", 0.2),
                                  ctx.attr_float("beta", 0.5)));
}

OpOutputs shrink(const OpContext& ctx) {
  return one(tensor::shrink_activation(ctx.input(0), ctx.attr_float("lambd", 0.5),
                                       ctx.attr_float("bias", 0.0)));
}

OpOutputs gelu(const OpContext& ctx) {
  const std::string form = ctx.attr_string("approximate", "none");
  if (form != "none" && form != "tanh") return ctx.error("Gelu has approximate '" + form + "'.");
  return one(
      tensor::gelu(ctx.input(0), form == "tanh" ? tensor::GeluForm::Tanh : tensor::GeluForm::Erf));
}

/// The slope is stretched to x alone. Before operator set 7 a slope per channel was a plain list.
OpOutputs prelu(const OpContext& ctx) {
  require_same_dtype(ctx);
  const Tensor& x = ctx.input(0);
  Tensor slope = ctx.input(1);
  if (ctx.opset() < 7 && slope.rank() == 1 && x.rank() > 2) {
    Shape shape(static_cast<size_t>(x.rank() - 1), 1);
    shape[0] = slope.dim(0);
    slope = tensor::reshape(slope, shape);
  }
  return one(tensor::prelu(x, tensor::broadcast_to(slope, x.shape())));
}

/// Applies `f` along the last axis of what an operator that normalises over `axis` means: one axis from operator set
/// 13 on, before that all axes from `axis` on as one.
OpOutputs along_axis(const OpContext& ctx, Tensor (*f)(const Tensor&, int64_t)) {
  require_float(ctx, 0);
  const Tensor& x = ctx.input(0);
  const bool is_flat = ctx.opset() < 13;
  const int64_t stated = ctx.attr_int("axis", is_flat ? 1 : -1);
  // What is flattened may also be split behind its last axis.
  const int64_t axis = is_flat && stated == x.rank() ? stated : ctx.axis(stated, x.rank());
  if (!is_flat || axis == x.rank() - 1) return one(f(x, axis));
  int64_t rows = 1, columns = 1;
  for (int i = 0; i < x.rank(); ++i) (i < axis ? rows : columns) *= x.dim(i);
  return one(tensor::reshape(f(tensor::reshape(x, {rows, columns}), 1), x.shape()));
}

OpOutputs softmax(const OpContext& ctx) { return along_axis(ctx, tensor::softmax); }
OpOutputs log_softmax(const OpContext& ctx) { return along_axis(ctx, tensor::log_softmax); }

/// 1 at the first maximum.
Tensor hardmax_of(const Tensor& x, int64_t axis) {
  const Tensor first = tensor::argmax(x, axis);
  return tensor::cast(tensor::one_hot(first, x.dim(static_cast<int>(axis)), axis), x.dtype());
}
OpOutputs hardmax(const OpContext& ctx) { return along_axis(ctx, hardmax_of); }

/// Dropping out happens in training alone; a mask keeps everything.
OpOutputs dropout(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (ctx.has_input(2)) {
    IGNIS_TRY_ASSIGN(const int64_t is_training, ctx.const_int(2));
    double ratio = 0.5;
    if (ctx.has_input(1)) {
      IGNIS_TRY_ASSIGN(ratio, ctx.const_float(1));
    }
    if (is_training != 0 && ratio != 0)
      return ctx.unsupported("Dropout in training mode is random.");
  }
  const DType mask = ctx.opset() < 10 ? x.dtype() : DType::Bool;
  return std::vector<Tensor>{x, Tensor::full(ctx.graph(), x.shape(), 1, mask)};
}

// clang-format off
constexpr OpEntry kActivationOps[] = {
    {"", "Relu", 1, 1, 1, unary<tensor::relu>},
    {"", "LeakyRelu", 1, 1, 1, leaky_relu},
    {"", "PRelu", 1, 2, 2, prelu},
    {"", "Elu", 1, 1, 1, elu},
    {"", "Celu", 12, 1, 1, celu},
    {"", "Selu", 1, 1, 1, selu},
    {"", "ThresholdedRelu", 10, 1, 1, thresholded_relu},
    {"", "Sigmoid", 1, 1, 1, unary<tensor::sigmoid>},
    {"", "HardSigmoid", 1, 1, 1, hard_sigmoid},
    {"", "HardSwish", 14, 1, 1, unary<tensor::hard_swish>},
    {"", "Softplus", 1, 1, 1, unary<tensor::softplus>},
    {"", "Softsign", 1, 1, 1, unary<tensor::softsign>},
    {"", "Mish", 18, 1, 1, unary<tensor::mish>},
    {"", "Gelu", 20, 1, 1, gelu},
    {"", "Shrink", 9, 1, 1, shrink},
    {"", "Softmax", 1, 1, 1, softmax},
    {"", "LogSoftmax", 1, 1, 1, log_softmax},
    {"", "Hardmax", 1, 1, 1, hardmax},
    {"", "Dropout", 7, 1, 3, dropout},
};
// clang-format on

}  // namespace

std::span<const OpEntry> activation_ops() { return kActivationOps; }

}  // namespace ignis::onnx
