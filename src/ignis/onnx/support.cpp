#include "ignis/onnx/support.h"

#include "ignis/onnx/graph_importer.h"
#include "ignis/onnx/ops.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace ignis::onnx {
namespace {

/// The newest operator set whose changes the tables know.
constexpr int64_t kNewestOpset = 22;

std::string full_name(const NodeProto& node) {
  if (node.domain.empty() || node.domain == "ai.onnx") return std::string(node.op_type);
  return std::string(node.domain) + "::" + std::string(node.op_type);
}

struct Survey {
  std::map<std::string, OpCount> ops;
  std::map<std::string, std::string> types;  // type -> the first place
};

/// Visits every node once: nested graphs, and the functions that are called.
class Surveyor {
 public:
  explicit Surveyor(const ModelProto& model) : model_(model), functions_(model) {}

  Survey run() {
    for (const ValueInfoProto& v : model_.graph.outputs) look_at_type(v, "output");
    visit_graph(model_.graph, make_environment(model_.opsets));
    // A list, not a recursion: a file may hold a long chain of functions.
    for (size_t i = 0; i < functions_seen_.size(); ++i) {
      visit_nodes(functions_seen_[i]->nodes, make_environment(model_, *functions_seen_[i]));
    }
    return std::move(survey_);
  }

 private:
  void add_type(int32_t element_type, const std::string& place) {
    if (!dtype_of(element_type))
      survey_.types.emplace(std::string(element_type_name(element_type)), place);
  }

  void look_at_type(const ValueInfoProto& value, const char* role) {
    const std::string place = std::string(role) + " '" + std::string(value.name) + "'";
    switch (value.type.kind) {
      case TypeProto::Kind::Tensor: add_type(value.type.element_type, place); break;
      case TypeProto::Kind::Sequence: survey_.types.emplace("sequence", place); break;
      case TypeProto::Kind::Map: survey_.types.emplace("map", place); break;
      case TypeProto::Kind::Optional: survey_.types.emplace("optional", place); break;
      case TypeProto::Kind::SparseTensor: survey_.types.emplace("sparse tensor", place); break;
      case TypeProto::Kind::Opaque: survey_.types.emplace("opaque", place); break;
      case TypeProto::Kind::None: break;
    }
  }

  void visit_graph(const GraphProto& graph, const Environment& env) {
    for (const ValueInfoProto& v : graph.inputs) look_at_type(v, "input");
    for (const TensorProto& t : graph.initializers) {
      add_type(t.data_type, "initialiser '" + std::string(t.name) + "'");
    }
    for (const SparseTensorProto& t : graph.sparse_initializers) {
      add_type(t.values.data_type, "initialiser '" + std::string(t.values.name) + "'");
    }
    visit_nodes(graph.nodes, env);
  }

  void visit_nodes(const std::vector<NodeProto>& nodes, const Environment& env) {
    for (const NodeProto& node : nodes) {
      const int64_t opset = env.opset(node.domain);
      const bool is_operator = is_control_op(node.domain, node.op_type, opset) ||
                               is_sequence_op(node.domain, node.op_type, opset) ||
                               find_op(node.domain, node.op_type, opset) != nullptr;
      const FunctionProto* function = is_operator ? nullptr : functions_.find(node);
      if (function != nullptr) {
        if (is_seen_.insert(function).second) functions_seen_.push_back(function);
      } else {
        OpCount& entry = survey_.ops[full_name(node)];
        entry.op = full_name(node);
        ++entry.count;
        entry.supported = entry.supported && is_operator;
      }
      for (const AttributeProto& a : node.attributes) {
        if (a.tensor != nullptr) add_type(a.tensor->data_type, describe(node));
        if (a.sparse != nullptr) add_type(a.sparse->values.data_type, describe(node));
        if (a.graph != nullptr) visit_graph(*a.graph, env);
      }
    }
  }

  const ModelProto& model_;
  FunctionIndex functions_;
  Survey survey_;
  std::set<const FunctionProto*> is_seen_;
  std::vector<const FunctionProto*> functions_seen_;  // in the order of their first call
};

void append(std::string& list, const std::string& item) {
  list += (list.empty() ? "" : ", ") + item;
}

}  // namespace

std::vector<OpCount> count_ops(const ModelProto& model) {
  std::vector<OpCount> counts;
  for (auto& [name, entry] : Surveyor(model).run().ops) counts.push_back(entry);
  std::stable_sort(counts.begin(), counts.end(),
                   [](const OpCount& a, const OpCount& b) { return a.count > b.count; });
  return counts;
}

Status check_support(const ModelProto& model) {
  const int64_t opset = make_environment(model.opsets).opset("");
  if (opset > kNewestOpset) {
    return Error(ErrorCode::Unsupported,
                 "The model uses operator set " + std::to_string(opset) +
                     "; the newest one supported is " + std::to_string(kNewestOpset) + ".",
                 "MissingOperators");
  }
  const Survey survey = Surveyor(model).run();
  std::string missing, types;
  for (const auto& [name, entry] : survey.ops) {
    if (!entry.supported) append(missing, name + " (" + std::to_string(entry.count) + ")");
  }
  for (const auto& [type, place] : survey.types) append(types, type + " (" + place + ")");
  if (missing.empty() && types.empty()) return Status::ok();
  std::string message = "The model needs what is not supported.";
  if (!missing.empty()) message += " Operators: " + missing + ".";
  if (!types.empty()) message += " Types: " + types + ".";
  return Error(ErrorCode::Unsupported, std::move(message), "MissingOperators");
}

}  // namespace ignis::onnx
