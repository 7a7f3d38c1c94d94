#include "ignis/onnx/graph_importer.h"
#include "ignis/onnx/ops_common.h"

#include <algorithm>
#include <optional>
#include <string>

// Control flow is decided at import: a taken branch is inlined, a loop is unrolled. What depends on the values of model
// inputs is refused by name, except an If whose two branches can both be computed.
namespace ignis::onnx {
namespace {

Result<const GraphProto*> body_of(const NodeProto& node, const Environment& env,
                                  std::string_view name) {
  const AttributeProto* a = find_attribute(node, env.attributes, name);
  if (a == nullptr || a->graph == nullptr) {
    return Error(ErrorCode::InvalidArgument,
                 "Graph attribute '" + std::string(name) + "' is missing.");
  }
  return a->graph.get();
}

/// A condition: one element, stored as bool.
Result<bool> fold_condition(ImportState& state, const Tensor& condition, const std::string& what) {
  IGNIS_TRY_ASSIGN(const HostTensor value, state.fold(condition.node(), what));
  if (value.count() != 1) {
    return Error(ErrorCode::InvalidArgument,
                 "The " + what + " has shape " + to_string(value.shape) + ".");
  }
  return element_as_double(value, 0) != 0;
}

std::vector<int64_t> ints_attribute(const NodeProto& node, const Environment& env,
                                    std::string_view name, size_t count) {
  const AttributeProto* a = find_attribute(node, env.attributes, name);
  if (a == nullptr || a->type != AttributeType::Ints) return std::vector<int64_t>(count, 0);
  return a->ints;
}

/// tensor::stack for any number of parts.
Tensor stack_all(std::vector<Tensor> parts, int64_t axis) {
  const int64_t position = tensor::normalize_axis("stack", axis, parts[0].rank() + 1);
  for (Tensor& part : parts) part = tensor::unsqueeze(part, {position});
  return concat_all(std::move(parts), position);
}

/// The value a scan output has when no iteration ran: its declared shape with 0 in front.
Result<Tensor> empty_scan_output(const ImportState& state, const ValueInfoProto& declared) {
  const std::optional<DType> dtype = dtype_of(declared.type.element_type);
  Shape shape{0};
  for (const DimProto& dim : declared.type.dims) shape.push_back(dim.value);
  const bool is_known = dtype.has_value() && declared.type.has_shape &&
                        std::all_of(shape.begin(), shape.end(), [](int64_t d) { return d >= 0; }) &&
                        checked_element_count({shape.begin() + 1, shape.end()}).has_value();
  if (!is_known) {
    return Error(ErrorCode::Unsupported,
                 "Scan output '" + std::string(declared.name) +
                     "' of a loop without iterations has no declared shape.");
  }
  return Tensor::constant(state.graph(), HostTensor::zeros(*dtype, shape));
}

}  // namespace

Result<std::vector<Tensor>> GraphImporter::run_body(const GraphProto& body,
                                                    const std::vector<Tensor>& inputs,
                                                    const Scope& scope, const Environment& env,
                                                    int64_t iteration) {
  IGNIS_TRY(state_.count_work());
  Scope inner(&scope);
  for (size_t i = 0; i < inputs.size() && i < body.inputs.size(); ++i)
    inner.bind(body.inputs[i].name, inputs[i]);
  Environment inner_env = env;
  if (iteration >= 0) inner_env.prefix += "#" + std::to_string(iteration) + "/";
  return run(body, inner, inner_env);
}

Result<std::vector<Tensor>> GraphImporter::run_if(const NodeProto& node, const Values& inputs,
                                                  const Scope& scope, const Environment& env) {
  if (inputs.size() != 1) return Error(ErrorCode::InvalidArgument, "An If has one input.");
  const Tensor& condition = *inputs[0];
  if (condition.count() != 1) {
    return Error(ErrorCode::InvalidArgument,
                 "The condition is " + condition.describe() + ", not one element.");
  }
  IGNIS_TRY_ASSIGN(const GraphProto* then_branch, body_of(node, env, "then_branch"));
  IGNIS_TRY_ASSIGN(const GraphProto* else_branch, body_of(node, env, "else_branch"));
  if (!state_.depends_on_input(condition.node())) {
    IGNIS_TRY_ASSIGN(const bool is_true, fold_condition(state_, condition, "condition of the If"));
    return run_body(is_true ? *then_branch : *else_branch, {}, scope, env, -1);
  }
  // Neither branch has effects, so both may be computed and one chosen, when they have the same form.
  IGNIS_TRY_ASSIGN(const std::vector<Tensor> then_values,
                   run_body(*then_branch, {}, scope, env, -1));
  IGNIS_TRY_ASSIGN(const std::vector<Tensor> else_values,
                   run_body(*else_branch, {}, scope, env, -1));
  const Tensor flag = tensor::cast(tensor::reshape(condition, {}), DType::Bool);
  std::vector<Tensor> chosen;
  for (size_t i = 0; i < then_values.size() && i < else_values.size(); ++i) {
    const Tensor &a = then_values[i], &b = else_values[i];
    if (a.shape() != b.shape() || a.dtype() != b.dtype()) {
      return Error(ErrorCode::Unsupported,
                   "The condition depends on the values of a model input and the branches give " +
                       a.describe() + " and " + b.describe() + ".",
                   "DataDependent");
    }
    chosen.push_back(tensor::where(flag, a, b));
  }
  return chosen;
}

Result<std::vector<Tensor>> GraphImporter::run_loop(const NodeProto& node, const Values& inputs,
                                                    const Scope& scope, const Environment& env) {
  IGNIS_TRY_ASSIGN(const GraphProto* body, body_of(node, env, "body"));
  const auto refuse_open = [](Error cause) {
    return Error(ErrorCode::Unsupported,
                 "The number of iterations depends on values that are not known at import. " +
                     cause.message(),
                 "DataDependent");
  };
  std::optional<int64_t> trips;
  if (!inputs.empty() && inputs[0].has_value()) {
    Result<HostTensor> value = state_.fold(inputs[0]->node(), "trip count of the Loop");
    if (!value) return refuse_open(std::move(value).error());
    if (value->count() != 1 || !is_int(value->dtype)) {
      return Error(ErrorCode::InvalidArgument, "The trip count is " + inputs[0]->describe() + ".");
    }
    trips = element_as_int(*value, 0);
  }
  Tensor condition = inputs.size() > 1 && inputs[1].has_value()
                         ? *inputs[1]
                         : Tensor::full_int(state_.graph(), {}, 1, DType::Bool);
  std::vector<Tensor> carried;
  for (size_t i = 2; i < inputs.size(); ++i) {
    if (!inputs[i].has_value())
      return Error(ErrorCode::InvalidArgument, "A loop-carried input is absent.");
    carried.push_back(*inputs[i]);
  }
  const size_t carried_count = carried.size();
  if (body->inputs.size() != carried_count + 2 || body->outputs.size() < carried_count + 1) {
    return Error(ErrorCode::InvalidArgument,
                 "The body has " + std::to_string(body->inputs.size()) + " inputs and " +
                     std::to_string(body->outputs.size()) + " outputs for " +
                     std::to_string(carried_count) + " carried values.");
  }
  const size_t scan_count = body->outputs.size() - carried_count - 1;
  std::vector<std::vector<Tensor>> scanned(scan_count);
  for (int64_t i = 0; !trips.has_value() || i < *trips; ++i) {
    Result<bool> goes_on = fold_condition(state_, condition, "condition of the Loop");
    if (!goes_on) return refuse_open(std::move(goes_on).error());
    if (!*goes_on) break;
    std::vector<Tensor> given{Tensor::full_int(state_.graph(), {}, i, DType::Int64), condition};
    given.insert(given.end(), carried.begin(), carried.end());
    IGNIS_TRY_ASSIGN(const std::vector<Tensor> made, run_body(*body, given, scope, env, i));
    condition = made[0];
    carried.assign(made.begin() + 1, made.begin() + 1 + static_cast<std::ptrdiff_t>(carried_count));
    for (size_t k = 0; k < scan_count; ++k) scanned[k].push_back(made[1 + carried_count + k]);
  }
  std::vector<Tensor> outputs = carried;
  for (size_t k = 0; k < scan_count; ++k) {
    if (scanned[k].empty()) {
      IGNIS_TRY_ASSIGN(Tensor empty,
                       empty_scan_output(state_, body->outputs[1 + carried_count + k]));
      outputs.push_back(std::move(empty));
    } else {
      outputs.push_back(stack_all(scanned[k], 0));
    }
  }
  return outputs;
}

Result<std::vector<Tensor>> GraphImporter::run_scan(const NodeProto& node, const Values& inputs,
                                                    const Scope& scope, const Environment& env) {
  IGNIS_TRY_ASSIGN(const GraphProto* body, body_of(node, env, "body"));
  const AttributeProto* number = find_attribute(node, env.attributes, "num_scan_inputs");
  const int64_t scan_inputs = number == nullptr ? 0 : number->i;
  const int64_t state_count = static_cast<int64_t>(inputs.size()) - scan_inputs;
  const int64_t scan_outputs = static_cast<int64_t>(body->outputs.size()) - state_count;
  if (scan_inputs < 1 || state_count < 0 || scan_outputs < 0 ||
      body->inputs.size() != inputs.size()) {
    return Error(ErrorCode::InvalidArgument,
                 "The Scan has " + std::to_string(inputs.size()) + " inputs, " +
                     std::to_string(scan_inputs) + " of them scanned; its body has " +
                     std::to_string(body->inputs.size()) + " inputs and " +
                     std::to_string(body->outputs.size()) + " outputs.");
  }
  const size_t in_count = static_cast<size_t>(scan_inputs),
               out_count = static_cast<size_t>(scan_outputs);
  const std::vector<int64_t> in_axes = ints_attribute(node, env, "scan_input_axes", in_count);
  const std::vector<int64_t> in_directions =
      ints_attribute(node, env, "scan_input_directions", in_count);
  const std::vector<int64_t> out_axes = ints_attribute(node, env, "scan_output_axes", out_count);
  const std::vector<int64_t> out_directions =
      ints_attribute(node, env, "scan_output_directions", out_count);
  if (in_axes.size() != in_count || in_directions.size() != in_count ||
      out_axes.size() != out_count || out_directions.size() != out_count) {
    return Error(ErrorCode::InvalidArgument, "An axes or directions attribute has a wrong length.");
  }
  std::vector<Tensor> carried, scanned_inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].has_value()) return Error(ErrorCode::InvalidArgument, "An input is absent.");
    (static_cast<int64_t>(i) < state_count ? carried : scanned_inputs).push_back(*inputs[i]);
  }
  int64_t length = -1;
  for (size_t k = 0; k < in_count; ++k) {
    const Tensor& x = scanned_inputs[k];
    const int64_t extent = x.dim(tensor::normalize_axis("Scan", in_axes[k], x.rank()));
    if (length >= 0 && extent != length) {
      return Error(ErrorCode::InvalidArgument, "The scanned inputs have " + std::to_string(length) +
                                                   " and " + std::to_string(extent) + " steps.");
    }
    length = extent;
  }
  std::vector<std::vector<Tensor>> made_outputs(out_count);
  for (int64_t step = 0; step < length; ++step) {
    std::vector<Tensor> given = carried;
    for (size_t k = 0; k < in_count; ++k) {
      given.push_back(tensor::select(scanned_inputs[k], in_axes[k],
                                     in_directions[k] == 1 ? length - 1 - step : step));
    }
    IGNIS_TRY_ASSIGN(const std::vector<Tensor> made, run_body(*body, given, scope, env, step));
    carried.assign(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(state_count));
    for (size_t k = 0; k < out_count; ++k)
      made_outputs[k].push_back(made[static_cast<size_t>(state_count) + k]);
  }
  std::vector<Tensor> outputs = carried;
  for (size_t k = 0; k < out_count; ++k) {
    std::vector<Tensor>& parts = made_outputs[k];
    if (parts.empty()) {
      IGNIS_TRY_ASSIGN(
          Tensor empty,
          empty_scan_output(state_, body->outputs[static_cast<size_t>(state_count) + k]));
      outputs.push_back(std::move(empty));
      continue;
    }
    if (out_directions[k] == 1) std::reverse(parts.begin(), parts.end());
    outputs.push_back(stack_all(parts, out_axes[k]));
  }
  return outputs;
}

