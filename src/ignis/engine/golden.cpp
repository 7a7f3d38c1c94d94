#include "ignis/engine/golden.h"

#include "ignis/interp/interp.h"
#include "ignis/onnx/import.h"

#include <algorithm>

namespace ignis::engine {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine.
uint64_t next_random(uint64_t& state) {
  state += 0x9E3779B97F4A7C15ull;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Floats in [0, 1), bytes of any value (pictures), other integers in [0, 10) (they may be indices).
HostTensor make_up(DType dtype, const Shape& shape, uint64_t& state) {
  HostTensor value = HostTensor::zeros(dtype, shape);
  const uint64_t bound = dtype == DType::UInt8 ? 256 : dtype == DType::Bool ? 2 : 10;
  for (int64_t i = 0; i < value.count(); ++i) {
    const uint64_t random = next_random(state);
    if (is_float(dtype)) store_element(value, i, static_cast<double>(random >> 11) * 0x1p-53);
    else store_element_int(value, i, static_cast<int64_t>(random % bound));
  }
  return value;
}

Error misfit(const std::string& what) {
  return Error(ErrorCode::InvalidArgument, what, "GoldenMisfit");
}

Status check_value(const char* what, const std::string& name, const ir::Node& node,
                   const HostTensor& value) {
  if (value.dtype == strong(node.dtype()) && value.shape == node.shape()) return {};
  return misfit(std::string("The golden ") + what + " '" + name + "' is " +
                std::string(to_string(value.dtype)) + " " + to_string(value.shape) +
                "; the model has " + std::string(to_string(strong(node.dtype()))) + " " +
                to_string(node.shape()) + ".");
}

Status check_names(const char* what, const std::map<std::string, HostTensor>& given,
                   const std::vector<std::string>& names) {
  for (const auto& [name, value] : given) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return misfit(std::string("The model has no ") + what + " '" + name +
                    "' to give a golden value for.");
    }
  }
  return {};
}

// A value is as exact as the narrowest dtype it went through.
Tolerance narrowest_tolerance(std::span<const ir::Node> roots, DType dtype) {
  Tolerance widest = default_tolerance(dtype);
  if (!is_float(dtype)) return widest;
  for (const ir::Node& node : ir::toposort({roots.begin(), roots.end()})) {
    if (!is_float(strong(node.dtype()))) continue;
    const Tolerance tolerance = default_tolerance(strong(node.dtype()));
    if (tolerance.rtol > widest.rtol) widest = tolerance;
  }
  return widest;
}

}  // namespace

Result<exec::GoldenCase> make_golden(const std::string& model_path, const SessionOptions& session,
                                     const GoldenOptions& options) {
  onnx::ImportOptions import;
  import.dims = session.dims;
  import.shapes = session.shapes;
  import.constants = session.constants;
  import.evaluate = [](const ir::Node& node) -> Result<HostTensor> {
    IGNIS_TRY_ASSIGN(std::vector<HostTensor> values, interp::evaluate({&node, 1}, {}));
    return std::move(values.front());
  };
  IGNIS_TRY_ASSIGN(const onnx::Model model, onnx::import_model(model_path, import));
  IGNIS_TRY(check_names("output", options.outputs, model.output_names));
  exec::GoldenCase golden;
  golden.source = options.outputs.empty() ? "cpu:interp" : "given";

  std::vector<ir::Node> roots;
  for (const tensor::Tensor& output : model.outputs) roots.push_back(output.node());
  int64_t total_bytes = 0;
  const auto count_bytes = [&](const ir::Node& node) {
    total_bytes += element_count(node.shape()) * size_bytes(strong(node.dtype()));
  };
  for (const tensor::Tensor& input : model.inputs) count_bytes(input.node());
  for (const ir::Node& root : roots) count_bytes(root);
  if (total_bytes > options.max_bytes) {
    return Error(ErrorCode::OutOfMemory,
                 "The model's inputs and outputs take " + std::to_string(total_bytes) +
                     " bytes; golden data may take " + std::to_string(options.max_bytes) + ".",
                 "GoldenTooLarge");
  }
  std::vector<HostTensor> inputs;
  uint64_t state = 1;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const ir::Node node = model.inputs[i].node();
    const auto given = options.inputs.find(model.input_names[i]);
    if (given != options.inputs.end()) {
      IGNIS_TRY(check_value("input", given->first, node, given->second));
      inputs.push_back(given->second);
    } else if (!options.outputs.empty()) {
      return misfit("The golden outputs are given, but not the input '" + model.input_names[i] +
                    "' that they belong to.");
    } else {
      inputs.push_back(make_up(strong(node.dtype()), node.shape(), state));
    }
    golden.inputs.push_back({model.input_names[i], inputs.back(), {}});
  }
  std::vector<HostTensor> outputs(roots.size());
  if (options.outputs.empty()) {
    if (session.progress) session.progress("golden", 0, 1);
    IGNIS_TRY_ASSIGN(outputs, interp::evaluate(roots, inputs));
    if (session.progress) session.progress("golden", 1, 1);
  }
  for (size_t i = 0; i < roots.size(); ++i) {
    const std::string& name = model.output_names[i];
    if (!options.outputs.empty()) {
      const auto given = options.outputs.find(name);
      if (given == options.outputs.end()) continue;
      IGNIS_TRY(check_value("output", name, roots[i], given->second));
      outputs[i] = given->second;
    }
    Tolerance tolerance = narrowest_tolerance({&roots[i], 1}, outputs[i].dtype);
    if (options.tolerance) tolerance = options.tolerance(name, tolerance);
    golden.outputs.push_back({name, std::move(outputs[i]), tolerance});
  }
  return golden;
}

}  // namespace ignis::engine
