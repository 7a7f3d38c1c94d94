#include "ignis/onnx/import_state.h"
#include "ignis/onnx/ops.h"

#include <string>

namespace ignis::onnx {

using tensor::fail;

std::optional<DType> dtype_of(int32_t element_type) {
  switch (static_cast<ElementType>(element_type)) {
    case ElementType::Float: return DType::Float32;
    case ElementType::UInt8: return DType::UInt8;
    case ElementType::Int8: return DType::Int8;
    case ElementType::UInt16: return DType::UInt16;
    case ElementType::Int16: return DType::Int16;
    case ElementType::Int32: return DType::Int32;
    case ElementType::Int64: return DType::Int64;
    case ElementType::Bool: return DType::Bool;
    case ElementType::Float16: return DType::Float16;
    case ElementType::Double: return DType::Float64;
    case ElementType::UInt32: return DType::UInt32;
    case ElementType::UInt64: return DType::UInt64;
    case ElementType::BFloat16: return DType::BFloat16;
    case ElementType::Float8E4M3FN: return DType::Fp8E4M3;
    case ElementType::Float8E4M3FNUZ: return DType::Fp8E4M3Fnuz;
    case ElementType::Float8E5M2: return DType::Fp8E5M2;
    case ElementType::Float8E5M2FNUZ: return DType::Fp8E5M2Fnuz;
    case ElementType::Undefined:
    case ElementType::String:
    case ElementType::Complex64:
    case ElementType::Complex128:
    case ElementType::UInt4:
    case ElementType::Int4:
    case ElementType::Float4E2M1: return std::nullopt;
  }
  return std::nullopt;  // a number outside the list
}

std::string_view element_type_name(int32_t element_type) {
  static constexpr std::string_view kNames[] = {
      "UNDEFINED",      "FLOAT",      "UINT8",          "INT8",       "UINT16",   "INT16",
      "INT32",          "INT64",      "STRING",         "BOOL",       "FLOAT16",  "DOUBLE",
      "UINT32",         "UINT64",     "COMPLEX64",      "COMPLEX128", "BFLOAT16", "FLOAT8E4M3FN",
      "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT4",      "INT4",     "FLOAT4E2M1"};
  const size_t index = static_cast<size_t>(element_type);
  return element_type >= 0 && index < std::size(kNames) ? kNames[index] : "of an unknown number";
}

const std::shared_ptr<ir::Graph>& OpContext::graph() const { return state_.graph(); }
const Limits& OpContext::limits() const { return state_.limits(); }

bool OpContext::has_input(int i) const {
  return i >= 0 && i < input_count() && inputs_[static_cast<size_t>(i)].has_value();
}

const Tensor& OpContext::input(int i) const {
  if (!has_input(i)) fail("Input " + std::to_string(i) + " is absent.");
  return *inputs_[static_cast<size_t>(i)];
}

std::vector<Tensor> OpContext::inputs() const {
  std::vector<Tensor> all;
  for (int i = 0; i < input_count(); ++i) all.push_back(input(i));
  return all;
}

bool OpContext::is_const_input(int i) const {
  return has_input(i) && !state_.depends_on_input(input(i).node());
}

Result<HostTensor> OpContext::const_input(int i) const {
  const std::string_view name = i < static_cast<int>(node_.inputs.size())
                                    ? node_.inputs[static_cast<size_t>(i)]
                                    : std::string_view();
  return state_.fold(input(i).node(),
                     "input " + std::to_string(i) + " '" + std::string(name) + "'");
}

Result<std::vector<int64_t>> OpContext::const_ints(int i) const {
  if (!is_int(input(i).dtype()) && input(i).dtype() != DType::Bool) {
    return error("Input " + std::to_string(i) + " has to hold integers but is " +
                 input(i).describe() + ".");
  }
  IGNIS_TRY_ASSIGN(const HostTensor value, const_input(i));
  std::vector<int64_t> integers;
  for (int64_t k = 0; k < value.count(); ++k) integers.push_back(element_as_int(value, k));
  return integers;
}

Result<double> OpContext::const_float(int i) const {
  IGNIS_TRY_ASSIGN(const HostTensor value, const_input(i));
  if (value.count() != 1) {
    return error("Input " + std::to_string(i) + " has to hold one element but is " +
                 input(i).describe() + ".");
  }
  return element_as_double(value, 0);
}

Result<int64_t> OpContext::const_int(int i) const {
  IGNIS_TRY_ASSIGN(const std::vector<int64_t> values, const_ints(i));
  if (values.size() != 1) {
    return error("Input " + std::to_string(i) + " has to hold one element but is " +
                 input(i).describe() + ".");
  }
  return values[0];
}

const AttributeProto* OpContext::attr(std::string_view name, AttributeType type) const {
  const AttributeProto* a = attribute(name);
  if (a != nullptr && a->type != type) {
    fail("Attribute '" + std::string(name) + "' has type " +
         std::to_string(static_cast<int>(a->type)) + "; type " +
         std::to_string(static_cast<int>(type)) + " is asked for.");
  }
  return a;
}

int64_t OpContext::attr_int(std::string_view name, int64_t fallback) const {
  const AttributeProto* a = attr(name, AttributeType::Int);
  return a == nullptr ? fallback : a->i;
}

int64_t OpContext::attr_int(std::string_view name) const {
  const AttributeProto* a = attr(name, AttributeType::Int);
  if (a == nullptr) fail("Attribute '" + std::string(name) + "' is missing.");
  return a->i;
}

double OpContext::attr_float(std::string_view name, double fallback) const {
  const AttributeProto* a = attr(name, AttributeType::Float);
  return a == nullptr ? fallback : static_cast<double>(a->f);
}

std::string OpContext::attr_string(std::string_view name, std::string_view fallback) const {
  const AttributeProto* a = attr(name, AttributeType::String);
  return std::string(a == nullptr ? fallback : a->s);
}

std::vector<int64_t> OpContext::attr_ints(std::string_view name,
                                          std::vector<int64_t> fallback) const {
  const AttributeProto* a = attr(name, AttributeType::Ints);
  return a == nullptr ? std::move(fallback) : a->ints;
}

std::vector<float> OpContext::attr_floats(std::string_view name,
                                          std::vector<float> fallback) const {
  const AttributeProto* a = attr(name, AttributeType::Floats);
  return a == nullptr ? std::move(fallback) : a->floats;
}

std::vector<std::string> OpContext::attr_strings(std::string_view name,
                                                 std::vector<std::string> fallback) const {
  const AttributeProto* a = attr(name, AttributeType::Strings);
  if (a == nullptr) return fallback;
  return {a->strings.begin(), a->strings.end()};
}

Result<Tensor> OpContext::attr_tensor(std::string_view name) const {
  const AttributeProto* a = attribute(name);
  if (a != nullptr && a->type == AttributeType::SparseTensor && a->sparse != nullptr) {
    return state_.constant(*a->sparse);
  }
  a = attr(name, AttributeType::Tensor);
  if (a == nullptr || a->tensor == nullptr)
    return error("Attribute '" + std::string(name) + "' is missing.");
  return state_.constant(*a->tensor);
}

DType OpContext::attr_dtype(std::string_view name, DType fallback) const {
  const AttributeProto* a = attr(name, AttributeType::Int);
  if (a == nullptr) return fallback;
  const int32_t number = a->i >= 0 && a->i < 1000 ? static_cast<int32_t>(a->i) : -1;
  const std::optional<DType> dtype = dtype_of(number);
  if (!dtype) {
    throw tensor::GraphError(unsupported("Attribute '" + std::string(name) +
                                         "' asks for element type " +
                                         std::string(element_type_name(number)) + "."));
  }
  return *dtype;
}

int64_t OpContext::axis(int64_t value, int64_t rank) const {
  return tensor::normalize_axis(node_.op_type, value, static_cast<int>(rank));
}

Tensor OpContext::constant(const HostTensor& value) const { return state_.constant(value); }

Tensor OpContext::scalar(DType dtype, double value) const {
  return Tensor::full(graph(), {}, value, dtype);
}

Tensor OpContext::scalar_int(DType dtype, int64_t value) const {
  return Tensor::full_int(graph(), {}, value, dtype);
}

Tensor OpContext::ints(const std::vector<int64_t>& values) const {
  return state_.constant(
      HostTensor::from(DType::Int64, {static_cast<int64_t>(values.size())}, values));
}

}  // namespace ignis::onnx
