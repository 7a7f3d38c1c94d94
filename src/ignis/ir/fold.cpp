#include "ignis/ir/fold.h"

#include "ignis/base/float_formats.h"
#include "ignis/ir/range.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

namespace ignis::ir {
namespace {

// Makes the last bit of a rounded result sticky ("round to odd"), so that a second rounding to 51 or fewer bits gives
// what one rounding of the exact value would have given. `error` is exact minus rounded.
double round_to_odd(double rounded, double error) {
  if (error == 0 || !std::isfinite(rounded) || (std::bit_cast<uint64_t>(rounded) & 1) != 0)
    return rounded;
  return std::nextafter(rounded, error > 0 ? std::numeric_limits<double>::infinity()
                                           : -std::numeric_limits<double>::infinity());
}

double sticky_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  return std::isfinite(sum) && std::isfinite(error) ? round_to_odd(sum, error) : sum;
}

double sticky_int(int64_t v, bool is_uint64) {
  const auto u = static_cast<uint64_t>(v);
  const uint64_t size = is_uint64 || v >= 0 ? u : ~u + 1;
  const int spare = std::max(0, 11 - std::countl_zero(size));  // bits beyond double's 53
  uint64_t kept = size >> spare << spare;
  if (kept != size) kept |= uint64_t{1} << spare;
  const auto d = static_cast<double>(kept);
  return is_uint64 || v >= 0 ? d : -d;
}

// The grid of `dtype`; fp8 arithmetic goes through float32.
Node float_result(Graph& graph, DType dtype, double value) {
  if (is_fp8(dtype)) value = round_to(DType::Float32, value);
  return graph.constant_float(dtype, value);
}

std::optional<double> fold_float_unary(Op op, double x) {
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
    default: return std::nullopt;
  }
}

std::optional<double> fold_float_binary(Op op, double a, double b) {
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Fdiv: return a / b;
    case Op::Cmod: return std::fmod(a, b);
    case Op::Pow: return std::pow(a, b);
    case Op::Max:
    case Op::Min: {
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
      if (a == 0 && b == 0 && std::signbit(a) != std::signbit(b)) return std::nullopt;
      return (op == Op::Max) == (a > b) ? a : b;
    }
    default: return std::nullopt;
  }
}

// Weak integers are exact: nullopt when the result leaves int64. Strong ones are wrapped by the caller.
std::optional<int64_t> fold_int_binary(Op op, DType dtype, int64_t a, int64_t b) {
  const bool weak = dtype == DType::WeakInt;
  const bool is_uint64 = dtype == DType::UInt64;
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const auto wrapped = [&](uint64_t v, bool overflow) -> std::optional<int64_t> {
    if (weak && overflow) return std::nullopt;
    return static_cast<int64_t>(v);
  };
  int64_t exact = 0;
  switch (op) {
    case Op::Add: return wrapped(ua + ub, __builtin_add_overflow(a, b, &exact));
    case Op::Sub: return wrapped(ua - ub, __builtin_sub_overflow(a, b, &exact));
    case Op::Mul: return wrapped(ua * ub, __builtin_mul_overflow(a, b, &exact));
    case Op::Max: return is_uint64 ? static_cast<int64_t>(std::max(ua, ub)) : std::max(a, b);
    case Op::Min: return is_uint64 ? static_cast<int64_t>(std::min(ua, ub)) : std::min(a, b);
    case Op::And: return a & b;
    case Op::Or: return a | b;
    case Op::Xor: return a ^ b;
    case Op::Cdiv:
    case Op::Floordiv:
      if (b == 0) return 0;
      if (is_uint64) return static_cast<int64_t>(ua / ub);
      if (b == -1) return wrapped(~ua + 1, a == std::numeric_limits<int64_t>::min());
      return op == Op::Cdiv ? a / b : floor_div(a, b);
    case Op::Cmod:
    case Op::Floormod:
      if (b == 0) return 0;
      if (is_uint64) return static_cast<int64_t>(ua % ub);
      if (b == -1) return 0;
      return op == Op::Cmod ? a % b : floor_mod(a, b);
    case Op::Shl: {
      if (weak) {
        if (a == 0) return 0;
        if (b < 0 || b > 62) return std::nullopt;
        return wrapped(ua << b, __builtin_mul_overflow(a, int64_t{1} << b, &exact));
      }
      return b < 0 || b >= bits(dtype) ? 0 : static_cast<int64_t>(ua << b);
    }
    case Op::Shr: {
      if (weak && b < 0) return std::nullopt;
      const bool all_out = b < 0 || b >= (weak ? 64 : bits(dtype));
      if (is_uint64) return all_out ? 0 : static_cast<int64_t>(ua >> b);
      return all_out ? (a < 0 ? -1 : 0) : a >> b;
    }
    case Op::Pow: {
      if (b < 0) return std::nullopt;
      uint64_t result = 1, base = ua;
      bool overflow = false;
      for (uint64_t e = ub; e != 0; e >>= 1) {
        int64_t ignored = 0;
        if ((e & 1) != 0) {
          overflow |= __builtin_mul_overflow(static_cast<int64_t>(result),
                                             static_cast<int64_t>(base), &ignored);
          result *= base;
        }
        if (e > 1) {
          overflow |= __builtin_mul_overflow(static_cast<int64_t>(base), static_cast<int64_t>(base),
                                             &ignored);
          base *= base;
        }
      }
      return wrapped(result, overflow);
    }
    default: return std::nullopt;
  }
}

