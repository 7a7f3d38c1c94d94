// Training losses, forward only.
#include "ignis/onnx/ops.h"

#include <optional>

namespace ignis::onnx {
namespace {

namespace t = tensor;

// -log_prob[n, target, d…] * weight[target], 0 where the target is ignored, then reduced. Axis 1 holds the classes.
OpOutputs negative_log_likelihood(const OpContext& ctx, const Tensor& log_prob,
                                  const Tensor& target) {
  if (log_prob.rank() < 2) return ctx.error("Scores " + log_prob.describe() + " have no classes.");
  Shape wanted = log_prob.shape();
  wanted.erase(wanted.begin() + 1);
  if (target.shape() != wanted ||
      (ctx.has_input(2) && ctx.input(2).shape() != Shape{log_prob.dim(1)})) {
    return ctx.error("Scores " + log_prob.describe() + ", target " + target.describe() +
                     " and the weights do not fit.");
  }
  const std::string reduction = ctx.attr_string("reduction", "mean");
  std::optional<Tensor> ignored;
  if (ctx.has_attr("ignore_index")) {
    ignored = t::equal(target, ctx.attr_int("ignore_index"));
  }
  const Tensor picked = t::squeeze(t::gather_elements(log_prob, t::unsqueeze(target, {1}), 1), {1});
  Tensor loss = t::neg(picked);
  std::optional<Tensor> weight;
  if (ctx.has_input(2)) {
    weight = t::gather(ctx.input(2), target, 0);
    loss = loss * *weight;
  }
  // A select, not a product with 0: an ignored position may hold an infinite score.
  if (ignored) {
    loss = t::where(*ignored, 0.0, loss);
    if (!weight) weight = Tensor::full(loss.graph(), loss.shape(), 1.0, loss.dtype());
    weight = t::where(*ignored, 0.0, *weight);
  }
  if (reduction == "none") return std::vector<Tensor>{loss};
  if (reduction == "sum") return std::vector<Tensor>{t::sum(loss)};
  if (reduction != "mean") return ctx.error("Unknown reduction '" + reduction + "'.");
  if (!weight) return std::vector<Tensor>{t::mean(loss)};
  return std::vector<Tensor>{t::sum(loss) / t::sum(*weight)};
}

OpOutputs nll_loss(const OpContext& ctx) {
  return negative_log_likelihood(ctx, ctx.input(0), ctx.input(1));
}

OpOutputs softmax_cross_entropy_loss(const OpContext& ctx) {
  const Tensor log_prob = t::log_softmax(ctx.input(0), 1);
  IGNIS_TRY_ASSIGN(std::vector<Tensor> outputs,
                   negative_log_likelihood(ctx, log_prob, ctx.input(1)));
  outputs.push_back(log_prob);
  return outputs;
}

// clang-format off
constexpr OpEntry kOps[] = {
    {"", "NegativeLogLikelihoodLoss", 12, 2, 3, nll_loss},
    {"", "SoftmaxCrossEntropyLoss",   12, 2, 3, softmax_cross_entropy_loss},
};
// clang-format on

}  // namespace

std::span<const OpEntry> loss_ops() { return kOps; }

}  // namespace ignis::onnx
