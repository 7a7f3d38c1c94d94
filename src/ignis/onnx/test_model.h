#pragma once

#include "ignis/onnx/test_import.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

/// Models of one node, for the operators' tests.
namespace ignis::onnx::testing {

using ::ignis::testing::OnnxMessage;

/// TensorProto.DataType of a dtype.
inline uint64_t element_type(DType dtype) {
  switch (dtype) {
    case DType::Float32: return 1;
    case DType::UInt8: return 2;
    case DType::Int8: return 3;
    case DType::UInt16: return 4;
    case DType::Int16: return 5;
    case DType::Int32: return 6;
    case DType::Int64: return 7;
    case DType::Bool: return 9;
    case DType::Float16: return 10;
    case DType::Float64: return 11;
    case DType::UInt32: return 12;
    case DType::UInt64: return 13;
    case DType::BFloat16: return 16;
    default: return 0;
  }
}

inline OnnxMessage tensor_proto(const HostTensor& value, const std::string& name) {
  OnnxMessage out;
  for (const int64_t dim : value.shape) out.signed_varint(1, dim);
  out.varint(2, element_type(value.dtype)).text(8, name);
  return out.text(
      9, std::string_view(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()));
}

struct Attr {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
               std::vector<std::string>>
      value;
};
inline Attr attr(std::string name, int64_t value) { return {std::move(name), value}; }
inline Attr attr(std::string name, int value) { return {std::move(name), int64_t{value}}; }
inline Attr attr(std::string name, float value) { return {std::move(name), value}; }
inline Attr attr(std::string name, const char* value) {
  return {std::move(name), std::string(value)};
}
inline Attr ints(std::string name, std::vector<int64_t> value) {
  return {std::move(name), std::move(value)};
}
inline Attr floats(std::string name, std::vector<float> value) {
  return {std::move(name), std::move(value)};
}
inline Attr strings(std::string name, std::vector<std::string> value) {
  return {std::move(name), std::move(value)};
}

inline OnnxMessage attribute_proto(const Attr& a) {
  OnnxMessage out;
  out.text(1, a.name);
  struct Visitor {
    OnnxMessage& out;
    void operator()(int64_t v) const { out.signed_varint(3, v).varint(20, 2); }
    void operator()(float v) const { out.fixed32(2, v).varint(20, 1); }
    void operator()(const std::string& v) const { out.text(4, v).varint(20, 3); }
    void operator()(const std::vector<int64_t>& v) const {
      for (const int64_t i : v) out.signed_varint(8, i);
      out.varint(20, 7);
    }
    void operator()(const std::vector<float>& v) const {
      for (const float f : v) out.fixed32(7, f);
      out.varint(20, 6);
    }
    void operator()(const std::vector<std::string>& v) const {
      for (const std::string& text : v) out.text(9, text);
      out.varint(20, 8);
    }
  };
  std::visit(Visitor{out}, a.value);
  return out;
}

/// A model of one node; its inputs are named x0, x1, … and its outputs y0, y1, …
class OneNode {
 public:
  OneNode(std::string op, int64_t opset, std::vector<Attr> attributes = {}, std::string domain = {})
      : op_(std::move(op)),
        domain_(std::move(domain)),
        opset_(opset),
        attributes_(std::move(attributes)) {}

  /// A model input that gets its value at run.
  OneNode& input(HostTensor value) { return add(std::move(value), false); }
  /// An initialiser: known at import.
  OneNode& constant(HostTensor value) { return add(std::move(value), true); }
  OneNode& absent() {
    names_.emplace_back();
    return *this;
  }

  std::string bytes(int outputs) const {
    OnnxMessage node;
    for (const std::string& name : names_) node.text(1, name);
    for (int i = 0; i < outputs; ++i) node.text(2, "y" + std::to_string(i));
    node.text(4, op_);
    for (const Attr& a : attributes_) node.message(5, attribute_proto(a));
    if (!domain_.empty()) node.text(7, domain_);
    OnnxMessage graph;
    graph.message(1, node);
    for (const auto& [name, value] : constants_) graph.message(5, tensor_proto(value, name));
    for (const auto& [name, value] : inputs_) {
      const std::vector<::ignis::testing::OnnxDim> dims(value.shape.begin(), value.shape.end());
      graph.message(11, ::ignis::testing::onnx_value_info(
                            name, static_cast<int>(element_type(value.dtype)), dims));
    }
    // Outputs are declared without a type: the importer derives it.
    for (int i = 0; i < outputs; ++i)
      graph.message(12, OnnxMessage().text(1, "y" + std::to_string(i)));
    OnnxMessage opset;
    opset.text(1, domain_).signed_varint(2, opset_);
    return OnnxMessage().varint(1, 8).message(8, opset).message(7, graph).bytes();
  }

  /// Imports the model and evaluates it with the reference interpreter.
  Result<std::vector<HostTensor>> run(int outputs = 1) const {
    const std::string model_bytes = bytes(outputs);
    IGNIS_TRY_ASSIGN(const Model model, import_bytes(model_bytes, test_options()));
    std::vector<HostTensor> values;
    for (const auto& [name, value] : inputs_) values.push_back(value);
    return evaluate_model(model, values);
  }

 private:
  OneNode& add(HostTensor value, bool is_constant) {
    names_.push_back("x" + std::to_string(names_.size()));
    (is_constant ? constants_ : inputs_).emplace_back(names_.back(), std::move(value));
    return *this;
  }

  std::string op_, domain_;
  int64_t opset_;
  std::vector<Attr> attributes_;
  std::vector<std::string> names_;
  std::vector<std::pair<std::string, HostTensor>> inputs_, constants_;
};

/// The outputs, or a failed expectation and nothing.
inline std::vector<HostTensor> run(const OneNode& node, int outputs = 1) {
  auto y = node.run(outputs);
  EXPECT_TRUE(y) << y.error().to_string();
  if (y) return *std::move(y);
  return std::vector<HostTensor>(static_cast<size_t>(outputs), HostTensor::zeros(DType::Void, {0}));
}

inline HostTensor f32(Shape shape, const std::vector<double>& values) {
  return HostTensor::from<double>(DType::Float32, std::move(shape), values);
}
inline HostTensor f32(const std::vector<double>& values) {
  return f32({static_cast<int64_t>(values.size())}, values);
}
inline HostTensor i64(Shape shape, const std::vector<int64_t>& values) {
  return HostTensor::from<int64_t>(DType::Int64, std::move(shape), values);
}
inline HostTensor i64(const std::vector<int64_t>& values) {
  return i64({static_cast<int64_t>(values.size())}, values);
}

/// All elements as doubles.
inline std::vector<double> doubles(const HostTensor& t) { return values_of(t); }

}  // namespace ignis::onnx::testing
