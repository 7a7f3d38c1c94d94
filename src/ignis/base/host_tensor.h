#pragma once

#include "ignis/base/dtype.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ignis {

/// Extents from the slowest to the fastest axis of a dense row-major array. Empty: a scalar.
using Shape = std::vector<int64_t>;

/// "[1, 3, 224, 224]".
std::string to_string(const Shape& shape);
/// Product of the extents (1 for a scalar). Errors: InvalidArgument on a negative extent or when it exceeds 2^62.
Result<int64_t> checked_element_count(const Shape& shape);
/// The product for a shape known to be valid (a check fails otherwise).
int64_t element_count(const Shape& shape);

/// A dense row-major array in host memory that owns its bytes.
struct HostTensor {
  DType dtype = DType::Float32;
  Shape shape;
  std::vector<std::byte> bytes;  ///< element_count(shape) * size_bytes(dtype), little endian

  int64_t count() const { return element_count(shape); }
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
  /// Zero-filled tensor.
  static HostTensor zeros(DType dtype, Shape shape);
  template <typename T>
  static HostTensor from(DType dtype, Shape shape, const std::vector<T>& values);
};

/// Element `i` as a double (exact for all but 64-bit integers beyond 2^53).
double element_as_double(const HostTensor& tensor, int64_t i);
/// Element `i` of an integer or bool tensor. uint64 is returned as its bit pattern.
int64_t element_as_int(const HostTensor& tensor, int64_t i);
/// Stores `value` rounded to the dtype by the one conversion routine (float_formats.h).
void store_element(HostTensor& tensor, int64_t i, double value);
void store_element_int(HostTensor& tensor, int64_t i, int64_t value);

template <typename T>
HostTensor HostTensor::from(DType dtype, Shape shape, const std::vector<T>& values) {
  HostTensor t = zeros(dtype, std::move(shape));
  IGNIS_CHECK(static_cast<int64_t>(values.size()) == t.count());
  for (int64_t i = 0; i < t.count(); ++i) {
    if (is_float(dtype)) store_element(t, i, static_cast<double>(values[static_cast<size_t>(i)]));
    else store_element_int(t, i, static_cast<int64_t>(values[static_cast<size_t>(i)]));
  }
  return t;
}

}  // namespace ignis
