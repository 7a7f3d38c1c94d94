#include "ignis/engine/session_graph.h"

#include "ignis/interp/interp.h"

#include <unordered_map>

namespace ignis::engine {
namespace {

std::function<NodeName(const ir::Node&)> layer_names(const onnx::Model& model) {
  std::unordered_map<ir::Node, NodeName> names;
  for (const onnx::Layer& layer : model.layers) {
    const NodeName name = {layer.op, layer.name.empty() ? layer.output : layer.name};
    names.emplace(layer.value, name);
    // Kernels know what they compute, not how it is reshaped on the way: a convolution ends in a reduction.
    ir::Node computed = layer.value;
    while (computed.source_count() == 1 &&
           (ir::is_movement(computed.op()) || computed.is(ir::Op::Cast))) {
      computed = computed.src(0);
    }
    names.emplace(computed, name);
  }
  return [names = std::move(names)](const ir::Node& node) {
    const auto at = names.find(node);
    return at == names.end() ? NodeName() : at->second;
  };
}

}  // namespace

Result<onnx::Model> import_for_session(const std::string& path, const SessionOptions& options) {
  onnx::ImportOptions import_options;
  import_options.dims = options.dims;
  import_options.shapes = options.shapes;
  import_options.constants = options.constants;
  import_options.evaluate = [](const ir::Node& node) -> Result<HostTensor> {
    IGNIS_TRY_ASSIGN(std::vector<HostTensor> values, interp::evaluate({&node, 1}, {}));
    return std::move(values.front());
  };
  return onnx::import_model(path, import_options);
}

GraphOptions graph_options_of(const SessionOptions& options, const onnx::Model& model) {
  GraphOptions made;
  made.graph = model.graph;
  made.float_level = options.float_level;
  made.winograd = options.winograd;
  made.chain = options.chain;
  made.timeout = options.timeout;
  made.progress = options.progress;
  made.name_node = layer_names(model);
  made.program_cache = options.program_cache;
  made.tuning = options.tuning;
  return made;
}

}  // namespace ignis::engine
