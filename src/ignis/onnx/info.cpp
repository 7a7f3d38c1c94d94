#include "ignis/onnx/info.h"

#include "ignis/onnx/graph_importer.h"
#include "ignis/onnx/ops.h"
#include "ignis/onnx/support.h"
#include "ignis/onnx/wire.h"

#include <sodium.h>

#include <algorithm>
#include <unordered_set>

namespace ignis::onnx {

std::string ValueInfo::to_string() const {
  std::string text(ignis::to_string(dtype));
  if (!has_shape) return text + " [?]";
  text += " [";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ", ";
    if (dims[i].value >= 0) text += std::to_string(dims[i].value);
    else text += dims[i].symbol.empty() ? "?" : dims[i].symbol;
  }
  return text + "]";
}

std::string digest_hex(std::string_view bytes) {
  static const int kSodiumReady = sodium_init();  // picks the fast code for this processor
  static_cast<void>(kSodiumReady);
  unsigned char digest[32];
  crypto_generichash(digest, sizeof digest, reinterpret_cast<const unsigned char*>(bytes.data()),
                     bytes.size(), nullptr, 0);
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

ValueInfo describe_value(const ValueInfoProto& value) {
  ValueInfo info;
  info.name = value.name;
  const bool is_tensor = value.type.kind == TypeProto::Kind::Tensor;
  info.dtype = is_tensor ? dtype_of(value.type.element_type).value_or(DType::Void) : DType::Void;
  info.has_shape = is_tensor && value.type.has_shape;
  // Exporters write -1 for an open dim as well as nothing.
  for (const DimProto& dim : value.type.dims) {
    info.dims.push_back({dim.value < 0 ? -1 : dim.value, std::string(dim.symbol)});
  }
  return info;
}

ModelInfo describe_model(const ModelProto& model, std::string_view bytes) {
  ModelInfo info;
  info.producer = model.producer_name;
  if (!model.producer_version.empty()) info.producer += " " + std::string(model.producer_version);
  info.graph_name = model.graph.name;
  info.ir_version = model.ir_version;
  info.opset = make_environment(model.opsets).opset("");
  std::unordered_set<std::string_view> initialised;
  for (const TensorProto& t : model.graph.initializers) {
    initialised.insert(t.name);
    // Bounded by max_elements each and by the count of messages, so the sums stay far from 2^63.
    const int64_t count = element_count(t.dims);
    info.parameter_count += count;
    info.weight_bytes += count * size_bytes(dtype_of(t.data_type).value_or(DType::Void));
  }
  for (const SparseTensorProto& t : model.graph.sparse_initializers) {
    initialised.insert(t.values.name);
    const int64_t count = element_count(t.values.dims);
    info.parameter_count += count;
    info.weight_bytes += count * size_bytes(dtype_of(t.values.data_type).value_or(DType::Void));
  }
  for (const ValueInfoProto& v : model.graph.inputs) {
    if (!initialised.contains(v.name)) info.inputs.push_back(describe_value(v));
  }
  for (const ValueInfoProto& v : model.graph.outputs) info.outputs.push_back(describe_value(v));
  for (const KeyValue& kv : model.metadata)
    info.metadata.insert_or_assign(std::string(kv.key), std::string(kv.value));
  info.ops = count_ops(model);
  info.digest = digest_hex(bytes);
  return info;
}

Result<ModelInfo> read_info(const std::string& path, const Limits& limits) {
  IGNIS_TRY_ASSIGN(const FileBytes file, map_file(path, limits.max_file_bytes));
  auto model = parse_model(file.bytes, limits);
  if (!model) return std::move(model).error().with_context("file '" + path + "'");
  return describe_model(*model, file.bytes);
}

}  // namespace ignis::onnx
