// RNN, GRU and LSTM, unrolled over time. All three share the walk over directions and steps; each has its own cell.
#include "ignis/onnx/ops.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>

namespace ignis::onnx {
namespace {

namespace t = tensor;

// One activation with its parameters; the defaults are those of the operators of the same names.
struct Activation {
  std::string name = "tanh";
  double alpha = 0, beta = 0;

  Tensor operator()(const Tensor& x) const {
    if (name == "tanh") return t::tanh(x);
    if (name == "sigmoid") return t::sigmoid(x);
    if (name == "relu") return t::relu(x);
    if (name == "affine") return x * alpha + beta;
    if (name == "leakyrelu") return t::leaky_relu(x, alpha);
    if (name == "thresholdedrelu") return t::where(t::greater_equal(x, alpha), x, 0.0);
    if (name == "scaledtanh") return t::tanh(x * beta) * alpha;
    if (name == "hardsigmoid") return t::hard_sigmoid(x, alpha, beta);
    if (name == "elu") return t::elu(x, alpha);
    if (name == "softsign") return t::softsign(x);
    return t::softplus(x);
  }
};

struct ActivationForm {
  std::string_view name;
  bool has_alpha, has_beta;
  double alpha, beta;
};
// clang-format off
constexpr ActivationForm kActivations[] = {
    {"tanh", false, false, 0, 0},         {"sigmoid", false, false, 0, 0},
    {"relu", false, false, 0, 0},         {"affine", true, true, 1, 0},
    {"leakyrelu", true, false, 0.01, 0},  {"thresholdedrelu", true, false, 1, 0},
    {"scaledtanh", true, true, 1, 1},     {"hardsigmoid", true, true, 0.2, 0.5},
    {"elu", true, false, 1, 0},           {"softsign", false, false, 0, 0},
    {"softplus", false, false, 0, 0},
};
// clang-format on

// Names are compared without case; the values of activation_alpha and activation_beta are taken in order by the
// activations that use them.
Result<std::vector<Activation>> read_activations(const OpContext& ctx, int64_t directions,
                                                 const std::vector<std::string>& fallback) {
  std::vector<std::string> names = ctx.attr_strings("activations");
  if (names.empty()) {
    for (int64_t d = 0; d < directions; ++d) {
      names.insert(names.end(), fallback.begin(), fallback.end());
    }
  }
  const size_t wanted = static_cast<size_t>(directions) * fallback.size();
  if (names.size() < wanted) {
    return ctx.error("activations names " + std::to_string(names.size()) + " functions; " +
                     std::to_string(wanted) + " are needed.");
  }
  const std::vector<float> alphas = ctx.attr_floats("activation_alpha");
  const std::vector<float> betas = ctx.attr_floats("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  std::vector<Activation> activations;
  for (size_t i = 0; i < wanted; ++i) {
    std::string name = names[i];
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto* form = std::find_if(std::begin(kActivations), std::end(kActivations),
                                    [&](const ActivationForm& f) { return f.name == name; });
    if (form == std::end(kActivations)) return ctx.unsupported("Activation '" + names[i] + "'.");
    Activation a{name, form->alpha, form->beta};
    if (form->has_alpha && next_alpha < alphas.size()) {
      a.alpha = static_cast<double>(alphas[next_alpha++]);
    }
    if (form->has_beta && next_beta < betas.size()) {
      a.beta = static_cast<double>(betas[next_beta++]);
    }
    activations.push_back(std::move(a));
  }
  return activations;
}

// What the three operators share, with layout 1 already turned into layout 0 (time first).
struct Recurrence {
  Tensor x;                       // [steps, batch, input]
  Tensor w, r;                    // [directions, gates * hidden, input | hidden]
  std::optional<Tensor> bias;     // [directions, 2 * gates * hidden]
  std::optional<Tensor> lengths;  // [batch, 1], int32
  std::vector<Tensor> first;      // initial states, each [directions, batch, hidden]
  int64_t gates = 1, steps = 0, batch = 0, hidden = 0, directions = 1;
  bool is_reverse = false, is_batch_first = false;
  std::optional<double> clip;
  std::vector<Activation> activations;
};

Tensor swap_layout(const Tensor& x, bool is_batch_first) {
  return is_batch_first ? t::transpose(x, 0, 1) : x;
}

// `state_inputs`: where initial_h (and initial_c) stand in the input list.
Result<Recurrence> read_recurrence(const OpContext& ctx, int64_t gates,
                                   const std::vector<int>& state_inputs,
                                   const std::vector<std::string>& default_activations) {
  Recurrence rec;
  rec.gates = gates;
  rec.is_batch_first = ctx.attr_int("layout", 0) != 0;
  if (ctx.input(0).rank() != 3 || ctx.input(1).rank() != 3 || ctx.input(2).rank() != 3) {
    return ctx.error("X, W and R have rank 3, not " + ctx.input(0).describe() + ", " +
                     ctx.input(1).describe() + ", " + ctx.input(2).describe() + ".");
  }
  rec.x = swap_layout(ctx.input(0), rec.is_batch_first);
  rec.w = ctx.input(1);
  rec.r = ctx.input(2);
  rec.steps = rec.x.dim(0);
  rec.batch = rec.x.dim(1);
  rec.hidden = rec.r.dim(2);
  const std::string direction = ctx.attr_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return ctx.error("Unknown direction '" + direction + "'.");
  }
  rec.is_reverse = direction == "reverse";
  rec.directions = direction == "bidirectional" ? 2 : 1;
  const Shape w_shape{rec.directions, gates * rec.hidden, rec.x.dim(2)};
  const Shape r_shape{rec.directions, gates * rec.hidden, rec.hidden};
  if (rec.w.shape() != w_shape || rec.r.shape() != r_shape) {
    return ctx.error("W " + rec.w.describe() + " and R " + rec.r.describe() + " do not have " +
                     to_string(w_shape) + " and " + to_string(r_shape) + ".");
  }
  if (ctx.has_input(3)) {
    rec.bias = ctx.input(3);
    const Shape bias_shape{rec.directions, 2 * gates * rec.hidden};
    if (rec.bias->shape() != bias_shape) {
      return ctx.error("B " + rec.bias->describe() + " does not have " + to_string(bias_shape) +
                       ".");
    }
  }
  if (ctx.has_input(4)) rec.lengths = t::reshape(ctx.input(4), {rec.batch, 1});
  for (const int i : state_inputs) {
    const Shape shape{rec.directions, rec.batch, rec.hidden};
    if (ctx.has_input(i)) {
      const Tensor state = swap_layout(ctx.input(i), rec.is_batch_first);
      rec.first.push_back(t::reshape(state, shape));
    } else {
      rec.first.push_back(Tensor::zeros(rec.x.graph(), shape, rec.x.dtype()));
    }
  }
  if (ctx.has_attr("clip")) rec.clip = ctx.attr_float("clip", 0);
  IGNIS_TRY_ASSIGN(rec.activations, read_activations(ctx, rec.directions, default_activations));
  if (rec.steps * rec.directions > ctx.limits().max_total_nodes / 64) {
    return Error(ErrorCode::InvalidArgument,
                 "Unrolling " + std::to_string(rec.steps) + " steps is over the node limit.",
                 "LimitExceeded");
  }
  return rec;
}

// One direction's weights as a cell sees them.
struct Weights {
  Tensor r;                      // [gates * hidden, hidden]
  Tensor input_part;             // [steps, batch, gates * hidden]: X * W^T + Wb
  std::optional<Tensor> r_bias;  // [gates * hidden]
  std::span<const Activation> activations;
  std::optional<double> clip;
  int64_t hidden = 0;

