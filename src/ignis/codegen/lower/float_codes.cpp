#include "ignis/codegen/lower/float_codes.h"

#include <cmath>

namespace ignis::codegen {

namespace {

enum class Specials : uint8_t {
  Ieee,  ///< the highest exponent holds Inf and NaN
  Fn,    ///< no Inf, one NaN a sign
  Fnuz,  ///< no Inf, no -0; the code of -0 is NaN
};

struct Format {
  int bits, mantissa_bits, bias;
  Specials specials;
  int64_t max_finite;  ///< code of the largest finite value
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::Fp8E4M3: return {8, 3, 7, Specials::Fn, 0x7E};
    case DType::Fp8E5M2: return {8, 2, 15, Specials::Ieee, 0x7B};
    case DType::Fp8E4M3Fnuz: return {8, 3, 8, Specials::Fnuz, 0x7F};
    case DType::Fp8E5M2Fnuz: return {8, 2, 16, Specials::Fnuz, 0x7F};
    case DType::Float16: return {16, 10, 15, Specials::Ieee, 0x7BFF};
    case DType::BFloat16: return {16, 7, 127, Specials::Ieee, 0x7F7F};
    default: IGNIS_CHECK(false) << to_string(dtype); return {};
  }
}

constexpr int64_t kInfinity = 0x7F800000, kMagnitude = 0x7FFFFFFF;

}  // namespace

bool is_narrow_float(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16 || is_fp8(dtype);
}

DType code_dtype(DType format) { return size_bytes(format) == 1 ? DType::UInt8 : DType::UInt16; }

Expr decode(DType dtype, const Expr& code) {
  const Format f = format_of(dtype);
  const Expr word = code.cast(DType::Int32);
  if (dtype == DType::BFloat16) return word.shl(16).as_float();
  const int sign_bit = f.bits - 1;
  const Expr size = word & word.integer((int64_t{1} << sign_bit) - 1);
  const Expr sign = (word & word.integer(int64_t{1} << sign_bit)).shl(31 - sign_bit);
  // Normal codes: move the bias. Codes that are subnormal here are normal float32 numbers: as integers times the
  // smallest step. Not by reading them with float32's bias and multiplying: that operand is a float32 subnormal, which
  // the CPU driver's threads take for zero.
  const Expr normal = size.shl(23 - f.mantissa_bits) + size.integer(int64_t{127 - f.bias} << 23);
  const Expr scaled = size.cast(DType::Float32);
  const Expr subnormal =
      (scaled * scaled.number(std::ldexp(1.0, 1 - f.bias - f.mantissa_bits))).bits();
  Expr bits = where(size < size.integer(int64_t{1} << f.mantissa_bits), subnormal, normal);
  switch (f.specials) {
    case Specials::Ieee: {
      const Expr is_special = size > size.integer(f.max_finite);  // Inf, or NaN whose payload stays
      bits = where(is_special, bits | bits.integer(kInfinity), bits);
      break;
    }
    case Specials::Fn:
      bits = where(equal(size, size.integer(0x7F)), bits.integer(0x7FC00000), bits);
      break;
    case Specials::Fnuz:
      bits = where(equal(word, word.integer(0x80)), bits.integer(0x7FC00000), bits);
      break;
  }
  return (bits | sign).as_float();
}

Expr encode(DType dtype, const Expr& value) {
  const Format f = format_of(dtype);
  const int shift = 23 - f.mantissa_bits, sign_bit = f.bits - 1;
  const Expr word = value.bits(), size = word & word.integer(kMagnitude);
  const Expr sign = word.shr(31 - sign_bit) & word.integer(int64_t{1} << sign_bit);
  // Normal numbers: move the bias, round by adding just under half a step, or half where the last bit kept is odd. A
  // carry out of the mantissa is the next exponent.
  const int64_t rebias = int64_t{127 - f.bias} << 23, below_half = (int64_t{1} << (shift - 1)) - 1;
  const Expr last = size.shr(shift) & size.integer(1);
  Expr code = (size + size.integer(below_half - rebias) + last).shr(shift);
  if (dtype != DType::BFloat16) {
    // Below the smallest normal number: adding a number whose last place is the format's step rounds there.
    const Expr magic = value.number(std::ldexp(1.0, 24 - f.bias - f.mantissa_bits));
    const Expr subnormal = (size.as_float() + magic).bits() - magic.bits();
    code = where(size < size.integer(int64_t{128 - f.bias} << 23), subnormal, code);
  }
  const Expr is_nan = size > size.integer(kInfinity);
  Expr nan;
  if (f.specials == Specials::Ieee) {
    const int64_t infinity = ((int64_t{1} << (sign_bit - f.mantissa_bits)) - 1) << f.mantissa_bits;
    code = min(code, code.integer(is_fp8(dtype) ? f.max_finite : infinity));
    // The top of the payload survives; the quiet bit is forced, or a low payload would turn into Inf.
    const int64_t quiet = int64_t{1} << (f.mantissa_bits - 1);
    nan = (size.shr(shift) & size.integer((int64_t{1} << f.mantissa_bits) - 1)) |
          size.integer(infinity | quiet);
  } else {
    code = min(code, code.integer(f.max_finite));
    nan = size.integer(f.specials == Specials::Fn ? 0x7F : 0x80);
  }
  if (f.specials != Specials::Fnuz)
    return (where(is_nan, nan, code) | sign).cast(code_dtype(dtype));
  // No negative zero; infinities are NaN as well.
  const Expr with_sign = where(equal(code, code.integer(0)), code, code | sign);
  return where(size < size.integer(kInfinity), with_sign, nan).cast(code_dtype(dtype));
}

Expr float64_to_float32_odd(const Expr& value) {
  const Expr nearest = value.cast(DType::Float32), back = nearest.cast(DType::Float64),
             bits = nearest.bits();
  // Away from zero: one step back. What lies between two float32 gets an odd last bit.
  const Expr is_beyond = magnitude(back) > magnitude(value);
  const Expr truncated = bits - is_beyond.cast(DType::Int32);
  return where(equal(back, value), bits, truncated | bits.integer(1)).as_float();
}

}  // namespace ignis::codegen
