#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

/// The protobuf messages of an ONNX file as plain data. Names, strings and tensor contents are views into the file's
/// bytes, so whoever holds these structures keeps the bytes alive (FileBytes in wire.h). Field numbers and meanings:
/// onnx.proto of the ONNX standard, IR version 10.
namespace ignis::onnx {

/// TensorProto.DataType.
enum class ElementType : int32_t {
  Undefined = 0,
  Float = 1,
  UInt8 = 2,
  Int8 = 3,
  UInt16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  UInt32 = 12,
  UInt64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  BFloat16 = 16,
  Float8E4M3FN = 17,
  Float8E4M3FNUZ = 18,
  Float8E5M2 = 19,
  Float8E5M2FNUZ = 20,
  UInt4 = 21,
  Int4 = 22,
  Float4E2M1 = 23,
};

struct KeyValue {
  std::string_view key, value;
};

/// A constant tensor. Typed data (float_data, int32_data, …) stays encoded in `message` until it is read with the
/// element count known from the dims, so a hostile file cannot make it grow.
struct TensorProto {
  std::string_view name;
  int32_t data_type = 0;
  std::vector<int64_t> dims;
  bool has_raw_data = false;
  std::string_view raw_data;
  bool is_external = false;             ///< data_location = EXTERNAL
  std::vector<KeyValue> external_data;  ///< location, offset, length, …
  std::string_view message;             ///< the whole encoded message
};

struct SparseTensorProto {
  TensorProto values, indices;
  std::vector<int64_t> dims;
};

/// One extent of a declared shape: a value, or -1 with a symbol that may be empty.
struct DimProto {
  int64_t value = -1;
  std::string_view symbol;
};

struct TypeProto {
  enum class Kind : uint8_t { None, Tensor, Sequence, Map, Optional, SparseTensor, Opaque };
  Kind kind = Kind::None;
  int32_t element_type = 0;  ///< of Tensor and SparseTensor
  bool has_shape = false;
  std::vector<DimProto> dims;
};

struct ValueInfoProto {
  std::string_view name;
  TypeProto type;
};

struct GraphProto;

/// AttributeProto.AttributeType.
enum class AttributeType : int32_t {
  Undefined = 0,
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  Ints = 7,
  Strings = 8,
  Tensors = 9,
  Graphs = 10,
  SparseTensor = 11,
  SparseTensors = 12,
  TypeProto = 13,
  TypeProtos = 14,
};

struct AttributeProto {
  std::string_view name;
  std::string_view ref_name;  ///< inside a function: the caller's attribute this one stands for
  AttributeType type = AttributeType::Undefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::shared_ptr<const TensorProto> tensor;
  std::shared_ptr<const SparseTensorProto> sparse;
  std::shared_ptr<const GraphProto> graph;
};

struct NodeProto {
  std::string_view name, op_type, domain;
  std::vector<std::string_view> inputs, outputs;  ///< an empty name: absent
  std::vector<AttributeProto> attributes;
};

/// The attributes with which a function was called.
using AttributeMap = std::map<std::string_view, const AttributeProto*>;

/// A node's attribute, or null. Inside a function an attribute may stand for one of the caller's; when the caller
/// gave none it is absent.
inline const AttributeProto* find_attribute(const NodeProto& node, const AttributeMap& of_caller,
                                            std::string_view name) {
  for (const AttributeProto& a : node.attributes) {
    if (a.name != name) continue;
    if (a.ref_name.empty()) return &a;
    const auto given = of_caller.find(a.ref_name);
    return given == of_caller.end() ? nullptr : given->second;
  }
  return nullptr;
}

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;  ///< named by their values
  std::vector<ValueInfoProto> inputs, outputs;
};

struct OpsetId {
  std::string_view domain;  ///< "" and "ai.onnx" are the default domain
  int64_t version = 0;
};

/// A model-local function.
struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<AttributeProto> attribute_defaults;
  std::vector<NodeProto> nodes;
  std::vector<OpsetId> opsets;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string_view producer_name, producer_version;
  std::vector<OpsetId> opsets;
  GraphProto graph;
  bool has_graph = false;
  std::vector<FunctionProto> functions;
  std::vector<KeyValue> metadata;
};

}  // namespace ignis::onnx
