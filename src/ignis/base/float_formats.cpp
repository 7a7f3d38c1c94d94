#include "ignis/base/float_formats.h"

#include <bit>
#include <cmath>
#include <limits>

namespace ignis {
namespace {

enum class Specials : uint8_t {
  Ieee,  ///< the highest exponent holds Inf and NaN
  Fn,    ///< no Inf; only the all-ones code of either sign is NaN
  Fnuz,  ///< no Inf, no -0; the code of -0 is the one NaN
};

/// How a float format of at most 32 bits lays out its code.
struct Format {
  int bits;
  int mantissa_bits;
  int bias;
  Specials specials;
  uint64_t max_finite;  ///< code of the largest finite value
};

constexpr Format format_of(DType d) {
  switch (d) {
    case DType::Fp8E4M3: return {8, 3, 7, Specials::Fn, 0x7E};
    case DType::Fp8E5M2: return {8, 2, 15, Specials::Ieee, 0x7B};
    case DType::Fp8E4M3Fnuz: return {8, 3, 8, Specials::Fnuz, 0x7F};
    case DType::Fp8E5M2Fnuz: return {8, 2, 16, Specials::Fnuz, 0x7F};
    case DType::Float16: return {16, 10, 15, Specials::Ieee, 0x7BFF};
    case DType::BFloat16: return {16, 7, 127, Specials::Ieee, 0x7F7F};
    default: return {32, 23, 127, Specials::Ieee, 0x7F7FFFFF};
  }
}

constexpr int kDoubleMantissaBits = 52;
constexpr int kDoubleBias = 1023;
constexpr uint64_t kDoubleQuiet = 1ULL << 51;
constexpr uint64_t kFnuzNan = 0x80;

uint64_t low_mask(int bits) { return (1ULL << bits) - 1; }

/// `m` / 2^shift, rounded to nearest even.
uint64_t shift_right_rne(uint64_t m, int shift) {
  if (shift <= 0) return m << -shift;
  if (shift > 60) return 0;  // m has 53 bits: below a quarter of a step
  const uint64_t quotient = m >> shift;
  const uint64_t rest = m & low_mask(shift);
  const uint64_t half = 1ULL << (shift - 1);
  const bool up = rest > half || (rest == half && (quotient & 1) != 0);
  return quotient + (up ? 1 : 0);
}

uint64_t encode_nan(const Format& f, uint64_t sign, uint64_t double_bits) {
  switch (f.specials) {
    case Specials::Fn: return sign | low_mask(f.bits - 1);
    case Specials::Fnuz: return kFnuzNan;
    case Specials::Ieee: break;
  }
  // The top payload bits survive; the quiet bit is forced, or a low payload would turn into Inf.
  const uint64_t payload =
      (double_bits & low_mask(kDoubleMantissaBits)) >> (kDoubleMantissaBits - f.mantissa_bits);
  const uint64_t exponent = low_mask(f.bits - 1 - f.mantissa_bits) << f.mantissa_bits;
  return sign | exponent | payload | (1ULL << (f.mantissa_bits - 1));
}

uint64_t encode_overflow(DType d, const Format& f, uint64_t sign, bool is_inf, Fp8Overflow policy) {
  const uint64_t ieee_inf = low_mask(f.bits - 1 - f.mantissa_bits) << f.mantissa_bits;
  if (!is_fp8(d)) return sign | ieee_inf;
  if (policy == Fp8Overflow::Saturate && !(is_inf && f.specials == Specials::Fnuz))
    return sign | f.max_finite;
  switch (f.specials) {
    case Specials::Ieee: return sign | ieee_inf;
    case Specials::Fn: return sign | low_mask(f.bits - 1);
    case Specials::Fnuz: return kFnuzNan;
  }
  return kFnuzNan;
}

uint64_t encode_generic(DType d, double value, Fp8Overflow policy) {
  const Format f = format_of(d);
  const auto double_bits = std::bit_cast<uint64_t>(value);
  const uint64_t sign = (double_bits >> 63) << (f.bits - 1);
  if (std::isnan(value)) return encode_nan(f, sign, double_bits);
  if (std::isinf(value)) return encode_overflow(d, f, sign, true, policy);

  const auto exponent_field = static_cast<int>((double_bits >> kDoubleMantissaBits) & 0x7FF);
  uint64_t code = 0;
  if (exponent_field !=
      0) {  // a subnormal double is far below half the smallest step of every format here
    const uint64_t mantissa =
        (double_bits & low_mask(kDoubleMantissaBits)) | (1ULL << kDoubleMantissaBits);
    const int exponent = exponent_field - kDoubleBias;
    const int smallest = 1 - f.bias;  // exponent shared by subnormals and the lowest normal numbers
    const int grid = exponent > smallest ? exponent : smallest;
    const int shift = (grid - f.mantissa_bits) - (exponent - kDoubleMantissaBits);
    // A rounded mantissa holds the hidden bit, which adds the 1 that a normal exponent field has, and a carry
    // out of the mantissa moves to the next exponent by the same addition.
    code = (static_cast<uint64_t>(grid - smallest) << f.mantissa_bits) +
           shift_right_rne(mantissa, shift);
  }
  if (code > f.max_finite) return encode_overflow(d, f, sign, false, policy);
  if (code == 0 && f.specials == Specials::Fnuz) return 0;
  return sign | code;
}

double decode_generic(DType d, uint64_t code) {
  const Format f = format_of(d);
  const uint64_t magnitude = code & low_mask(f.bits - 1);
  const uint64_t sign_bit = ((code >> (f.bits - 1)) & 1) << 63;
  const auto nan_with = [sign_bit](uint64_t payload) {
    return std::bit_cast<double>(sign_bit | (0x7FFULL << kDoubleMantissaBits) | payload);
  };
  if (f.specials == Specials::Fnuz && (code & low_mask(f.bits)) == kFnuzNan) {
    return std::bit_cast<double>((0x7FFULL << kDoubleMantissaBits) | kDoubleQuiet);
  }
  if (f.specials == Specials::Fn && magnitude == low_mask(f.bits - 1))
    return nan_with(kDoubleQuiet);
  const uint64_t mantissa = magnitude & low_mask(f.mantissa_bits);
  const uint64_t exponent = magnitude >> f.mantissa_bits;
  if (f.specials == Specials::Ieee && exponent == low_mask(f.bits - 1 - f.mantissa_bits)) {
    return nan_with(mantissa << (kDoubleMantissaBits - f.mantissa_bits));  // Inf has payload 0
  }
  const bool is_subnormal = exponent == 0;
  const uint64_t significand = is_subnormal ? mantissa : mantissa | (1ULL << f.mantissa_bits);
  const int scale = (is_subnormal ? 1 : static_cast<int>(exponent)) - f.bias - f.mantissa_bits;
  const double magnitude_value = std::ldexp(static_cast<double>(significand), scale);
  return sign_bit != 0 ? -magnitude_value : magnitude_value;
}

}  // namespace

double decode_float(DType format, uint64_t code) {
  IGNIS_CHECK(is_float(format)) << to_string(format);
  switch (format) {
    case DType::Float64:
    case DType::WeakFloat: return std::bit_cast<double>(code);
    case DType::Float32:
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(code)));
    default: return decode_generic(format, code);
  }
}

