#include "ignis/interp/elementwise.h"

#include "ignis/base/check.h"
#include "ignis/base/float_formats.h"

#include <bit>
#include <cmath>
#include <limits>

namespace ignis::interp {
namespace {

using ir::Op;

/// int64 or uint64 to float64 such that a second rounding to any narrower float format gives the correctly rounded
/// value of the integer: what does not fit is kept as a sticky last bit (round to odd).
double int_to_double_odd(DType from, int64_t value) {
  const bool negative = from != DType::UInt64 && value < 0;
  uint64_t magnitude = static_cast<uint64_t>(value);
  if (negative) magnitude = 0 - magnitude;
  const int excess = 64 - std::countl_zero(magnitude) - 53;
  if (excess > 0) {
    const uint64_t lost = magnitude & ((uint64_t{1} << excess) - 1);
    magnitude = magnitude >> excess << excess;
    if (lost != 0) magnitude |= uint64_t{1} << excess;
  }
  const double result = static_cast<double>(magnitude);
  return negative ? -result : result;
}

double int_to_double(DType from, int64_t value) {
  return from == DType::UInt64 ? static_cast<double>(static_cast<uint64_t>(value))
                               : static_cast<double>(value);
}

double float_unary(Op op, double x) {
  switch (op) {
    case Op::Neg: return -x;
    case Op::Trunc: return std::trunc(x);
    case Op::Rint: return std::nearbyint(x);
    case Op::Sqrt: return std::sqrt(x);
    case Op::Reciprocal: return 1.0 / x;
    case Op::Exp2: return std::exp2(x);
    case Op::Log2: return std::log2(x);
    case Op::Exp: return std::exp(x);
    case Op::Log: return std::log(x);
    case Op::Sin: return std::sin(x);
    case Op::Cos: return std::cos(x);
    case Op::Erf: return std::erf(x);
    case Op::Tanh: return std::tanh(x);
    case Op::Atan: return std::atan(x);
    default: IGNIS_CHECK(false) << ir::to_string(op); return 0;
  }
}

/// Division that rounds down; the remainder has the divisor's sign.
double floor_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double float_binary(Op op, double a, double b) {
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Fdiv: return a / b;
    case Op::Cdiv: return std::trunc(a / b);
    case Op::Cmod: return std::fmod(a, b);
    case Op::Floordiv: return std::floor(a / b);
    case Op::Floormod: return floor_mod(a, b);
    case Op::Max: return std::isnan(a) ? a : std::isnan(b) ? b : (a > b ? a : b);
    case Op::Min: return std::isnan(a) ? a : std::isnan(b) ? b : (a < b ? a : b);
    case Op::Pow: return std::pow(a, b);
    default: IGNIS_CHECK(false) << ir::to_string(op); return 0;
  }
}

/// Truncating division, wrapping: x / 0 is 0, MIN / -1 is MIN.
int64_t divide(DType dtype, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (dtype == DType::UInt64)
    return static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  return a / b;
}

int64_t remainder(DType dtype, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (dtype == DType::UInt64)
    return static_cast<int64_t>(static_cast<uint64_t>(a) % static_cast<uint64_t>(b));
  return b == -1 ? 0 : a % b;
}

/// True when an exact non-zero remainder has to be corrected for the rounding down.
bool needs_floor(DType dtype, int64_t rem, int64_t b) {
  return dtype != DType::UInt64 && rem != 0 && (rem < 0) != (b < 0);
}

bool less(DType a_dtype, int64_t a, DType b_dtype, int64_t b) {
  const bool a_negative = a_dtype != DType::UInt64 && a < 0;
  const bool b_negative = b_dtype != DType::UInt64 && b < 0;
  if (a_negative != b_negative) return a_negative;
  return static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
}

bool equal(DType a_dtype, int64_t a, DType b_dtype, int64_t b) {
  return a == b && !less(a_dtype, a, b_dtype, b) && !less(b_dtype, b, a_dtype, a);
}

int64_t power(DType dtype, int64_t base, int64_t exponent) {
  if (dtype != DType::UInt64 && exponent < 0) {  // 1 / base^n, truncated
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (uint64_t e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
    if (e & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<int64_t>(result);
}

/// Counts of the width or more shift everything out; negative counts are huge ones.
int64_t shift(Op op, DType dtype, int64_t x, int64_t count) {
  const int width = dtype == DType::WeakInt ? 64 : bits(dtype);
  const bool out = count < 0 || count >= width;
  if (op == Op::Shl) return out ? 0 : static_cast<int64_t>(static_cast<uint64_t>(x) << count);
  if (is_unsigned(dtype) || dtype == DType::Bool) {
    return out ? 0 : static_cast<int64_t>(static_cast<uint64_t>(x) >> count);
  }
  return out ? (x < 0 ? -1 : 0) : x >> count;
}

/// The exact result modulo 2^64; the caller wraps it to the dtype.
int64_t int_binary(Op op, DType dtype, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::Add: return static_cast<int64_t>(ua + ub);
    case Op::Sub: return static_cast<int64_t>(ua - ub);
    case Op::Mul: return static_cast<int64_t>(ua * ub);
    case Op::Cdiv: return divide(dtype, a, b);
    case Op::Cmod: return remainder(dtype, a, b);
    case Op::Floordiv: {
      const int64_t correction = needs_floor(dtype, remainder(dtype, a, b), b) ? 1 : 0;
      return static_cast<int64_t>(static_cast<uint64_t>(divide(dtype, a, b)) -
                                  static_cast<uint64_t>(correction));
    }
    case Op::Floormod: {
      const int64_t rem = remainder(dtype, a, b);
      return needs_floor(dtype, rem, b) ? rem + b : rem;
    }
    case Op::Max: return less(dtype, a, dtype, b) ? b : a;
    case Op::Min: return less(dtype, b, dtype, a) ? b : a;
    case Op::Pow: return power(dtype, a, b);
    case Op::And: return a & b;
    case Op::Or: return a | b;
    case Op::Xor: return a ^ b;
    case Op::Shl:
    case Op::Shr: return shift(op, dtype, a, b);
    default: IGNIS_CHECK(false) << ir::to_string(op); return 0;
  }
}

void wrap_row(DType dtype, int64_t* values, int64_t n) {
  switch (dtype) {
    case DType::Int64:
    case DType::UInt64:
    case DType::WeakInt: return;
    case DType::Int32:
      for (int64_t i = 0; i < n; ++i) values[i] = static_cast<int32_t>(values[i]);
      return;
    default:
      for (int64_t i = 0; i < n; ++i) values[i] = wrap_int(dtype, values[i]);
  }
}

void cast_row(const Operand& x, const Destination& target, int64_t n, bool round) {
  if (is_float(target.dtype)) {
    if (is_float(x.dtype)) {
      for (int64_t i = 0; i < n; ++i) target.floats[i] = x.floats[i];
    } else if (round && target.dtype != DType::Float64 && target.dtype != DType::WeakFloat) {
      for (int64_t i = 0; i < n; ++i) target.floats[i] = int_to_double_odd(x.dtype, x.ints[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) target.floats[i] = int_to_double(x.dtype, x.ints[i]);
    }
    return;
  }
  if (!is_float(x.dtype)) {
    for (int64_t i = 0; i < n; ++i) target.ints[i] = x.ints[i];
  } else if (target.dtype == DType::Bool) {
    for (int64_t i = 0; i < n; ++i) target.ints[i] = x.floats[i] != 0;  // NaN is true
  } else {
    const DType to = target.dtype == DType::WeakInt ? DType::Int64 : target.dtype;
    for (int64_t i = 0; i < n; ++i) target.ints[i] = float_to_int(to, x.floats[i]);
  }
}

/// Reinterprets element by element; both dtypes have the same size.
void bitcast_row(const Operand& x, const Destination& target, int64_t n) {
  const int width = bits(target.dtype);
  const uint64_t mask =
      width >= 64 ? ~uint64_t{0} : (uint64_t{1} << (size_bytes(target.dtype) * 8)) - 1;
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t code = (is_float(x.dtype) ? encode_float(x.dtype, x.floats[i])
                                             : static_cast<uint64_t>(x.ints[i])) &
                          mask;
    if (is_float(target.dtype)) {
      target.floats[i] = decode_float(target.dtype, code);
    } else {
      target.ints[i] = wrap_int(target.dtype, static_cast<int64_t>(code));
    }
  }
}

void compare_row(Op op, const Operand& a, const Operand& b, int64_t* out, int64_t n) {
  if (is_float(a.dtype)) {
    for (int64_t i = 0; i < n; ++i) {
      const double x = a.floats[i], y = b.floats[i];
      out[i] = op == Op::Cmplt ? x < y : op == Op::Cmpeq ? x == y : x != y;
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t x = a.ints[i], y = b.ints[i];
    out[i] = op == Op::Cmplt ? less(a.dtype, x, b.dtype, y)
                             : equal(a.dtype, x, b.dtype, y) == (op == Op::Cmpeq);
  }
}

void where_row(const Operand* operands, const Destination& target, int64_t n) {
  const int64_t* condition = operands[0].ints;
  if (is_float(target.dtype)) {
    for (int64_t i = 0; i < n; ++i)
      target.floats[i] = (condition[i] ? operands[1] : operands[2]).floats[i];
  } else {
    for (int64_t i = 0; i < n; ++i)
      target.ints[i] = (condition[i] ? operands[1] : operands[2]).ints[i];
  }
}

void float_row(Op op, const Operand* operands, double* out, int64_t n) {
  const double* a = operands[0].floats;
  if (ir::op_class(op) == ir::OpClass::Unary) {
    for (int64_t i = 0; i < n; ++i) out[i] = float_unary(op, a[i]);
    return;
  }
  const double* b = operands[1].floats;
  switch (op) {  // the frequent ones without a call for each element
    case Op::Add:
      for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
      return;
    case Op::Sub:
      for (int64_t i = 0; i < n; ++i) out[i] = a[i] - b[i];
      return;
    case Op::Mul:
      for (int64_t i = 0; i < n; ++i) out[i] = a[i] * b[i];
      return;
    case Op::Fdiv:
      for (int64_t i = 0; i < n; ++i) out[i] = a[i] / b[i];
      return;
    case Op::Mulacc:
      for (int64_t i = 0; i < n; ++i) out[i] = std::fma(a[i], b[i], operands[2].floats[i]);
      return;
    default:
      for (int64_t i = 0; i < n; ++i) out[i] = float_binary(op, a[i], b[i]);
  }
}

void int_row(Op op, const Operand* operands, const Destination& target, int64_t n) {
  const int64_t* a = operands[0].ints;
  int64_t* out = target.ints;
  switch (op) {
    case Op::Neg:
      for (int64_t i = 0; i < n; ++i)
        out[i] = static_cast<int64_t>(0 - static_cast<uint64_t>(a[i]));
      return;
    case Op::Trunc:
    case Op::Rint:
      for (int64_t i = 0; i < n; ++i) out[i] = a[i];
      return;
    case Op::Mulacc:
      for (int64_t i = 0; i < n; ++i) {
        const int64_t product = int_binary(Op::Mul, target.dtype, a[i], operands[1].ints[i]);
        out[i] = int_binary(Op::Add, target.dtype, product, operands[2].ints[i]);
      }
      return;
    case Op::Mul:
      for (int64_t i = 0; i < n; ++i)
        out[i] = int_binary(Op::Mul, DType::Int64, a[i], operands[1].ints[i]);
      return;
    case Op::Add:
      for (int64_t i = 0; i < n; ++i)
        out[i] = int_binary(Op::Add, DType::Int64, a[i], operands[1].ints[i]);
      return;
    default:
      for (int64_t i = 0; i < n; ++i)
        out[i] = int_binary(op, target.dtype, a[i], operands[1].ints[i]);
  }
}

}  // namespace

bool can_compute(Op op, DType target, DType operand) {
  if (target == DType::Void || operand == DType::Void) return false;
  switch (op) {
    case Op::Cast:
    case Op::Where: return true;
    case Op::Bitcast: return size_bytes(target) != 0 && size_bytes(operand) != 0;
    case Op::Cmplt:
    case Op::Cmpne:
    case Op::Cmpeq: return target == DType::Bool;
    case Op::Sqrt:
    case Op::Reciprocal:
    case Op::Exp2:
    case Op::Log2:
    case Op::Exp:
    case Op::Log:
    case Op::Sin:
    case Op::Cos:
    case Op::Erf:
    case Op::Tanh:
    case Op::Atan:
    case Op::Fdiv: return is_float(target);
    case Op::And:
    case Op::Or:
    case Op::Xor: return !is_float(target);
    case Op::Shl:
    case Op::Shr: return is_int(target);
    default: return ir::is_elementwise(op);
  }
}

void round_row(DType dtype, double* values, int64_t n) {
  switch (dtype) {
    case DType::Float64:
    case DType::WeakFloat: return;
    case DType::Float32:
      for (int64_t i = 0; i < n; ++i)
        values[i] = static_cast<double>(static_cast<float>(values[i]));
      return;
    default:
      for (int64_t i = 0; i < n; ++i) values[i] = round_to(dtype, values[i]);
  }
}

void compute_row(Op op, const Operand* operands, const Destination& target, int64_t n, bool round) {
  switch (op) {
    case Op::Bitcast: return bitcast_row(operands[0], target, n);
    case Op::Cmplt:
    case Op::Cmpne:
    case Op::Cmpeq: return compare_row(op, operands[0], operands[1], target.ints, n);
    case Op::Where: return where_row(operands, target, n);
    case Op::Cast: cast_row(operands[0], target, n, round); break;
    default:
      if (is_float(target.dtype)) float_row(op, operands, target.floats, n);
      else int_row(op, operands, target, n);
  }
  if (!is_float(target.dtype)) wrap_row(target.dtype, target.ints, n);
  else if (round) round_row(target.dtype, target.floats, n);
}

}  // namespace ignis::interp