Node fold_compare(Graph& graph, Op op, const Node& a, const Node& b) {
  bool result = false;
  if (is_float(a.dtype()) || is_float(b.dtype())) {
    const double x = a.const_float(), y = b.const_float();
    result = op == Op::Cmplt ? x < y : op == Op::Cmpeq ? x == y : !(x == y);
  } else {
    const int64_t x = a.const_int(), y = b.const_int();
    const bool less =
        a.dtype() == DType::UInt64 ? static_cast<uint64_t>(x) < static_cast<uint64_t>(y) : x < y;
    result = op == Op::Cmplt ? less : (op == Op::Cmpeq) == (x == y);
  }
  return graph.constant(DType::Bool, result ? 1 : 0);
}

Node fold_cast(Graph& graph, const Node& x, DType to) {
  const DType from = x.dtype();
  if (is_float(from)) {
    const double v = x.const_float();
    if (to == DType::Bool) return graph.constant(to, v != 0 ? 1 : 0);  // NaN is true
    if (to == DType::WeakInt) {
      if (!(std::abs(v) < 9.0e18)) return Node();
      return graph.constant(to, static_cast<int64_t>(v));
    }
    return is_float(to) ? graph.constant_float(to, v) : graph.constant(to, float_to_int(to, v));
  }
  const int64_t v = x.const_int();
  if (!is_float(to)) return graph.constant(to, v);
  if (to == DType::Float64 || to == DType::WeakFloat)
    return graph.constant_float(to, x.const_float());
  return graph.constant_float(to, sticky_int(v, from == DType::UInt64));
}

Node fold_bitcast(Graph& graph, const Node& x, DType to) {
  const DType from = x.dtype();
  if (is_weak(from) || is_weak(to) || from == DType::Bool || to == DType::Bool ||
      size_bytes(from) != size_bytes(to)) {
    return Node();
  }
  if (is_float(from) && std::isnan(x.const_float())) return Node();  // which payload is not kept
  const uint64_t code =
      is_float(from) ? encode_float(from, x.const_float()) : static_cast<uint64_t>(x.const_int());
  if (!is_float(to)) return graph.constant(to, static_cast<int64_t>(code));
  const double value = decode_float(to, code);
  return std::isnan(value) ? Node() : graph.constant_float(to, value);
}

Node fold_mulacc(Graph& graph, const Node& node) {
  const Node a = node.src(0), b = node.src(1), c = node.src(2);
  const DType dtype = node.dtype();
  if (!is_float(dtype)) {
    const auto product = fold_int_binary(Op::Mul, dtype, a.const_int(), b.const_int());
    if (!product) return Node();
    const auto sum = fold_int_binary(Op::Add, dtype, *product, c.const_int());
    return sum ? graph.constant(dtype, *sum) : Node();
  }
  if (dtype == DType::Float64 || dtype == DType::WeakFloat) {
    return graph.constant_float(dtype, std::fma(a.const_float(), b.const_float(), c.const_float()));
  }
  // The product of two values of 24 or fewer bits is exact in double.
  return float_result(graph, dtype, sticky_sum(a.const_float() * b.const_float(), c.const_float()));
}

}  // namespace

Node fold_constants(Graph& graph, const Node& node) {
  if (!is_elementwise(node.op()) || node.lanes() != 1) return Node();
  for (int i = 0; i < node.source_count(); ++i) {
    if (!node.src(i).is_const()) return Node();
  }
  const Op op = node.op();
  const DType dtype = node.dtype();
  const Node x = node.src(0);
  if (op == Op::Cast) return fold_cast(graph, x, dtype);
  if (op == Op::Bitcast) return fold_bitcast(graph, x, dtype);
  if (op == Op::Where) return x.const_int() != 0 ? node.src(1) : node.src(2);
  if (is_comparison(op)) return fold_compare(graph, op, x, node.src(1));
  if (op == Op::Mulacc) return fold_mulacc(graph, node);

  if (is_float(dtype)) {
    if (!is_float(x.dtype())) return Node();
    std::optional<double> value;
    if (node.source_count() == 1) {
      value = fold_float_unary(op, x.const_float());
    } else if ((op == Op::Add || op == Op::Sub) && dtype != DType::Float64 &&
               dtype != DType::WeakFloat) {
      const double b = node.src(1).const_float();
      value = sticky_sum(x.const_float(), op == Op::Add ? b : -b);
    } else {
      value = fold_float_binary(op, x.const_float(), node.src(1).const_float());
    }
    return value ? float_result(graph, dtype, *value) : Node();
  }
  const int64_t a = x.const_int();
  if (dtype == DType::Bool) {
    if (node.source_count() != 2) return Node();
    const bool p = a != 0, q = node.src(1).const_int() != 0;
    switch (op) {
      case Op::And:
      case Op::Mul:
      case Op::Min: return graph.constant(dtype, p && q);
      case Op::Or:
      case Op::Add:
      case Op::Max: return graph.constant(dtype, p || q);
      case Op::Xor: return graph.constant(dtype, p != q);
      default: return Node();
    }
  }
  if (!is_int(dtype)) return Node();
  std::optional<int64_t> value;
  if (op == Op::Neg) {
    value = fold_int_binary(Op::Sub, dtype, 0, a);
  } else if (op == Op::Trunc || op == Op::Rint) {
    value = a;
  } else if (node.source_count() == 2) {
    value = fold_int_binary(op, dtype, a, node.src(1).const_int());
  }
  return value ? graph.constant(dtype, *value) : Node();
}

}  // namespace ignis::ir