uint64_t encode_float(DType format, double value, Fp8Overflow overflow) {
  IGNIS_CHECK(is_float(format)) << to_string(format);
  switch (format) {
    case DType::Float64:
    case DType::WeakFloat: {
      const auto code = std::bit_cast<uint64_t>(value);
      return std::isnan(value) ? code | kDoubleQuiet : code;
    }
    // The conversion instruction rounds once, to nearest even, and keeps NaN payloads: the same, but faster.
    case DType::Float32: return std::bit_cast<uint32_t>(static_cast<float>(value));
    default: return encode_generic(format, value, overflow);
  }
}

uint64_t encode_float_from_int(DType format, int64_t value, bool is_unsigned_value,
                               Fp8Overflow overflow) {
  const bool negative = !is_unsigned_value && value < 0;
  uint64_t magnitude = static_cast<uint64_t>(value);
  if (negative) magnitude = 0 - magnitude;
  if (format != DType::Float64 && format != DType::WeakFloat && (magnitude >> 53) != 0) {
    // Rounding to double first and then to the format would round twice. Dropping the low bits and keeping their
    // "or" in the last bit kept (round to odd) leaves the second rounding the only one that counts.
    const int drop = 64 - 53 - std::countl_zero(magnitude);
    const uint64_t sticky = (magnitude & low_mask(drop)) != 0 ? 1 : 0;
    magnitude = ((magnitude >> drop) | sticky) << drop;
  }
  const double rounded = static_cast<double>(magnitude);
  return encode_float(format, negative ? -rounded : rounded, overflow);
}

double round_to(DType format, double value) {
  if (format == DType::Float32) return static_cast<double>(static_cast<float>(value));
  if (format == DType::Float64 || format == DType::WeakFloat) return value;
  return decode_float(format, encode_float(format, value));
}

int64_t float_to_int(DType to, double value) {
  if (to == DType::Bool) return std::isnan(value) || value != 0.0 ? 1 : 0;
  IGNIS_CHECK(is_int(to)) << to_string(to);
  if (std::isnan(value)) return 0;
  // 2^63 and 2^64 are doubles; the largest integers of 64 bits are not, so compare with the power above them.
  if (to == DType::UInt64) {
    if (value <= 0.0) return 0;
    if (value >= 18446744073709551616.0) return int_max(DType::UInt64);
    return static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  const int64_t low = int_min(to);
  const int64_t high = int_max(to);
  if (value >= static_cast<double>(high)) return high;
  if (value <= static_cast<double>(low)) return low;
  return static_cast<int64_t>(value);
}

int64_t wrap_int(DType to, int64_t value) {
  switch (to) {
    case DType::Bool: return value != 0 ? 1 : 0;
    case DType::Int8: return static_cast<int8_t>(value);
    case DType::UInt8: return static_cast<uint8_t>(value);
    case DType::Int16: return static_cast<int16_t>(value);
    case DType::UInt16: return static_cast<uint16_t>(value);
    case DType::Int32: return static_cast<int32_t>(value);
    case DType::UInt32: return static_cast<uint32_t>(value);
    case DType::Int64:
    case DType::UInt64:
    case DType::WeakInt: return value;
    default: IGNIS_CHECK(false) << to_string(to); return 0;
  }
}

}  // namespace ignis
