#include "ignis/base/check.h"
#include "ignis/codegen/render/c.h"
#include "ignis/codegen/render/semantics.h"

#include <fmt/format.h>

namespace ignis::codegen {

using ir::Node;
using ir::Op;

const char* const kCHelpers = R"(
typedef signed char i8;
typedef unsigned char u8, b8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
#define LANES(n) for (int l = 0; l < n; ++l)

/* Rounding by way of 2^23 (2^52): exact below it, nothing to round beyond it. NaN stays. */
#define ROUNDING(F, MAGIC, ABS, COPYSIGN)                                  \
  static inline F rint_##F(F x) {                                          \
    F m = ABS(x), r = (m + MAGIC) - MAGIC;                                 \
    return m < MAGIC ? COPYSIGN(r, x) : x;                                 \
  }                                                                        \
  static inline F trunc_##F(F x) {                                         \
    F m = ABS(x), r = (m + MAGIC) - MAGIC;                                 \
    r = r > m ? r - 1 : r;                                                 \
    return m < MAGIC ? COPYSIGN(r, x) : x;                                 \
  }
ROUNDING(f32, 0x1p23f, __builtin_fabsf, __builtin_copysignf)
ROUNDING(f64, 0x1p52, __builtin_fabs, __builtin_copysign)

/* NaN wins in max and min; the _c forms take a first operand that is never NaN. */
#define EXTREMA(T)                                                         \
  static inline T max_##T(T a, T b) { return a > b || a != a ? a : b; }    \
  static inline T min_##T(T a, T b) { return a < b || a != a ? a : b; }    \
  static inline T max_c_##T(T c, T x) { return c > x ? c : x; }            \
  static inline T min_c_##T(T c, T x) { return c < x ? c : x; }
EXTREMA(f32) EXTREMA(f64) EXTREMA(b8)
EXTREMA(i8) EXTREMA(u8) EXTREMA(i16) EXTREMA(u16) EXTREMA(i32) EXTREMA(u32) EXTREMA(i64) EXTREMA(u64)

/* Float to integer: saturates, NaN gives 0. LOW and HIGH are the first values that do not fit downwards (exclusive)
   and upwards (inclusive). */
#define SATURATE(T, LOW, HIGH, MIN, MAX)                                   \
  static inline T T##_from_f64(f64 x) {                                    \
    return x != x ? 0 : x >= HIGH ? MAX : x < LOW ? MIN : (T)x;            \
  }                                                                        \
  static inline T T##_from_f32(f32 x) {                                    \
    return x != x ? 0 : x >= HIGH##f ? MAX : x < LOW##f ? MIN : (T)x;      \
  }
SATURATE(i8, -0x1p7, 0x1p7, -128, 127)
SATURATE(u8, 0x0p0, 0x1p8, 0, 255)
SATURATE(i16, -0x1p15, 0x1p15, -32768, 32767)
SATURATE(u16, 0x0p0, 0x1p16, 0, 65535)
SATURATE(i32, -0x1p31, 0x1p31, -2147483647 - 1, 2147483647)
SATURATE(u32, 0x0p0, 0x1p32, 0, 4294967295u)
SATURATE(i64, -0x1p63, 0x1p63, -9223372036854775807ll - 1, 9223372036854775807ll)
SATURATE(u64, 0x0p0, 0x1p64, 0, 18446744073709551615ull)

#define BITCASTS(A, B)                                                     \
  static inline A A##_bits_##B(B x) { union { B from; A to; } u; u.from = x; return u.to; }
BITCASTS(i32, f32) BITCASTS(u32, f32) BITCASTS(f32, i32) BITCASTS(f32, u32)
BITCASTS(i64, f64) BITCASTS(u64, f64) BITCASTS(f64, i64) BITCASTS(f64, u64)
)";

std::string c_type(DType dtype, int lanes) {
  const std::string element = dtype == DType::Bool ? "b8" : std::string(to_string(dtype));
  return lanes == 1 ? element : fmt::format("{}x{}", element, lanes);
}

