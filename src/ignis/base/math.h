#pragma once

#include "ignis/base/check.h"

#include <concepts>
#include <cstdint>
#include <optional>

namespace ignis {

// Sizes, offsets and counts that come from files or users are multiplied and added with these; the plain operators
// are for values already known to be small.

/// a + b, or nothing when the sum does not fit.
template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  T result = 0;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// a - b, or nothing when the difference does not fit.
template <std::integral T>
constexpr std::optional<T> checked_sub(T a, T b) {
  T result = 0;
  if (__builtin_sub_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// a * b, or nothing when the product does not fit.
template <std::integral T>
constexpr std::optional<T> checked_mul(T a, T b) {
  T result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// True when the range [offset, offset + size) lies inside [0, total); nothing wraps.
constexpr bool is_range_inside(uint64_t offset, uint64_t size, uint64_t total) {
  return offset <= total && size <= total - offset;
}

template <std::integral T>
constexpr bool is_power_of_two(T value) {
  return value > 0 && (value & (value - 1)) == 0;
}

/// Smallest multiple of `alignment` (a power of two) that is not below `value`, which is >= 0.
template <std::integral T>
constexpr T align_up(T value, T alignment) {
  IGNIS_DCHECK(is_power_of_two(alignment));
  return static_cast<T>((value + (alignment - 1)) & ~(alignment - 1));
}

/// value / divisor rounded up; value >= 0, divisor > 0.
template <std::integral T>
constexpr T ceil_div(T value, T divisor) {
  return static_cast<T>(value / divisor + (value % divisor != 0 ? 1 : 0));
}

}  // namespace ignis
