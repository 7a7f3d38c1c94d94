#include "ignis/onnx/graph_importer.h"

#include <new>
#include <stdexcept>
#include <utility>

namespace ignis::onnx {
namespace {

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

std::string_view plain_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

}  // namespace

int64_t Environment::opset(std::string_view domain) const {
  const auto found = opsets.find(plain_domain(domain));
  if (found != opsets.end()) return found->second;
  // Files of before IR version 3 name no operator set and mean the first.
  return plain_domain(domain).empty() ? 1 : 0;
}

Environment make_environment(const std::vector<OpsetId>& opsets) {
  Environment env;
  for (const OpsetId& id : opsets) {
    int64_t& version = env.opsets[plain_domain(id.domain)];
    version = std::max(version, id.version);
  }
  return env;
}

Environment make_environment(const ModelProto& model, const FunctionProto& function) {
  Environment env = make_environment(function.opsets);
  env.opsets.merge(make_environment(model.opsets).opsets);
  return env;
}

bool is_control_op(std::string_view domain, std::string_view name, int64_t opset) {
  if (!plain_domain(domain).empty()) return false;
  return name == "If" || name == "Loop" || (name == "Scan" && opset >= 8);
}

FunctionIndex::FunctionIndex(const ModelProto& model) {
  for (const FunctionProto& f : model.functions)
    by_name_.emplace(std::pair(plain_domain(f.domain), f.name), &f);
}

const FunctionProto* FunctionIndex::find(const NodeProto& node) const {
  const auto found = by_name_.find({plain_domain(node.domain), node.op_type});
  return found == by_name_.end() ? nullptr : found->second;
}

std::string describe(const NodeProto& node) {
  std::string text = "node " + (node.name.empty() && !node.outputs.empty()
                                    ? "that makes " + quoted(node.outputs[0])
                                    : quoted(node.name));
  return text + " (" + std::string(node.op_type) + ")";
}

GraphImporter::GraphImporter(ImportState& state, const ModelProto& model,
                             std::vector<Layer>& layers)
    : state_(state), model_(model), functions_(model), layers_(layers) {}

Result<Tensor> GraphImporter::read_output(std::string_view name, const Scope& scope) const {
  const Tensor* value = scope.find(name);
  if (value == nullptr && scope.find_sequence(name) != nullptr) {
    return Error(ErrorCode::Unsupported, "Output " + quoted(name) + " is a sequence.",
                 "MissingOperators");
  }
  if (value == nullptr) {
    return Error(ErrorCode::InvalidArgument, "Output " + quoted(name) + " is made by no node.",
                 "MissingName");
  }
  return *value;
}

Result<std::vector<Tensor>> GraphImporter::run(const GraphProto& graph, Scope& scope,
                                               const Environment& env) {
  IGNIS_TRY_ASSIGN(const GraphPlan* plan, plans_.plan(graph));
  for (const std::string_view name : plan->captured) {
    if (scope.find(name) == nullptr && scope.find_sequence(name) == nullptr) {
      return Error(ErrorCode::InvalidArgument,
                   "The value " + quoted(name) + " is read but nothing makes it.", "MissingName");
    }
  }
  for (const TensorProto& tensor : graph.initializers) {
    if (scope.binds(tensor.name)) continue;
    IGNIS_TRY_ASSIGN(Tensor value, state_.constant(tensor));
    scope.bind(tensor.name, std::move(value));
  }
  for (const SparseTensorProto& tensor : graph.sparse_initializers) {
    if (scope.binds(tensor.values.name)) continue;
    IGNIS_TRY_ASSIGN(Tensor value, state_.constant(tensor));
    scope.bind(tensor.values.name, std::move(value));
  }
  IGNIS_TRY(run_nodes(*plan, scope, env));
  std::vector<Tensor> outputs;
  for (const ValueInfoProto& output : graph.outputs) {
    IGNIS_TRY_ASSIGN(Tensor value, read_output(output.name, scope));
    outputs.push_back(std::move(value));
  }
  return outputs;
}

Status GraphImporter::run_nodes(const GraphPlan& plan, Scope& scope, const Environment& env) {
  for (const NodeProto* node : plan.nodes) {
    Status status = run_node(*node, scope, env);
    if (!status) return std::move(status).error().with_context(describe(*node));
  }
  return Status::ok();
}

Status GraphImporter::run_node(const NodeProto& node, Scope& scope, const Environment& env) {
  IGNIS_TRY(state_.count_work());
  const bool is_sequence = is_sequence_op(node.domain, node.op_type, env.opset(node.domain));
  Values inputs;
  for (const std::string_view name : node.inputs) {
    const Tensor* value = name.empty() ? nullptr : scope.find(name);
    if (value == nullptr && !name.empty() && scope.find_sequence(name) != nullptr) {
      if (is_sequence) {
        inputs.emplace_back();
        continue;
      }
      return Error(
          ErrorCode::Unsupported,
          "Input " + quoted(name) + " is a sequence, which the operator does not take here.",
          "MissingOperators");
    }
    if (value == nullptr && !name.empty()) {
      return Error(ErrorCode::InvalidArgument,
                   "The value " + quoted(name) + " is read but nothing makes it.", "MissingName");
    }
    inputs.push_back(value == nullptr ? std::optional<Tensor>() : *value);
  }
  while (!inputs.empty() && !inputs.back().has_value()) inputs.pop_back();
  // The one place where errors of tensor expressions become errors of the import.
  try {
    if (is_sequence) return run_sequence_op(node, inputs, scope, env);
    IGNIS_TRY_ASSIGN(std::vector<Tensor> outputs, translate(node, inputs, scope, env));
    return bind_outputs(node, std::move(outputs), scope, env);
  } catch (const tensor::GraphError& e) {
    return e.error();
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::OutOfMemory, "There is not enough memory for the node's constants.");
  } catch (const std::length_error&) {
    return Error(ErrorCode::InvalidArgument, "The node asks for a list beyond any memory.",
                 "LimitExceeded");
  }
}

