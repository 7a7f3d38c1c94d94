#include "ignis/codegen/lower/decompose.h"

#include "ignis/codegen/lower/expr.h"
#include "ignis/codegen/lower/walk.h"
#include "ignis/ir/range.h"

#include <bit>
#include <cmath>

namespace ignis::codegen {

using ir::Node;
using ir::Op;

namespace {

bool has_sign(DType dtype) { return !is_unsigned(dtype) && dtype != DType::Bool; }

DType unsigned_of(DType dtype) {
  switch (size_bytes(dtype)) {
    case 1: return DType::UInt8;
    case 2: return DType::UInt16;
    case 4: return DType::UInt32;
    default: return DType::UInt64;
  }
}

class Decomposer {
 public:
  explicit Decomposer(ir::Graph& graph) : graph_(graph) {}

  Node rewrite(const Node& node, std::span<const Node> sources) {
    if (!ir::is_elementwise(node.op()) || is_weak(node.dtype()))
      return graph_.rebuild(node, sources);
    const Expr x(graph_, sources[0]);
    const Expr y = sources.size() > 1 ? Expr(graph_, sources[1]) : x;
    const DType from = sources[0].dtype();
    switch (node.op()) {
      case Op::Reciprocal: return (x.number(1) / x).node();
      case Op::Fdiv: return divide_floats(x, y);
      case Op::Floordiv: return is_float(from) ? floor(x / y).node() : divide(x, y, Op::Floordiv);
      case Op::Floormod:
        return is_float(from) ? float_remainder(x, y, true) : divide(x, y, Op::Floormod);
      case Op::Cdiv:
        return is_float(from) ? (x / y).unary(Op::Trunc).node() : divide(x, y, Op::Cdiv);
      case Op::Cmod: return is_float(from) ? float_remainder(x, y, false) : divide(x, y, Op::Cmod);
      case Op::Shl:
      case Op::Shr: return shift(x, y, node.op());
      case Op::Trunc:
      case Op::Rint:
        if (!is_float(from)) return sources[0];
        break;
      case Op::Pow:
        if (is_int(from)) return integer_power(x, y);
        break;
      case Op::Add:
      case Op::Max:
        if (from == DType::Bool) return (x | y).node();
        break;
      case Op::Mul:
      case Op::Min:
        if (from == DType::Bool) return (x & y).node();
        break;
      case Op::Sub:
        if (from == DType::Bool) return (x ^ y).node();
        break;
      case Op::Neg:
        if (from == DType::Bool) return (!x).node();
        break;
      case Op::Where: return absolute(node, sources);
      default: break;
    }
    return graph_.rebuild(node, sources);
  }

 private:
  const ir::Interval& range(const Expr& x) { return ranges_.of(x.node()).interval; }
  bool is_never_negative(const Expr& x) { return !has_sign(x.dtype()) || range(x).lo >= 0; }

  /// x / 2^k is exact as a product.
  Node divide_floats(const Expr& x, const Expr& y) {
    if (y.node().is_const()) {
      const double divisor = y.node().const_float();
      int exponent = 0;
      const bool is_power =
          std::isnormal(divisor) && std::abs(std::frexp(divisor, &exponent)) == 0.5;
      if (is_power && std::abs(exponent) < 100) return (x * x.number(1 / divisor)).node();
    }
    return (x / y).node();
  }

  static Expr floor(const Expr& x) {
    const Expr t = x.unary(Op::Trunc);
    return where(x < t, t - t.number(1), t);
  }

  /// x - trunc(x / y) * y, exact while the quotient is below 2^24, corrected into (-|y|, |y|).
  static Node float_remainder(const Expr& x, const Expr& y, bool is_floor) {
    const Expr zero = x.number(0), size = magnitude(y), infinity = x.number(HUGE_VAL);
    const Expr rest = mulacc(-(x / y).unary(Op::Trunc), y, x);
    const Expr positive = where(rest < zero, rest + size, where(rest < size, rest, rest - size));
    const Expr negative = where(rest > zero, rest - size, where(rest > -size, rest, rest + size));
    Expr r = where(x < zero, negative, positive);
    r = where(equal(size, infinity) & (magnitude(x) < infinity), x, r);
    if (is_floor) r = where(differ(r, zero) & ((r < zero) ^ (y < zero)), r + y, r);
    return r.node();
  }

  Node divide(const Expr& x, const Expr& y, Op op) {
    const bool is_quotient = op == Op::Floordiv || op == Op::Cdiv;
    if (y.node().is_const()) return divide_by_constant(x, y, op);
    const Expr zero = x.integer(0), one = x.integer(1);
    const bool maybe_zero = range(y).contains(0),
               maybe_minus = has_sign(y.dtype()) && range(y).contains(-1);
    // Divide by 1 where the division would trap, and put the agreed value in its place.
    Expr unsafe;
    const Expr is_zero = equal(y, zero), is_minus = equal(y, x.integer(-1));
    if (maybe_zero) unsafe = is_zero;
    if (maybe_minus) unsafe = unsafe.node() ? unsafe | is_minus : is_minus;
    const Expr divisor = unsafe.node() ? where(unsafe, one, y) : y;
    Expr value = truncating(x, divisor, op, is_quotient);
    if (maybe_minus) value = where(is_minus, is_quotient ? -x : zero, value);
    if (maybe_zero) value = where(is_zero, zero, value);
    return value.node();
  }

