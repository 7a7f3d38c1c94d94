#pragma once

#include "ignis/base/result.h"
#include "ignis/onnx/model.h"

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ignis::onnx {

/// The order in which the nodes of one graph are translated.
struct GraphPlan {
  std::vector<const NodeProto*> nodes;     ///< live ones, producers first, else in the file's order
  std::vector<std::string_view> captured;  ///< names of outer graphs that live or dead nodes read
};

/// Makes each graph's plan once, however often a loop or a function runs it.
class PlanCache {
 public:
  /// Errors: InvalidArgument for a name made twice (DuplicateName) or a cycle (Cycle), naming the nodes.
  Result<const GraphPlan*> plan(const GraphProto& graph);
  Result<const GraphPlan*> plan(const FunctionProto& function);

 private:
  struct View {
    const std::vector<NodeProto>& nodes;
    std::vector<std::string_view> given;  // inputs and initialisers
    std::vector<std::string_view> outputs;
  };
  Result<const GraphPlan*> plan(const void* key, const View& view);
  Result<GraphPlan> make_plan(const View& view);

  std::unordered_map<const void*, std::unique_ptr<GraphPlan>> plans_;
};

}  // namespace ignis::onnx
