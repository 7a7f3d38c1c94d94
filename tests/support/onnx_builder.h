#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Makes small ONNX files for tests. Writes the wire format on its own, so that it shares no mistake with the reader,
/// and checks nothing: a test may build a broken model with it.
///
///     OnnxModel model(/*opset=*/17);
///     model.graph.input("x", OnnxType::Float, {2, 3}).output("y", OnnxType::Float, {2, 3});
///     model.graph.initializer(onnx_floats("w", {3}, {1, 2, 3}));
///     model.graph.node(OnnxNode("Add", {"x", "w"}, {"y"}));
///     import_bytes(model.bytes());
namespace ignis::testing {

/// A protobuf message under construction.
class OnnxMessage {
 public:
  OnnxMessage& varint(uint32_t field, uint64_t value) {
    key(field, 0);
    raw_varint(value);
    return *this;
  }
  OnnxMessage& signed_varint(uint32_t field, int64_t value) {
    return varint(field, static_cast<uint64_t>(value));
  }
  OnnxMessage& fixed32(uint32_t field, float value) {
    key(field, 5);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof raw);
    return *this;
  }
  OnnxMessage& text(uint32_t field, std::string_view value) {
    key(field, 2);
    raw_varint(value.size());
    bytes_.append(value);
    return *this;
  }
  OnnxMessage& message(uint32_t field, const OnnxMessage& value) {
    return text(field, value.bytes_);
  }
  OnnxMessage& packed(uint32_t field, const std::vector<int64_t>& values) {
    OnnxMessage inner;
    for (const int64_t v : values) inner.raw_varint(static_cast<uint64_t>(v));
    return text(field, inner.bytes_);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void key(uint32_t field, uint32_t wire_type) { raw_varint(field << 3 | wire_type); }
  void raw_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

/// Numbers of TensorProto.DataType.
struct OnnxType {
  static constexpr int Float = 1, UInt8 = 2, Int8 = 3, UInt16 = 4, Int16 = 5, Int32 = 6, Int64 = 7,
                       String = 8, Bool = 9, Float16 = 10, Double = 11, UInt32 = 12, UInt64 = 13,
                       Complex64 = 14, BFloat16 = 16, Float8E4M3FN = 17, Float8E5M2 = 19;
};

/// TensorProto with raw data.
template <typename T>
OnnxMessage onnx_raw_tensor(std::string_view name, int type, const std::vector<int64_t>& dims,
                            const std::vector<T>& values) {
  OnnxMessage tensor;
  for (const int64_t dim : dims) tensor.signed_varint(1, dim);
  tensor.varint(2, static_cast<uint64_t>(type)).text(8, name);
  std::string raw(values.size() * sizeof(T), '\0');
  if (!raw.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return tensor.text(9, raw);
}
inline OnnxMessage onnx_floats(std::string_view name, const std::vector<int64_t>& dims,
                               const std::vector<float>& values) {
  return onnx_raw_tensor(name, OnnxType::Float, dims, values);
}
inline OnnxMessage onnx_ints(std::string_view name, const std::vector<int64_t>& dims,
                             const std::vector<int64_t>& values) {
  return onnx_raw_tensor(name, OnnxType::Int64, dims, values);
}
/// TensorProto whose data lies elsewhere: keys and values as given.
inline OnnxMessage onnx_external(std::string_view name, int type, const std::vector<int64_t>& dims,
                                 const std::vector<std::pair<std::string, std::string>>& keys) {
  OnnxMessage tensor;
  for (const int64_t dim : dims) tensor.signed_varint(1, dim);
  tensor.varint(2, static_cast<uint64_t>(type)).text(8, name);
  for (const auto& [k, v] : keys) tensor.message(13, OnnxMessage().text(1, k).text(2, v));
  return tensor.varint(14, 1);
}
inline OnnxMessage onnx_sparse(const OnnxMessage& values, const OnnxMessage& indices,
                               const std::vector<int64_t>& dims) {
  OnnxMessage sparse;
  sparse.message(1, values).message(2, indices);
  for (const int64_t dim : dims) sparse.signed_varint(3, dim);
  return sparse;
}

/// One extent of a declared shape: 3, "batch", or OnnxDim() for an open one without a name.
struct OnnxDim {
  OnnxDim() = default;
  OnnxDim(int64_t v) : value(v) {}       // NOLINT: implicit by design
  OnnxDim(int v) : value(v) {}           // NOLINT
  OnnxDim(const char* s) : symbol(s) {}  // NOLINT
  int64_t value = -1;
  std::string symbol;
};

inline OnnxMessage onnx_value_info(std::string_view name, int type,
                                   const std::vector<OnnxDim>& dims) {
  OnnxMessage shape;
  for (const OnnxDim& dim : dims) {
    OnnxMessage d;
    if (!dim.symbol.empty()) d.text(2, dim.symbol);
    else if (dim.value >= 0) d.signed_varint(1, dim.value);
    shape.message(1, d);
  }
  OnnxMessage tensor_type;
  tensor_type.varint(1, static_cast<uint64_t>(type)).message(2, shape);
  OnnxMessage info;
  return info.text(1, name).message(2, OnnxMessage().message(1, tensor_type));
}

class OnnxGraph;

class OnnxNode {
 public:
  OnnxNode(std::string_view op, const std::vector<std::string>& inputs,
           const std::vector<std::string>& outputs) {
    for (const std::string& name : inputs) message_.text(1, name);
    for (const std::string& name : outputs) message_.text(2, name);
    message_.text(4, op);
  }
  OnnxNode& name(std::string_view value) { return message_.text(3, value), *this; }
  OnnxNode& domain(std::string_view value) { return message_.text(7, value), *this; }
  OnnxNode& attr(std::string_view name, int64_t value) {
    return add(start(name, 2).signed_varint(3, value));
  }
  OnnxNode& attr(std::string_view name, int value) {
    return attr(name, static_cast<int64_t>(value));
  }
  OnnxNode& attr(std::string_view name, float value) {
    return add(start(name, 1).fixed32(2, value));
  }
  OnnxNode& attr(std::string_view name, std::string_view value) {
    return add(start(name, 3).text(4, value));
  }
  OnnxNode& attr(std::string_view name, const char* value) {
    return attr(name, std::string_view(value));
  }
  OnnxNode& attr(std::string_view name, const std::vector<int64_t>& values) {
    return add(start(name, 7).packed(8, values));
  }
  OnnxNode& attr_tensor(std::string_view name, const OnnxMessage& tensor) {
    return add(start(name, 4).message(5, tensor));
  }
  OnnxNode& attr_sparse(std::string_view name, const OnnxMessage& sparse) {
    return add(start(name, 11).message(22, sparse));
  }
  inline OnnxNode& attr_graph(std::string_view name, const OnnxGraph& graph);
  /// Inside a function: the attribute takes the value of the caller's attribute `caller_name` of type number `type`.
  OnnxNode& attr_of_caller(std::string_view name, std::string_view caller_name, int type) {
    return add(start(name, type).text(21, caller_name));
  }
  const OnnxMessage& message() const { return message_; }

 private:
  static OnnxMessage start(std::string_view name, int type) {
    OnnxMessage attribute;
    attribute.text(1, name).varint(20, static_cast<uint64_t>(type));
    return attribute;
  }
  OnnxNode& add(const OnnxMessage& attribute) { return message_.message(5, attribute), *this; }
  OnnxMessage message_;
};

class OnnxGraph {
 public:
  OnnxGraph& input(std::string_view name, int type, const std::vector<OnnxDim>& dims) {
    return message_.message(11, onnx_value_info(name, type, dims)), *this;
  }
  OnnxGraph& output(std::string_view name, int type, const std::vector<OnnxDim>& dims) {
    return message_.message(12, onnx_value_info(name, type, dims)), *this;
  }
  OnnxGraph& initializer(const OnnxMessage& tensor) { return message_.message(5, tensor), *this; }
  OnnxGraph& sparse_initializer(const OnnxMessage& sparse) {
    return message_.message(15, sparse), *this;
  }
  OnnxGraph& node(const OnnxNode& node) { return message_.message(1, node.message()), *this; }
  const OnnxMessage& message() const { return message_; }

 private:
  OnnxMessage message_;
};

OnnxNode& OnnxNode::attr_graph(std::string_view name, const OnnxGraph& graph) {
  return add(start(name, 5).message(6, graph.message()));
}

/// A model-local function.
inline OnnxMessage onnx_function(std::string_view domain, std::string_view name,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs,
                                 const std::vector<OnnxNode>& nodes, int64_t opset) {
  OnnxMessage f;
  f.text(1, name);
  for (const std::string& input : inputs) f.text(4, input);
  for (const std::string& output : outputs) f.text(5, output);
  for (const OnnxNode& node : nodes) f.message(7, node.message());
  f.message(9, OnnxMessage().text(1, "").signed_varint(2, opset));
  f.message(9, OnnxMessage().text(1, domain).signed_varint(2, 1));
  return f.text(10, domain);
}

class OnnxModel {
 public:
  explicit OnnxModel(int64_t opset) : opset_(opset) {}
  OnnxGraph graph;
  /// Further fields of ModelProto: functions (25), opset imports (8), metadata (14).
  OnnxMessage extra;
  std::string bytes() const {
    OnnxMessage model;
    model.varint(1, 8).text(2, "onnx_builder");
    model.message(8, OnnxMessage().text(1, "").signed_varint(2, opset_));
    model.message(7, graph.message());
    return model.bytes() + extra.bytes();
  }

 private:
  int64_t opset_;
};

}  // namespace ignis::testing