  Node divide_by_constant(const Expr& x, const Expr& y, Op op) {
    const bool is_quotient = op == Op::Floordiv || op == Op::Cdiv,
               is_floor = op == Op::Floordiv || op == Op::Floormod;
    const int64_t d = y.node().const_int();
    if (d == 0) return x.integer(0).node();
    if (d == 1) return is_quotient ? x.node() : x.integer(0).node();
    if (d == -1 && has_sign(x.dtype())) return is_quotient ? (-x).node() : x.integer(0).node();
    const auto bits_of = static_cast<uint64_t>(d);
    const bool is_power = (d > 0 || x.dtype() == DType::UInt64) && std::has_single_bit(bits_of);
    if (is_power && (is_floor || is_never_negative(x))) {
      if (is_quotient) return x.shr(std::countr_zero(bits_of)).node();
      return (x & x.integer(static_cast<int64_t>(bits_of - 1))).node();
    }
    return truncating(x, y, op, is_quotient).node();
  }

  /// A division whose divisor is neither 0 nor -1.
  Expr truncating(const Expr& x, const Expr& y, Op op, bool is_quotient) {
    const Expr quotient = x.binary(Op::Cdiv, y), remainder = x.binary(Op::Cmod, y);
    const bool is_floor = op == Op::Floordiv || op == Op::Floormod;
    if (!is_floor || (is_never_negative(x) && is_never_negative(y)))
      return is_quotient ? quotient : remainder;
    // Truncation rounded up where there is a remainder of another sign than the divisor's.
    const Expr zero = x.integer(0);
    const Expr off = is_never_negative(y) ? remainder < zero
                                          : differ(remainder, zero) & ((remainder ^ y) < zero);
    return is_quotient ? quotient - off.cast(x.dtype()) : remainder + where(off, y, zero);
  }

  Node shift(const Expr& x, const Expr& count, Op op) {
    const int width = bits(x.dtype());
    const bool keeps_sign = op == Op::Shr && has_sign(x.dtype());
    const ir::Interval known = range(count);
    if (known.lo >= 0 && known.hi < width) return x.make(op, x.dtype(), {x, count}).node();
    if (known.lo >= width || known.hi < 0) {
      return keeps_sign ? x.shr(width - 1).node() : x.integer(0).node();
    }
    // A negative count is a huge unsigned one.
    const Expr amount = count.cast(unsigned_of(count.dtype()));
    const Expr inside = amount < amount.integer(width);
    if (keeps_sign)
      return x.make(op, x.dtype(), {x, where(inside, count, count.integer(width - 1))}).node();
    const Expr masked = count & count.integer(width - 1);
    return where(inside, x.make(op, x.dtype(), {x, masked}), x.integer(0)).node();
  }

  /// Square and multiply over all bits of the exponent: products wrap, so none may be left out.
  Node integer_power(const Expr& base, const Expr& exponent) {
    const Expr zero = exponent.integer(0), one = base.integer(1);
    if (exponent.node().is_const() &&
        (exponent.node().const_int() >= 0 || is_unsigned(exponent.dtype()))) {
      Expr result = one, square = base;
      for (auto e = static_cast<uint64_t>(exponent.node().const_int()); e != 0;
           e >>= 1, square = square * square) {
        if ((e & 1) != 0) result = result * square;
      }
      return result.node();
    }
    const bool with_sign = has_sign(exponent.dtype());
    Expr result = one, square = base;
    for (int bit = 0; bit < bits(exponent.dtype()) - (with_sign ? 1 : 0); ++bit) {
      if (range(exponent).has_high() && range(exponent).hi >> bit == 0) break;
      const Expr is_set = differ(exponent & exponent.integer(int64_t{1} << bit), zero);
      result = where(is_set, result * square, result);
      square = square * square;
    }
    if (!with_sign || range(exponent).lo >= 0) return result.node();
    Expr inverse = where(equal(base, one), one, base.integer(0));
    if (has_sign(base.dtype())) {
      const Expr is_odd = differ(exponent & exponent.integer(1), zero);
      inverse = where(equal(base, base.integer(-1)), where(is_odd, base.integer(-1), one), inverse);
    }
    return where(exponent < zero, inverse, result).node();
  }

  /// where(x < 0, -x, x + 0) on floats clears the sign bit.
  Node absolute(const Node& node, std::span<const Node> sources) {
    const Node c = sources[0], then = sources[1], otherwise = sources[2];
    const bool is_float_value = node.dtype() == DType::Float32 || node.dtype() == DType::Float64;
    if (is_float_value && c.is(Op::Cmplt) && c.src(1).is_const_value(0) && then.is(Op::Neg) &&
        then.src(0) == c.src(0) && otherwise.is(Op::Add) && otherwise.src(0) == c.src(0) &&
        otherwise.src(1).is_const_value(0)) {
      return magnitude(Expr(graph_, c.src(0))).node();
    }
    return graph_.rebuild(node, sources);
  }

  ir::Graph& graph_;
  ir::RangeAnalysis ranges_;
};

}  // namespace

Node decompose_ops(ir::Graph& graph, const Node& sink, const Target& target) {
  (void)target;  // all CPU targets have the same operations
  Decomposer decomposer(graph);
  return rebuild_all(sink, [&](const Node& node, std::span<const Node> sources) {
    return decomposer.rewrite(node, sources);
  });
}

}  // namespace ignis::codegen
