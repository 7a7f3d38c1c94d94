// One step of an optimiser (domain ai.onnx.preview.training), by the pseudo code of its operator's text.
#include "ignis/onnx/ops.h"

namespace ignis::onnx {
namespace {

namespace t = tensor;

// Inputs are R, T, then one group a role (X1 X2 … G1 G2 … H1 H2 …); outputs are grouped alike.
Result<int> tensors_per_role(const OpContext& ctx, int roles) {
  const int listed = ctx.input_count() - 2;
  if (listed < roles || listed % roles != 0) {
    return ctx.error(std::to_string(listed) + " tensors do not divide into " +
                     std::to_string(roles) + " roles.");
  }
  return listed / roles;
}

OpOutputs adagrad(const OpContext& ctx) {
  IGNIS_TRY_ASSIGN(const int n, tensors_per_role(ctx, 3));
  const double norm = ctx.attr_float("norm_coefficient", 0);
  const Tensor decay =
      t::cast(ctx.input(1), ctx.input(0).dtype()) * ctx.attr_float("decay_factor", 0);
  const Tensor rate = ctx.input(0) / (decay + 1.0);
  std::vector<Tensor> xs, hs;
  for (int i = 0; i < n; ++i) {
    const Tensor& x = ctx.input(2 + i);
    const Tensor g = x * norm + ctx.input(2 + n + i);
    const Tensor h = ctx.input(2 + 2 * n + i) + g * g;
    xs.push_back(x - rate * g / (t::sqrt(h) + ctx.attr_float("epsilon", 1e-6)));
    hs.push_back(h);
  }
  xs.insert(xs.end(), hs.begin(), hs.end());
  return xs;
}

OpOutputs adam(const OpContext& ctx) {
  IGNIS_TRY_ASSIGN(const int n, tensors_per_role(ctx, 4));
  const double norm = ctx.attr_float("norm_coefficient", 0);
  const double post = ctx.attr_float("norm_coefficient_post", 0);
  const double alpha = ctx.attr_float("alpha", 0.9), beta = ctx.attr_float("beta", 0.999);
  const Tensor count = t::cast(ctx.input(1), ctx.input(0).dtype());
  const auto power = [&](double base) {
    return t::pow(Tensor::full(count.graph(), count.shape(), base, count.dtype()), count);
  };
  const Tensor adjusted = ctx.input(0) * t::sqrt(1.0 - power(beta)) / (1.0 - power(alpha));
  const Tensor rate = t::where(t::greater(ctx.input(1), 0), adjusted, ctx.input(0));
  std::vector<Tensor> xs, vs, hs;
  for (int i = 0; i < n; ++i) {
    const Tensor& x = ctx.input(2 + i);
    const Tensor g = x * norm + ctx.input(2 + n + i);
    const Tensor v = ctx.input(2 + 2 * n + i) * alpha + g * (1 - alpha);
    const Tensor h = ctx.input(2 + 3 * n + i) * beta + g * g * (1 - beta);
    const Tensor moved = x - rate * v / (t::sqrt(h) + ctx.attr_float("epsilon", 1e-6));
    xs.push_back(moved * (1 - post));
    vs.push_back(v);
    hs.push_back(h);
  }
  xs.insert(xs.end(), vs.begin(), vs.end());
  xs.insert(xs.end(), hs.begin(), hs.end());
  return xs;
}

OpOutputs momentum(const OpContext& ctx) {
  IGNIS_TRY_ASSIGN(const int n, tensors_per_role(ctx, 3));
  const double norm = ctx.attr_float("norm_coefficient", 0);
  const double alpha = ctx.attr_float("alpha", 0), beta = ctx.attr_float("beta", 0);
  const std::string mode = ctx.attr_string("mode", "");
  if (mode != "standard" && mode != "nesterov") return ctx.error("Unknown mode '" + mode + "'.");
  const Tensor& rate = ctx.input(0);
  // The first update takes the gradient as it is.
  const Tensor one = Tensor::full(rate.graph(), ctx.input(1).shape(), 1.0, rate.dtype());
  const Tensor weight = t::where(t::greater(ctx.input(1), 0), one * beta, one);
  std::vector<Tensor> xs, vs;
  for (int i = 0; i < n; ++i) {
    const Tensor& x = ctx.input(2 + i);
    const Tensor g = x * norm + ctx.input(2 + n + i);
    const Tensor v = ctx.input(2 + 2 * n + i) * alpha + weight * g;
    xs.push_back(x - rate * (mode == "nesterov" ? g + v * alpha : v));
    vs.push_back(v);
  }
  xs.insert(xs.end(), vs.begin(), vs.end());
  return xs;
}

// clang-format off
constexpr OpEntry kOps[] = {
    {"ai.onnx.preview.training", "Adagrad",  1, 5, -1, adagrad},
    {"ai.onnx.preview.training", "Adam",     1, 6, -1, adam},
    {"ai.onnx.preview.training", "Momentum", 1, 5, -1, momentum},
};
// clang-format on

}  // namespace

std::span<const OpEntry> training_ops() { return kOps; }

}  // namespace ignis::onnx