Result<std::vector<Tensor>> GraphImporter::translate(const NodeProto& node, const Values& inputs,
                                                     const Scope& scope, const Environment& env) {
  const int64_t opset = env.opset(node.domain);
  if (is_control_op(node.domain, node.op_type, opset)) {
    if (node.op_type == "If") return run_if(node, inputs, scope, env);
    if (node.op_type == "Loop") return run_loop(node, inputs, scope, env);
    return opset < 9 ? run_scan_batch(node, inputs, scope, env)
                     : run_scan(node, inputs, scope, env);
  }
  if (find_op(node.domain, node.op_type, opset) != nullptr) return call_operator(node, inputs, env);
  if (const FunctionProto* function = functions_.find(node))
    return call_function(*function, node, inputs, env);
  return Error(ErrorCode::Unsupported, "Operator " + quoted(node.op_type) + " is not supported.",
               "MissingOperators");
}

Result<std::vector<Tensor>> GraphImporter::call_operator(const NodeProto& node,
                                                         const Values& inputs,
                                                         const Environment& env) {
  const int64_t opset = env.opset(node.domain);
  const OpEntry& entry = *find_op(node.domain, node.op_type, opset);
  const int count = static_cast<int>(inputs.size());
  if (count < entry.min_inputs || (entry.max_inputs >= 0 && count > entry.max_inputs)) {
    return Error(ErrorCode::InvalidArgument,
                 "The operator takes " + std::to_string(entry.min_inputs) + " to " +
                     (entry.max_inputs < 0 ? "any number of" : std::to_string(entry.max_inputs)) +
                     " inputs; the node has " + std::to_string(count) + ".");
  }
  for (int i = 0; i < entry.min_inputs; ++i) {
    if (!inputs[static_cast<size_t>(i)].has_value()) {
      return Error(ErrorCode::InvalidArgument, "Input " + std::to_string(i) + " is absent.");
    }
  }
  return entry.handler(OpContext(state_, node, opset, env.attributes, inputs));
}

Result<std::vector<Tensor>> GraphImporter::call_function(const FunctionProto& function,
                                                         const NodeProto& node,
                                                         const Values& inputs,
                                                         const Environment& env) {
  if (env.depth >= state_.limits().max_graph_depth) {
    return Error(ErrorCode::InvalidArgument,
                 "Functions call each other deeper than " +
                     std::to_string(state_.limits().max_graph_depth) + ".",
                 "LimitExceeded");
  }
  if (inputs.size() > function.inputs.size()) {
    return Error(ErrorCode::InvalidArgument,
                 "The function takes " + std::to_string(function.inputs.size()) +
                     " inputs; the node has " + std::to_string(inputs.size()) + ".");
  }
  Environment inner = make_environment(model_, function);
  inner.depth = env.depth + 1;
  inner.prefix = env.prefix + std::string(node.name) + "/";
  for (const AttributeProto& a : function.attribute_defaults) inner.attributes.emplace(a.name, &a);
  for (const AttributeProto& a : node.attributes) {
    if (const AttributeProto* given = find_attribute(node, env.attributes, a.name)) {
      inner.attributes.insert_or_assign(a.name, given);
    }
  }

  Scope scope;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].has_value()) scope.bind(function.inputs[i], *inputs[i]);
  }
  IGNIS_TRY_ASSIGN(const GraphPlan* plan, plans_.plan(function));
  IGNIS_TRY(run_nodes(*plan, scope, inner));
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < function.outputs.size() && i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) {
      outputs.emplace_back();
      continue;
    }
    IGNIS_TRY_ASSIGN(Tensor value, read_output(function.outputs[i], scope));
    outputs.push_back(std::move(value));
  }
  return outputs;
}

Status GraphImporter::bind_outputs(const NodeProto& node, std::vector<Tensor> outputs, Scope& scope,
                                   const Environment& env) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string_view name = node.outputs[i];
    if (name.empty()) continue;
    if (i >= outputs.size() || !outputs[i]) {
      return Error(ErrorCode::Unsupported,
                   "Output " + std::to_string(i) + " " + quoted(name) + " is not supported.",
                   "MissingOperators");
    }
    if (outputs[i].rank() > state_.limits().max_rank ||
        outputs[i].count() > state_.limits().max_elements) {
      return Error(ErrorCode::InvalidArgument,
                   "Value " + quoted(name) + " has shape " + to_string(outputs[i].shape()) +
                       ", over the limits.",
                   "LimitExceeded");
    }
    const Tensor value = state_.fold_small(outputs[i]).named(std::string(name));
    if (state_.depends_on_input(value.node())) {
      layers_.push_back({env.prefix + std::string(node.name.empty() ? name : node.name),
                         std::string(node.op_type), std::string(name), value.node()});
    }
    scope.bind(name, value);
  }
  return Status::ok();
}

}  // namespace ignis::onnx
