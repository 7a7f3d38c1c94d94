#include "ignis/engine/evaluate.h"

#include "ignis/engine/compile_graph.h"
#include "ignis/interp/interp.h"
#include "ignis/runtime/device.h"

namespace ignis {
namespace {

Status check_inputs(std::span<const tensor::Tensor> inputs, std::span<const HostTensor> values) {
  if (inputs.size() != values.size()) {
    return Error(ErrorCode::InvalidArgument,
                 std::to_string(values.size()) + " values are given for " +
                     std::to_string(inputs.size()) + " inputs.",
                 "WrongCount");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (values[i].dtype == inputs[i].dtype() && values[i].shape == inputs[i].shape()) continue;
    return Error(ErrorCode::InvalidArgument,
                 "Input " + inputs[i].describe() + " is given " +
                     std::string(to_string(values[i].dtype)) + " " + to_string(values[i].shape) +
                     ".",
                 "WrongShape");
  }
  return {};
}

// A Param that is not among the inputs has no value to read.
Status check_params(const std::vector<ir::Node>& outputs, const std::vector<ir::Node>& inputs) {
  for (const ir::Node& node : ir::toposort(outputs)) {
    if (!node.is(ir::Op::Param)) continue;
    if (std::find(inputs.begin(), inputs.end(), node) != inputs.end()) continue;
    return Error(ErrorCode::InvalidArgument,
                 "The tensor depends on input '" + ir::decode_param(node).name +
                     "', which is given no value.",
                 "MissingInput");
  }
  return {};
}

}  // namespace

Result<HostTensor> evaluate(const tensor::Tensor& value, const EvaluateOptions& options) {
  IGNIS_TRY_ASSIGN(std::vector<HostTensor> values, evaluate({&value, 1}, {}, {}, options));
  return std::move(values.front());
}

Result<std::vector<HostTensor>> evaluate(std::span<const tensor::Tensor> values,
                                         std::span<const tensor::Tensor> inputs,
                                         std::span<const HostTensor> input_values,
                                         const EvaluateOptions& options) {
  IGNIS_TRY(check_inputs(inputs, input_values));
  std::vector<ir::Node> input_nodes, output_nodes;
  for (const tensor::Tensor& input : inputs) input_nodes.push_back(input.node());
  // What is stored has a strong dtype.
  for (const tensor::Tensor& value : values) output_nodes.push_back(tensor::commit(value).node());
  IGNIS_TRY(check_params(output_nodes, input_nodes));
  runtime::DeviceOptions device_options;
  device_options.threads = options.threads;
  IGNIS_TRY_ASSIGN(const std::shared_ptr<runtime::Device> device,
                   runtime::open_device(options.device, device_options));
  if (device->target().renderer == "interp") return interp::evaluate(output_nodes, input_values);

  engine::GraphOptions graph_options;
  if (options.fold_constants && !values.empty()) graph_options.graph = values.front().graph();
  graph_options.float_level = options.float_level;
  graph_options.winograd = options.winograd;
  graph_options.choose_layouts = options.choose_layouts;
  graph_options.fuse = options.fuse;
  graph_options.chain = options.chain;
  graph_options.optimize = options.optimize;
  graph_options.timeout = options.timeout;
  graph_options.program_cache = options.program_cache;
  IGNIS_TRY_ASSIGN(engine::CompiledGraph compiled,
                   engine::compile_graph(input_nodes, output_nodes, device, graph_options));
  struct Kept {
    std::vector<HostTensor> inputs, outputs;
  };
  const auto kept = std::make_shared<Kept>();
  kept->inputs.assign(input_values.begin(), input_values.end());
  std::vector<std::span<const std::byte>> input_bytes;
  std::vector<std::span<std::byte>> output_bytes;
  for (const HostTensor& input : kept->inputs) input_bytes.emplace_back(input.bytes);
  for (const ir::Node& node : output_nodes) {
    kept->outputs.push_back(HostTensor::zeros(node.dtype(), node.shape()));
  }
  for (HostTensor& output : kept->outputs) output_bytes.emplace_back(output.bytes);
  Status status =
      compiled.executable.run(input_bytes, output_bytes, runtime::deadline_after(options.timeout));
  if (!status && !device->state()) runtime::abandon(kept);
  IGNIS_TRY(std::move(status));
  return std::move(kept->outputs);
}

}  // namespace ignis