/// Scan of operator set 8: everything has a leading batch axis, the sequence is axis 1, and the first input gives
/// lengths that may differ.
Result<std::vector<Tensor>> GraphImporter::run_scan_batch(const NodeProto& node,
                                                          const Values& inputs, const Scope& scope,
                                                          const Environment& env) {
  if (inputs.size() < 2 || !inputs[1].has_value() || inputs[1]->rank() < 1) {
    return Error(ErrorCode::InvalidArgument, "The Scan has no batched inputs.");
  }
  if (inputs[0].has_value() || find_attribute(node, env.attributes, "directions") != nullptr) {
    return Error(ErrorCode::Unsupported,
                 "Scan of operator set 8 with sequence lengths or directions is not supported.");
  }
  std::vector<std::vector<Tensor>> per_output;
  const int64_t batch = inputs[1]->dim(0);
  for (int64_t b = 0; b < batch; ++b) {
    Values one;
    for (size_t i = 1; i < inputs.size(); ++i) {
      if (!inputs[i].has_value()) return Error(ErrorCode::InvalidArgument, "An input is absent.");
      one.emplace_back(tensor::select(*inputs[i], 0, b));
    }
    IGNIS_TRY_ASSIGN(const std::vector<Tensor> made, run_scan(node, one, scope, env));
    per_output.resize(made.size());
    for (size_t k = 0; k < made.size(); ++k) per_output[k].push_back(made[k]);
  }
  std::vector<Tensor> outputs;
  for (const std::vector<Tensor>& parts : per_output) outputs.push_back(stack_all(parts, 0));
  return outputs;
}

}  // namespace ignis::onnx
