#pragma once

#include "ignis/onnx/graph_plan.h"
#include "ignis/onnx/import_state.h"
#include "ignis/onnx/model.h"
#include "ignis/onnx/ops.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ignis::onnx {

/// A value that is a list of tensors.
using Sequence = std::vector<Tensor>;

/// What the names of one graph stand for; a nested graph also sees its outer ones. A scope of an unrolled loop lives
/// for one iteration.
class Scope {
 public:
  explicit Scope(const Scope* outer = nullptr) : outer_(outer) {}
  void bind(std::string_view name, Tensor value) {
    values_.insert_or_assign(name, std::move(value));
  }
  void bind_sequence(std::string_view name, Sequence value) {
    sequences_.insert_or_assign(name, std::move(value));
  }
  /// Bound in this scope itself, not in an outer one.
  bool binds(std::string_view name) const { return values_.contains(name); }
  const Tensor* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
      if (const auto it = scope->values_.find(name); it != scope->values_.end()) return &it->second;
    }
    return nullptr;
  }

  const Sequence* find_sequence(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
      const auto it = scope->sequences_.find(name);
      if (it != scope->sequences_.end()) return &it->second;
    }
    return nullptr;
  }

 private:
  const Scope* outer_;
  std::unordered_map<std::string_view, Tensor> values_;
  std::unordered_map<std::string_view, Sequence> sequences_;
};

/// Operator-set versions, and inside a function the caller's attributes.
struct Environment {
  std::map<std::string_view, int64_t> opsets;
  AttributeMap attributes;
  std::string prefix;  ///< of layer names: the function calls and iterations around
  int depth = 0;       ///< of function calls

  /// The version of a domain, or 0 when the model imports none (1 for the default domain).
  int64_t opset(std::string_view domain) const;
};
Environment make_environment(const std::vector<OpsetId>& opsets);
/// Inside a function: its own operator sets, and the model's where it names none.
Environment make_environment(const ModelProto& model, const FunctionProto& function);

/// The model's own functions by domain and name.
class FunctionIndex {
 public:
  explicit FunctionIndex(const ModelProto& model);
  /// The function a node calls, or null.
  const FunctionProto* find(const NodeProto& node) const;

 private:
  std::map<std::pair<std::string_view, std::string_view>, const FunctionProto*> by_name_;
};

using Values = std::vector<std::optional<Tensor>>;

/// Walks graphs in topological order and translates each node that an output needs.
class GraphImporter {
 public:
  GraphImporter(ImportState& state, const ModelProto& model, std::vector<Layer>& layers);

  /// Translates the nodes of a graph whose inputs are bound in `scope`, and returns its outputs. Its initialisers are
  /// bound first unless the name is bound already.
  Result<std::vector<Tensor>> run(const GraphProto& graph, Scope& scope, const Environment& env);

 private:
  Status run_nodes(const GraphPlan& plan, Scope& scope, const Environment& env);
  Status run_node(const NodeProto& node, Scope& scope, const Environment& env);
  Result<std::vector<Tensor>> translate(const NodeProto& node, const Values& inputs,
                                        const Scope& scope, const Environment& env);
  Result<std::vector<Tensor>> call_function(const FunctionProto& function, const NodeProto& node,
                                            const Values& inputs, const Environment& env);
  Result<std::vector<Tensor>> call_operator(const NodeProto& node, const Values& inputs,
                                            const Environment& env);
  Status bind_outputs(const NodeProto& node, std::vector<Tensor> outputs, Scope& scope,
                      const Environment& env);
  Result<Tensor> read_output(std::string_view name, const Scope& scope) const;

  // sequence.cpp: lists of tensors.
  Status run_sequence_op(const NodeProto& node, const Values& inputs, Scope& scope,
                         const Environment& env);
  Status bind_sequence(const NodeProto& node, Sequence made, Scope& scope);

  // control.cpp: the operators that hold graphs.
  Result<std::vector<Tensor>> run_if(const NodeProto& node, const Values& inputs,
                                     const Scope& scope, const Environment& env);
  Result<std::vector<Tensor>> run_loop(const NodeProto& node, const Values& inputs,
                                       const Scope& scope, const Environment& env);
  Result<std::vector<Tensor>> run_scan(const NodeProto& node, const Values& inputs,
                                       const Scope& scope, const Environment& env);
  Result<std::vector<Tensor>> run_scan_batch(const NodeProto& node, const Values& inputs,
                                             const Scope& scope, const Environment& env);
  Result<std::vector<Tensor>> run_body(const GraphProto& body, const std::vector<Tensor>& inputs,
                                       const Scope& scope, const Environment& env,
                                       int64_t iteration);

  ImportState& state_;
  const ModelProto& model_;
  FunctionIndex functions_;
  std::vector<Layer>& layers_;
  PlanCache plans_;
  int64_t sequence_elements_ = 0;  // of all sequences made
};

/// True for the operators of the default domain that hold graphs and are translated here, not through the table.
bool is_control_op(std::string_view domain, std::string_view name, int64_t opset);
/// True for the operators that make or take sequences of tensors.
bool is_sequence_op(std::string_view domain, std::string_view name, int64_t opset);
/// "node 'conv1' (Conv)".
std::string describe(const NodeProto& node);

}  // namespace ignis::onnx
