#include "ignis/onnx/input_binding.h"

#include "ignis/onnx/info.h"

#include <algorithm>
#include <set>
#include <unordered_set>

namespace ignis::onnx {
namespace {

using Symbols = std::map<std::string, int64_t>;

Error refuse(std::string message, const char* reason = "") {
  return Error(ErrorCode::InvalidArgument, std::move(message), reason);
}

/// A symbol gets one value; a second, different one is an error.
Status bind_symbol(Symbols& symbols, const std::string& symbol, int64_t value,
                   const std::string& input) {
  const auto [it, is_new] = symbols.emplace(symbol, value);
  if (!is_new && it->second != value) {
    return refuse("Dim '" + symbol + "' is " + std::to_string(it->second) + ", but input '" +
                  input + "' makes it " + std::to_string(value) + ".");
  }
  return Status::ok();
}

/// Symbols that are fixed by shapes and constants given for whole inputs.
Status bind_from_shape(Symbols& symbols, const ValueInfo& input, const Shape& shape) {
  if (!input.has_shape) return Status::ok();
  if (shape.size() != input.dims.size()) {
    return refuse("Input '" + input.name + "' is " + input.to_string() + "; the shape given is " +
                  to_string(shape) + ".");
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0 && !input.dims[i].symbol.empty()) {
      IGNIS_TRY(bind_symbol(symbols, input.dims[i].symbol, shape[i], input.name));
    }
  }
  return Status::ok();
}

Result<Shape> resolve_shape(const ValueInfo& input, const ImportOptions& options,
                            const Symbols& symbols) {
  const auto given = options.shapes.find(input.name);
  if (!input.has_shape && given == options.shapes.end()) {
    return refuse("Input '" + input.name + "' has no shape in the file; give it with --shape " +
                      input.name + "=….",
                  "OpenDim");
  }
  Shape shape = given == options.shapes.end() ? Shape(input.dims.size(), -1) : given->second;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0) continue;
    const Dim dim = input.has_shape ? input.dims[i] : Dim{};
    const auto symbol = symbols.find(dim.symbol);
    if (!dim.symbol.empty() && symbol != symbols.end()) shape[i] = symbol->second;
    else shape[i] = dim.value;
    if (shape[i] >= 0) continue;
    std::string message = "Dim " + std::to_string(i) + " of input '" + input.name + "' (" +
                          input.to_string() + ") is open";
    message += dim.symbol.empty() ? "; give the shape with --shape " + input.name + "=…."
                                  : "; give '" + dim.symbol + "' with --dim " + dim.symbol + "=N.";
    return refuse(message, "OpenDim");
  }
  return shape;
}

Status check_size(const std::string& name, const Shape& shape, const Limits& limits) {
  const Result<int64_t> count = checked_element_count(shape);
  if (!count || *count > limits.max_elements || static_cast<int>(shape.size()) > limits.max_rank) {
    return refuse("Input '" + name + "' of shape " + to_string(shape) + " is over the limits.",
                  "LimitExceeded");
  }
  return Status::ok();
}

template <typename Map>
Status check_names(const Map& given, const std::set<std::string>& known, const char* what) {
  for (const auto& [name, value] : given) {
    if (!known.contains(name))
      return refuse("The model has no " + std::string(what) + " '" + name + "'.");
  }
  return Status::ok();
}

Status check_constant(const ValueInfo& input, const HostTensor& value) {
  const bool fits =
      value.dtype == input.dtype && (!input.has_shape || value.shape.size() == input.dims.size());
  bool extents_fit = fits;
  for (size_t i = 0; fits && input.has_shape && i < input.dims.size(); ++i) {
    extents_fit = extents_fit && (input.dims[i].value < 0 || input.dims[i].value == value.shape[i]);
  }
  if (extents_fit) return Status::ok();
  return refuse("Input '" + input.name + "' is " + input.to_string() + "; the value given is " +
                std::string(to_string(value.dtype)) + " " + to_string(value.shape) + ".");
}

}  // namespace

Result<std::vector<BoundInput>> resolve_inputs(const GraphProto& graph,
                                               const ImportOptions& options) {
  std::unordered_set<std::string_view> initialised;
  for (const TensorProto& t : graph.initializers) initialised.insert(t.name);
  for (const SparseTensorProto& t : graph.sparse_initializers) initialised.insert(t.values.name);

  std::vector<ValueInfo> infos;
  std::vector<BoundInput> inputs;
  std::set<std::string> names, symbol_names;
  for (const ValueInfoProto& v : graph.inputs) {
    const bool is_given = options.constants.contains(std::string(v.name));
    names.insert(std::string(v.name));
    for (const DimProto& dim : v.type.dims) symbol_names.insert(std::string(dim.symbol));
    if (initialised.contains(v.name) && !is_given) continue;
    infos.push_back(describe_value(v));
    inputs.push_back({v.name, infos.back().dtype, {}, nullptr});
  }
  IGNIS_TRY(check_names(options.constants, names, "input"));
  IGNIS_TRY(check_names(options.shapes, names, "input"));
  symbol_names.erase("");
  IGNIS_TRY(check_names(options.dims, symbol_names, "open dim"));

  Symbols symbols(options.dims.begin(), options.dims.end());
  for (const auto& [symbol, value] : symbols) {
    if (value < 0) return refuse("Dim '" + symbol + "' cannot be " + std::to_string(value) + ".");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (infos[i].dtype == DType::Void) {
      return refuse("Input '" + infos[i].name + "' declares no tensor type.", "Malformed");
    }
    if (const auto given = options.constants.find(infos[i].name);
        given != options.constants.end()) {
      IGNIS_TRY(check_constant(infos[i], given->second));
      inputs[i].constant = &given->second;
      IGNIS_TRY(bind_from_shape(symbols, infos[i], given->second.shape));
    } else if (const auto shape = options.shapes.find(infos[i].name);
               shape != options.shapes.end()) {
      IGNIS_TRY(bind_from_shape(symbols, infos[i], shape->second));
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].constant != nullptr) continue;
    IGNIS_TRY_ASSIGN(inputs[i].shape, resolve_shape(infos[i], options, symbols));
    IGNIS_TRY(check_size(infos[i].name, inputs[i].shape, options.limits));
  }
  return inputs;
}

}  // namespace ignis::onnx