namespace {

std::string cast_expression(DType from, DType to, const std::string& x) {
  if (from == to) return x;
  if (to == DType::Bool) return fmt::format("(b8)({} != 0)", x);
  if (is_float(from) && is_int(to))
    return fmt::format("{}_from_{}({})", c_type(to, 1), c_type(from, 1), x);
  return fmt::format("({}){}", c_type(to, 1), x);
}

std::string bitcast_expression(DType from, DType to, const std::string& x) {
  if (from == to) return x;
  if (is_float(from) || is_float(to)) {
    return fmt::format("{}_bits_{}({})", c_type(to, 1), c_type(from, 1), x);
  }
  return fmt::format("({}){}", c_type(to, 1), x);
}

std::string extremum_expression(const Node& n, const std::vector<std::string>& x) {
  const std::string name = n.is(Op::Max) ? "max" : "min", type = c_type(n.dtype(), 1);
  if (is_float(n.dtype())) {
    if (is_never_nan(n.src(0))) return fmt::format("{}_c_{}({}, {})", name, type, x[0], x[1]);
    if (is_never_nan(n.src(1))) return fmt::format("{}_c_{}({}, {})", name, type, x[1], x[0]);
  }
  return fmt::format("{}_{}({}, {})", name, type, x[0], x[1]);
}

/// The unsigned type of the same width: shifting a negative number left is undefined in C.
std::string unsigned_type(DType d) { return fmt::format("u{}", bits(d)); }

}  // namespace

std::string c_scalar_expression(const Node& n, const Target& target,
                                const std::vector<std::string>& x) {
  const DType from = n.src(0).dtype();
  const std::string type = c_type(n.dtype(), 1);
  const bool is_f64 = from == DType::Float64;
  const auto infix = [&](const char* sign) {
    return fmt::format("({})({} {} {})", type, x[0], sign,
                       x[1]);  // the cast undoes C's promotion to int
  };
  switch (n.op()) {
    case Op::Cast: return cast_expression(from, n.dtype(), x[0]);
    case Op::Bitcast: return bitcast_expression(from, n.dtype(), x[0]);
    case Op::Neg: return fmt::format("({})(-{})", type, x[0]);
    case Op::Trunc: return is_float(from) ? fmt::format("trunc_{}({})", type, x[0]) : x[0];
    case Op::Rint: return is_float(from) ? fmt::format("rint_{}({})", type, x[0]) : x[0];
    case Op::Sqrt: return fmt::format("__builtin_sqrt{}({})", is_f64 ? "" : "f", x[0]);
    case Op::Add: return infix("+");
    case Op::Sub: return infix("-");
    case Op::Mul: return infix("*");
    case Op::Fdiv:
    case Op::Cdiv: return infix("/");
    case Op::Cmod: return infix("%");
    case Op::Max:
    case Op::Min: return extremum_expression(n, x);
    case Op::And: return infix("&");
    case Op::Or: return infix("|");
    case Op::Xor: return infix("^");
    case Op::Shl: return fmt::format("({})(({}){} << {})", type, unsigned_type(from), x[0], x[1]);
    case Op::Shr: return infix(">>");
    case Op::Cmplt: return infix("<");
    case Op::Cmpne: return infix("!=");
    case Op::Cmpeq: return infix("==");
    case Op::Where: return fmt::format("{} ? {} : {}", x[0], x[1], x[2]);
    case Op::Mulacc:
      if (is_float(from) && target.has_fma) {
        return fmt::format("__builtin_fma{}({}, {}, {})", is_f64 ? "" : "f", x[0], x[1], x[2]);
      }
      return fmt::format("({})({} * {} + {})", type, x[0], x[1], x[2]);
    default: break;
  }
  IGNIS_CHECK(false) << "not an elementwise operation of a program: " << n;
  return "";
}

}  // namespace ignis::codegen