  // Rows `gate` of a [.., gates * hidden] value.
  Tensor gate(const Tensor& x, int64_t g) const {
    return t::slice(x, -1, g * hidden, (g + 1) * hidden);
  }
  // H * R^T for the gates [first, last), without the bias.
  Tensor recurrent(const Tensor& h, int64_t first, int64_t last) const {
    return t::matmul(h, t::transpose(t::slice(r, 0, first * hidden, last * hidden)));
  }
  std::optional<Tensor> r_bias_of(int64_t first, int64_t last) const {
    if (!r_bias) return std::nullopt;
    return t::slice(*r_bias, 0, first * hidden, last * hidden);
  }
  Tensor activate(size_t which, const Tensor& x) const {
    return activations[which](clip ? t::clamp(x, -*clip, *clip) : x);
  }
};

// States -> states after one step; `x` is one step of Weights::input_part. The first state is the output.
using Cell = std::function<std::vector<Tensor>(const Weights&, int64_t direction, const Tensor& x,
                                               const std::vector<Tensor>& states)>;

OpOutputs unroll(const Recurrence& rec, const Cell& cell) {
  const size_t state_count = rec.first.size();
  std::vector<Tensor> outputs_of_direction;                   // [steps, batch, hidden]
  std::vector<std::vector<Tensor>> last_states(state_count);  // [batch, hidden] a direction
  const size_t per_direction = rec.activations.size() / static_cast<size_t>(rec.directions);
  for (int64_t d = 0; d < rec.directions; ++d) {
    const bool is_backward = rec.is_reverse || d == 1;
    Weights weights;
    weights.hidden = rec.hidden;
    weights.clip = rec.clip;
    weights.activations =
        std::span(rec.activations).subspan(static_cast<size_t>(d) * per_direction, per_direction);
    weights.r = t::select(rec.r, 0, d);
    weights.input_part = t::matmul(rec.x, t::transpose(t::select(rec.w, 0, d)));
    if (rec.bias) {
      const Tensor bias = t::select(*rec.bias, 0, d);
      const int64_t rows = rec.gates * rec.hidden;
      weights.input_part = weights.input_part + t::slice(bias, 0, 0, rows);
      weights.r_bias = t::slice(bias, 0, rows, 2 * rows);
    }
    // One product for all steps, stored once and read in slices.
    weights.input_part = t::contiguous(weights.input_part);
    std::vector<Tensor> states;
    for (const Tensor& first : rec.first) states.push_back(t::select(first, 0, d));
    std::vector<Tensor> by_step(static_cast<size_t>(rec.steps));
    for (int64_t i = 0; i < rec.steps; ++i) {
      const int64_t step = is_backward ? rec.steps - 1 - i : i;
      std::vector<Tensor> next = cell(weights, d, t::select(weights.input_part, 0, step), states);
      Tensor output = next[0];
      if (rec.lengths) {
        // Past a sequence's end the states stand still and the output is 0. Walking backwards, the padding comes
        // first and leaves the initial states untouched.
        const Tensor is_inside = t::greater(*rec.lengths, step);
        for (size_t s = 0; s < state_count; ++s) next[s] = t::where(is_inside, next[s], states[s]);
        output = t::where(is_inside, output, 0.0);
      }
      by_step[static_cast<size_t>(step)] = output;
      states = std::move(next);
    }
    outputs_of_direction.push_back(
        by_step.empty() ? Tensor::zeros(rec.x.graph(), {0, rec.batch, rec.hidden}, rec.x.dtype())
                        : t::stack(by_step, 0));
    for (size_t s = 0; s < state_count; ++s) last_states[s].push_back(states[s]);
  }
  // Y is [steps, directions, batch, hidden], or [batch, steps, directions, hidden].
  Tensor y = t::stack(outputs_of_direction, 1);
  if (rec.is_batch_first) y = t::permute(y, {2, 0, 1, 3});
  std::vector<Tensor> outputs{y};
  for (const std::vector<Tensor>& states : last_states) {
    outputs.push_back(t::stack(states, rec.is_batch_first ? 1 : 0));
  }
  return outputs;
}

Tensor plus(const Tensor& x, const std::optional<Tensor>& bias) { return bias ? x + *bias : x; }

OpOutputs rnn(const OpContext& ctx) {
  IGNIS_TRY_ASSIGN(const Recurrence rec, read_recurrence(ctx, 1, {5}, {"Tanh"}));
  return unroll(rec,
                [](const Weights& w, int64_t, const Tensor& x, const std::vector<Tensor>& states) {
                  const Tensor sum = plus(x + w.recurrent(states[0], 0, 1), w.r_bias);
                  return std::vector<Tensor>{w.activate(0, sum)};
                });
}

OpOutputs gru(const OpContext& ctx) {
  IGNIS_TRY_ASSIGN(const Recurrence rec, read_recurrence(ctx, 3, {5}, {"Sigmoid", "Tanh"}));
  const bool is_linear_first = ctx.attr_int("linear_before_reset", 0) != 0;
  // Gate order: update z, reset r, hidden h.
  return unroll(rec, [is_linear_first](const Weights& w, int64_t, const Tensor& x,
                                       const std::vector<Tensor>& states) {
    const Tensor& h = states[0];
    const Tensor zr =
        t::slice(x, -1, 0, 2 * w.hidden) + plus(w.recurrent(h, 0, 2), w.r_bias_of(0, 2));
    const Tensor both = w.activate(0, zr);
    const Tensor z = w.gate(both, 0), reset = w.gate(both, 1);
    const Tensor hidden_part = is_linear_first
                                   ? reset * plus(w.recurrent(h, 2, 3), w.r_bias_of(2, 3))
                                   : plus(w.recurrent(reset * h, 2, 3), w.r_bias_of(2, 3));
    const Tensor candidate = w.activate(1, w.gate(x, 2) + hidden_part);
    return std::vector<Tensor>{(1.0 - z) * candidate + z * h};
  });
}

OpOutputs lstm(const OpContext& ctx) {
  IGNIS_TRY_ASSIGN(const Recurrence rec,
                   read_recurrence(ctx, 4, {5, 6}, {"Sigmoid", "Tanh", "Tanh"}));
  const bool is_coupled = ctx.attr_int("input_forget", 0) != 0;
  std::optional<Tensor> peepholes;
  if (ctx.has_input(7)) {
    peepholes = ctx.input(7);
    const Shape shape{rec.directions, 3 * rec.hidden};
    if (peepholes->shape() != shape) {
      return ctx.error("P " + peepholes->describe() + " does not have " + to_string(shape) + ".");
    }
  }
  // Gate order in W, R and B: input, output, forget, cell; in P: input, output, forget.
  return unroll(
      rec, [&](const Weights& w, int64_t d, const Tensor& x, const std::vector<Tensor>& states) {
        const Tensor& h = states[0];
        const Tensor& c = states[1];
        const Tensor sum = plus(x + w.recurrent(h, 0, 4), w.r_bias);
        const auto with_peephole = [&](int64_t gate, const Tensor& cell) {
          const Tensor part = w.gate(sum, gate);
          return peepholes ? part + w.gate(t::select(*peepholes, 0, d), gate) * cell : part;
        };
        const Tensor input = w.activate(0, with_peephole(0, c));
        const Tensor forget = is_coupled ? 1.0 - input : w.activate(0, with_peephole(2, c));
        const Tensor candidate = w.activate(1, w.gate(sum, 3));
        const Tensor next_c = forget * c + input * candidate;
        const Tensor output = w.activate(0, with_peephole(1, next_c));
        // The cell state passes its activation unclipped: the clip bounds gate inputs only.
        return std::vector<Tensor>{output * w.activations[2](next_c), next_c};
      });
}

// clang-format off
constexpr OpEntry kOps[] = {
    {"", "RNN",  7, 3, 6, rnn},
    {"", "GRU",  7, 3, 6, gru},
    {"", "LSTM", 7, 3, 8, lstm},
};
// clang-format on

}  // namespace

std::span<const OpEntry> rnn_ops() { return kOps; }

}  // namespace ignis::onnx
