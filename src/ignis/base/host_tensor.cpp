#include "ignis/base/host_tensor.h"

#include "ignis/base/float_formats.h"

#include <cstring>

namespace ignis {
namespace {

constexpr int64_t kMaxElementCount = int64_t{1} << 62;

/// Address of element `i`; a check fails outside the tensor.
const std::byte* element_at(const HostTensor& t, int64_t i) {
  const auto offset_bytes = static_cast<size_t>(i) * static_cast<size_t>(size_bytes(t.dtype));
  IGNIS_CHECK(i >= 0 && offset_bytes + static_cast<size_t>(size_bytes(t.dtype)) <= t.bytes.size())
      << "element " << i << " of " << to_string(t.dtype) << to_string(t.shape);
  return t.bytes.data() + offset_bytes;
}

/// The element's bits, zero-extended.
uint64_t load_bits(const HostTensor& t, int64_t i) {
  uint64_t code = 0;
  std::memcpy(&code, element_at(t, i), static_cast<size_t>(size_bytes(t.dtype)));
  return code;
}

void store_bits(HostTensor& t, int64_t i, uint64_t code) {
  std::memcpy(const_cast<std::byte*>(element_at(t, i)), &code,
              static_cast<size_t>(size_bytes(t.dtype)));
}

}  // namespace

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

Result<int64_t> checked_element_count(const Shape& shape) {
  bool is_empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) {
      return Error(ErrorCode::InvalidArgument,
                   "Shape " + to_string(shape) + " has a negative extent.");
    }
    is_empty = is_empty || extent == 0;
  }
  if (is_empty) return int64_t{0};
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent > kMaxElementCount / count) {
      return Error(ErrorCode::InvalidArgument,
                   "Shape " + to_string(shape) + " has more than 2^62 elements.");
    }
    count *= extent;
  }
  return count;
}

int64_t element_count(const Shape& shape) { return checked_element_count(shape).value(); }

HostTensor HostTensor::zeros(DType dtype, Shape shape) {
  IGNIS_CHECK(size_bytes(dtype) > 0)
      << "a tensor of " << ignis::to_string(dtype) << " has no storage";
  HostTensor t;
  t.dtype = dtype;
  t.shape = std::move(shape);
  t.bytes.resize(static_cast<size_t>(t.count()) * static_cast<size_t>(size_bytes(dtype)));
  return t;
}

double element_as_double(const HostTensor& tensor, int64_t i) {
  if (is_float(tensor.dtype)) return decode_float(tensor.dtype, load_bits(tensor, i));
  const int64_t value = element_as_int(tensor, i);
  return tensor.dtype == DType::UInt64 ? static_cast<double>(static_cast<uint64_t>(value))
                                       : static_cast<double>(value);
}

int64_t element_as_int(const HostTensor& tensor, int64_t i) {
  IGNIS_CHECK(!is_float(tensor.dtype)) << "integer read of " << to_string(tensor.dtype);
  return wrap_int(tensor.dtype, static_cast<int64_t>(load_bits(tensor, i)));
}

void store_element(HostTensor& tensor, int64_t i, double value) {
  const uint64_t code = is_float(tensor.dtype)
                            ? encode_float(tensor.dtype, value)
                            : static_cast<uint64_t>(float_to_int(tensor.dtype, value));
  store_bits(tensor, i, code);
}

void store_element_int(HostTensor& tensor, int64_t i, int64_t value) {
  const uint64_t code = is_float(tensor.dtype)
                            ? encode_float_from_int(tensor.dtype, value)
                            : static_cast<uint64_t>(wrap_int(tensor.dtype, value));
  store_bits(tensor, i, code);
}

}  // namespace ignis
