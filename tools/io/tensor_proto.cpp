#include "tools/io/tensor_proto.h"

#include <protozero/pbf_reader.hpp>

#include <cstring>
#include <exception>

namespace ignis::tools {
namespace {

Error malformed(const std::string& what) {
  return Error(ErrorCode::InvalidArgument, what, "MalformedFile");
}

/// TensorProto.DataType of onnx.proto to a dtype.
Result<DType> dtype_of(int32_t type) {
  switch (type) {
    case 1: return DType::Float32;
    case 2: return DType::UInt8;
    case 3: return DType::Int8;
    case 4: return DType::UInt16;
    case 5: return DType::Int16;
    case 6: return DType::Int32;
    case 7: return DType::Int64;
    case 9: return DType::Bool;
    case 10: return DType::Float16;
    case 11: return DType::Float64;
    case 12: return DType::UInt32;
    case 13: return DType::UInt64;
    case 16: return DType::BFloat16;
    case 17: return DType::Fp8E4M3;
    case 18: return DType::Fp8E4M3Fnuz;
    case 19: return DType::Fp8E5M2;
    case 20: return DType::Fp8E5M2Fnuz;
    default:
      return Error(ErrorCode::Unsupported, "The tensor has the element type " +
                                               std::to_string(type) + ", which Ignis has not.");
  }
}

/// The fields of TensorProto that hold values; one of them is used.
struct Fields {
  NamedTensor out;
  int32_t type = 0;
  bool is_external = false;
  std::vector<std::byte> raw;
  std::vector<uint64_t> words;  // bits of the elements of int32_data, int64_data, uint64_data
  std::vector<std::byte> floats, doubles;
};

template <typename Range, typename T>
void append(const Range& values, std::vector<std::byte>& out, T) {
  for (const auto value : values) {
    const T v = value;
    const size_t at = out.size();
    out.resize(at + sizeof v);
    std::memcpy(out.data() + at, &v, sizeof v);
  }
}

// Protozero throws on malformed messages; parse_tensor_proto turns that into an Error.
void read_fields(protozero::pbf_reader message, Fields& f) {
  using protozero::pbf_wire_type;
  while (message.next()) {
    const bool packed = message.wire_type() == pbf_wire_type::length_delimited;
    switch (message.tag()) {
      case 1:
        if (packed)
          for (const int64_t d : message.get_packed_int64()) f.out.second.shape.push_back(d);
        else f.out.second.shape.push_back(message.get_int64());
        break;
      case 2: f.type = message.get_int32(); break;
      case 4:
        if (packed) append(message.get_packed_float(), f.floats, float{});
        else append(std::vector<float>{message.get_float()}, f.floats, float{});
        break;
      case 5:
        if (packed)
          for (const int32_t v : message.get_packed_int32())
            f.words.push_back(static_cast<uint64_t>(int64_t{v}));
        else f.words.push_back(static_cast<uint64_t>(int64_t{message.get_int32()}));
        break;
      case 7:
        if (packed)
          for (const int64_t v : message.get_packed_int64())
            f.words.push_back(static_cast<uint64_t>(v));
        else f.words.push_back(static_cast<uint64_t>(message.get_int64()));
        break;
      case 8: f.out.first = message.get_string(); break;
      case 9: {
        const auto view = message.get_view();
        const auto* data = reinterpret_cast<const std::byte*>(view.data());
        f.raw.assign(data, data + view.size());
        break;
      }
      case 10:
        if (packed) append(message.get_packed_double(), f.doubles, double{});
        else append(std::vector<double>{message.get_double()}, f.doubles, double{});
        break;
      case 11:
        if (packed)
          for (const uint64_t v : message.get_packed_uint64()) f.words.push_back(v);
        else f.words.push_back(message.get_uint64());
        break;
      case 14: f.is_external = message.get_int32() == 1; break;
      default: message.skip();
    }
  }
}

}  // namespace

Result<NamedTensor> parse_tensor_proto(std::span<const std::byte> bytes) {
  Fields f;
  try {
    read_fields(protozero::pbf_reader(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
                f);
  } catch (const std::exception& e) {
    return malformed(std::string("The file holds no ONNX tensor: ") + e.what() + ".");
  }
  if (f.is_external)
    return malformed("The tensor's values lie in another file; that is not read here.");
  HostTensor& tensor = f.out.second;
  IGNIS_TRY_ASSIGN(tensor.dtype, dtype_of(f.type));
  IGNIS_TRY_ASSIGN(const int64_t count, checked_element_count(tensor.shape));
  const auto item = static_cast<size_t>(size_bytes(tensor.dtype));
  std::vector<std::byte>& values = !f.raw.empty()      ? f.raw
                                   : !f.floats.empty() ? f.floats
                                                       : f.doubles;
  if (!f.words.empty()) {
    for (const uint64_t word : f.words) {
      const size_t at = values.size();
      values.resize(at + item);
      std::memcpy(values.data() + at, &word, item);
    }
  }
  if (values.size() % item != 0 || values.size() / item != static_cast<uint64_t>(count)) {
    return malformed("The tensor of shape " + to_string(tensor.shape) + " needs " +
                     std::to_string(count) + " elements; the file holds " +
                     std::to_string(values.size() / item) + ".");
  }
  tensor.bytes = std::move(values);
  return std::move(f.out);
}

}  // namespace ignis::tools
