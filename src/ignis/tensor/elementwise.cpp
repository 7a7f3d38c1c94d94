#include "ignis/tensor/elementwise.h"

#include "ignis/base/float_formats.h"
#include "ignis/tensor/build.h"
#include "ignis/tensor/movement.h"

#include <cmath>

namespace ignis::tensor {

using detail::common_graph;
using detail::elementwise;
using detail::joined;
using detail::splat_of;
using detail::unary;
using ir::Node;
using ir::Op;

namespace {

std::string dtype_text(DType dtype) { return std::string(to_string(dtype)); }

/// Both operands as tensors of their common graph.
struct Pair {
  Tensor a, b;
};
Pair as_tensors(std::string_view operation, const Operand& a, const Operand& b) {
  const Operand* const both[] = {&a, &b};
  const auto& graph = common_graph(operation, both);
  return {a.in(graph), b.in(graph)};
}

void require_integers(std::string_view operation, const Tensor& x) {
  if (is_float(x.dtype()))
    fail(std::string(operation) + ": " + x.describe() + " is not an integer tensor.");
}

Tensor binary(std::string_view operation, Op op, DType dtype, const Tensor& a, const Tensor& b) {
  const Tensor both[] = {a, b};
  return elementwise(operation, op, dtype, both);
}

Tensor not_of(const Tensor& x) {
  return binary("not", Op::Xor, DType::Bool, x, Tensor::scalar(x.graph(), true));
}

}  // namespace

namespace detail {

Tensor joined(std::string_view operation, Op op, const Operand& a, const Operand& b) {
  const Pair p = as_tensors(operation, a, b);
  const DType dtype = promote(p.a.dtype(), p.b.dtype());
  return binary(operation, op, dtype, cast(p.a, dtype), cast(p.b, dtype));
}

Tensor unary(Op op, const Tensor& x) {
  const Tensor one[] = {x};
  return elementwise(to_string(op), op, x.dtype(), one);
}

Tensor widen(const Tensor& x) {
  const DType dtype = float_dtype(x.dtype());
  return cast(x, !is_weak(dtype) && bits(dtype) < 32 ? DType::Float32 : dtype);
}

}  // namespace detail

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (dtype == DType::Void) fail("cast: " + x.describe() + " cannot become void.");
  ir::Graph& graph = *x.graph();
  if (const Node splat =
          splat_of(x.node())) {  // the constant is restated: `u8.minimum(1)` has no cast
    Node node;
    if (dtype == DType::Bool) {
      const bool set =
          is_float(splat.dtype()) ? !(splat.const_float() == 0) : splat.const_int() != 0;
      node = graph.constant(dtype, set ? 1 : 0);
    } else if (is_float(splat.dtype())) {
      node = graph.constant_float(dtype, splat.const_float());
    } else {
      node = is_float(dtype) ? graph.constant_float(dtype, splat.const_float())
                             : graph.constant(dtype, splat.const_int());
    }
    return detail::stretch_scalar(x.graph(), node, x.shape()).named(x.name());
  }
  return Tensor(x.graph(), graph.make(Op::Cast, dtype, {x.node()}), x.name());
}

Tensor bitcast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (is_weak(x.dtype()) || is_weak(dtype) || dtype == DType::Void) {
    fail("bitcast: " + x.describe() + " to " + dtype_text(dtype) + ": a weak value has no bits.");
  }
  const int from = size_bytes(x.dtype()), to = size_bytes(dtype);
  if (from == to) {
    return Tensor(x.graph(), x.graph()->make(Op::Bitcast, dtype, {x.node()}), x.name());
  }
  if (x.rank() == 0 || x.shape().back() * from % to != 0 || x.dtype() == DType::Bool ||
      dtype == DType::Bool) {
    fail("bitcast: the last axis of " + x.describe() + " does not divide into elements of " +
         dtype_text(dtype) + ".");
  }
  // Through unsigned words: little endian, the first element is the lowest part.
  const auto word = [](int bytes) {
    return bytes == 1   ? DType::UInt8
           : bytes == 2 ? DType::UInt16
           : bytes == 4 ? DType::UInt32
                        : DType::UInt64;
  };
  const Tensor words = bitcast(x, word(from));
  const int64_t last = x.shape().back();
  if (from < to) {
    const int64_t parts = to / from;
    Shape split = x.shape();
    split.back() = last / parts;
    split.push_back(parts);
    const Tensor grouped = reshape(words, split);
    Tensor value;
    for (int64_t i = 0; i < parts; ++i) {
      const Tensor part = shift_left(cast(select(grouped, -1, i), word(to)), i * from * 8);
      value = value ? bitwise_or(value, part) : part;
    }
    return bitcast(value, dtype);
  }
  const int64_t parts = from / to;
  std::vector<Tensor> pieces;
  for (int64_t i = 0; i < parts; ++i)
    pieces.push_back(cast(shift_right(words, i * to * 8), word(to)));
  Shape shape = x.shape();
  shape.back() = last * parts;
  return bitcast(reshape(stack(pieces, -1), shape), dtype);
}

Tensor add(const Operand& a, const Operand& b) {
  const Pair p = as_tensors("add", a, b);
  const bool is_bool = p.a.dtype() == DType::Bool && p.b.dtype() == DType::Bool;
  return joined("add", is_bool ? Op::Or : Op::Add, p.a, p.b);
}
Tensor sub(const Operand& a, const Operand& b) {
  const Pair p = as_tensors("sub", a, b);
  if (p.a.dtype() == DType::Bool && p.b.dtype() == DType::Bool) {
    fail("sub: " + p.a.describe() + " and " + p.b.describe() + " are bool; use logical_xor.");
  }
  return joined("sub", Op::Sub, p.a, p.b);
}
Tensor mul(const Operand& a, const Operand& b) {
  const Pair p = as_tensors("mul", a, b);
  const bool is_bool = p.a.dtype() == DType::Bool && p.b.dtype() == DType::Bool;
  return joined("mul", is_bool ? Op::And : Op::Mul, p.a, p.b);
}
Tensor div(const Operand& a, const Operand& b) {
  const Pair p = as_tensors("div", a, b);
  DType dtype = promote(p.a.dtype(), p.b.dtype());
  // Two weak ints stay weak; int / int is the default float, also for int64 with uint64.
  if (is_int(p.a.dtype()) && is_int(p.b.dtype())) {
    dtype = is_weak(p.a.dtype()) && is_weak(p.b.dtype()) ? DType::WeakFloat : DType::Float32;
  } else if (!is_float(dtype)) {
    dtype = DType::Float32;
  }
  return binary("div", Op::Fdiv, dtype, cast(p.a, dtype), cast(p.b, dtype));
}

namespace {

/// a - trunc(a / b) * b for floats: exact while the quotient is below 2^24, then corrected to |r| < |b|.
Tensor float_cmod(const Tensor& a, const Tensor& b) {
  const Tensor quotient = trunc(div(a, b));
  const Tensor terms[] = {neg(quotient), b, a};
  const Tensor rest = elementwise("cmod", Op::Mulacc, a.dtype(), terms);
  const Tensor size = abs(b);
  const Tensor positive =
      where(less(rest, 0), rest + size, where(less(rest, size), rest, rest - size));
  const Tensor negative =
      where(greater(rest, 0), rest - size, where(greater(rest, neg(size)), rest, rest + size));
  const Tensor fixed = where(less(a, 0), negative, positive);
  return where(logical_and(isinf(b), logical_not(isinf(a))), a, fixed);
}

/// Integer operands meeting at an integer dtype; false when the join is a float.
bool integer_join(const Pair& p, DType* dtype) {
  *dtype = promote(p.a.dtype(), p.b.dtype());
  if (*dtype == DType::Bool) *dtype = DType::Int32;
  return is_int(*dtype);
}

}  // namespace

Tensor floordiv(const Operand& a, const Operand& b) {
  const Pair p = as_tensors("floordiv", a, b);
  DType dtype;
  if (integer_join(p, &dtype))
    return binary("floordiv", Op::Floordiv, dtype, cast(p.a, dtype), cast(p.b, dtype));
  return floor(div(p.a, p.b));
}
Tensor floormod(const Operand& a, const Operand& b) {
  const Pair p = as_tensors("floormod", a, b);
  DType dtype;
  if (integer_join(p, &dtype))
    return binary("floormod", Op::Floormod, dtype, cast(p.a, dtype), cast(p.b, dtype));
  const Tensor y = cast(p.b, dtype);
  const Tensor rest = float_cmod(cast(p.a, dtype), y);
  const Tensor other_sign = logical_xor(less(rest, 0), less(y, 0));
  return where(logical_and(not_equal(rest, 0), other_sign), rest + y, rest);
}
Tensor cdiv(const Operand& a, const Operand& b) {
  const Pair p = as_tensors("cdiv", a, b);
  DType dtype;
  if (integer_join(p, &dtype))
    return binary("cdiv", Op::Cdiv, dtype, cast(p.a, dtype), cast(p.b, dtype));
  return trunc(div(p.a, p.b));
}
Tensor cmod(const Operand& a, const Operand& b) {
  const Pair p = as_tensors("cmod", a, b);
  DType dtype;
  if (integer_join(p, &dtype))
    return binary("cmod", Op::Cmod, dtype, cast(p.a, dtype), cast(p.b, dtype));
  return float_cmod(cast(p.a, dtype), cast(p.b, dtype));
}

namespace {

Tensor integer_pow_const(const Tensor& base, int64_t exponent) {
  Tensor result, square_of = base;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = result ? mul(result, square_of) : square_of;
    if (exponent > 1) square_of = mul(square_of, square_of);
  }
  return result ? result
                : detail::stretch_scalar(base.graph(), base.graph()->constant(base.dtype(), 1),
                                         base.shape());
}

Tensor integer_pow(const Tensor& base, const Tensor& exponent) {
  // Square and multiply over all bits: arithmetic wraps, so no bit of the exponent may be left out.
  const DType dtype = base.dtype();
  const int width = is_weak(exponent.dtype())
                        ? 63
                        : bits(exponent.dtype()) - (is_unsigned(exponent.dtype()) ? 0 : 1);
  Tensor result = Tensor::full_int(base.graph(), {}, 1, dtype), square_of = base;
  for (int bit = 0; bit < width; ++bit) {
    const Tensor is_set = not_equal(bitwise_and(exponent, int64_t{1} << bit), 0);
    result = where(is_set, mul(result, square_of), result);
    if (bit + 1 < width) square_of = mul(square_of, square_of);
  }
  if (is_unsigned(exponent.dtype())) return result;
  const Tensor odd = not_equal(bitwise_and(exponent, 1), 0);
  const auto value = [&](int64_t v) { return Tensor::full_int(base.graph(), {}, v, dtype); };
  Tensor inverse = where(equal(base, 1), value(1), value(0));
  if (!is_unsigned(dtype))
    inverse = where(equal(base, -1), where(odd, value(-1), value(1)), inverse);
  return where(less(exponent, 0), inverse, result);
}

}  // namespace

Tensor pow(const Operand& a, const Operand& b) {
  const Pair p = as_tensors("pow", a, b);
  DType dtype = promote(p.a.dtype(), p.b.dtype());
  if (dtype == DType::Bool) dtype = DType::Int32;
  const Node constant = splat_of(p.b.node());
  if (!is_float(dtype)) {
    const Tensor base = cast(p.a, dtype);
    if (!constant) return integer_pow(base, p.b);
    if (constant.const_int() < 0) {
      fail("pow: " + p.a.describe() + " to the power " + std::to_string(constant.const_int()) +
           " is not an integer.");
    }
    const Shape shape = broadcast_shapes("pow", p.a, p.b);
    return broadcast_to(integer_pow_const(base, constant.const_int()), shape);
  }
  const Tensor base = cast(p.a, dtype);
  if (constant && p.b.rank() == 0) {  // exact or correctly rounded; ½ is not sqrt for -0 and -Inf
    const double exponent = constant.const_float();
    if (exponent == 0)
      return detail::stretch_scalar(base.graph(), base.graph()->constant(dtype, 1), base.shape());
    if (exponent == 1) return base;
    if (exponent == 2) return mul(base, base);
    if (exponent == -1) return reciprocal(base);
  }
  return binary("pow", Op::Pow, dtype, base, cast(p.b, dtype));
}

Tensor maximum(const Operand& a, const Operand& b) {
  const Pair p = as_tensors("maximum", a, b);
  const bool is_bool = p.a.dtype() == DType::Bool && p.b.dtype() == DType::Bool;
  return joined("maximum", is_bool ? Op::Or : Op::Max, p.a, p.b);
}
Tensor minimum(const Operand& a, const Operand& b) {
  const Pair p = as_tensors("minimum", a, b);
  const bool is_bool = p.a.dtype() == DType::Bool && p.b.dtype() == DType::Bool;
  return joined("minimum", is_bool ? Op::And : Op::Min, p.a, p.b);
}

Tensor neg(const Tensor& x) { return x.dtype() == DType::Bool ? not_of(x) : unary(Op::Neg, x); }

Tensor abs(const Tensor& x) {
  if (x.dtype() == DType::Bool || is_unsigned(x.dtype())) return x;
  // x + 0 turns -0 into +0; NaN takes that branch too.
  if (is_float(x.dtype())) return where(less(x, 0), neg(x), add(x, 0));
  return where(less(x, 0), neg(x), x);
}
Tensor sign(const Tensor& x) {
  if (x.dtype() == DType::Bool) return x;
  if (is_unsigned(x.dtype())) return minimum(x, 1);
  return where(less(0, x), 1, where(less(x, 0), -1, x));
}
Tensor square(const Tensor& x) { return mul(x, x); }

Tensor copysign(const Tensor& magnitude, const Tensor& sign_of) {
  const DType dtype = promote(magnitude.dtype(), sign_of.dtype());
  const Tensor size = abs(cast(magnitude, dtype));
  if (is_unsigned(sign_of.dtype()) || sign_of.dtype() == DType::Bool) {
    return broadcast_to(size, broadcast_shapes("copysign", magnitude, sign_of));
  }
  Tensor is_negative = less(sign_of, 0);
  if (is_float(sign_of.dtype())) {  // -0 is found by its reciprocal
    is_negative =
        logical_or(is_negative, logical_and(equal(sign_of, 0), less(reciprocal(sign_of), 0)));
  }
  return where(is_negative, neg(size), size);
}

Tensor clamp(const Tensor& x, const std::optional<Operand>& lo, const std::optional<Operand>& hi) {
  Tensor y = x;
  if (lo) y = maximum(y, *lo);
  if (hi) y = minimum(y, *hi);
  return y;
}
Tensor lerp(const Tensor& a, const Tensor& b, const Operand& t) {
  return add(a, mul(sub(b, a), t));
}

namespace {

enum class Relation : uint8_t { Less, Equal };

/// a op c for an integer tensor and a constant outside its dtype's range: known without looking.
std::optional<bool> out_of_range(const Tensor& tensor, const Tensor& constant, Relation relation,
                                 bool constant_left) {
  const Node c = splat_of(constant.node());
  const DType dtype = tensor.dtype();
  if (!c || c.dtype() != DType::WeakInt || !is_int(dtype) || is_weak(dtype)) return std::nullopt;
  const int64_t value = c.const_int();
  const bool below = value < int_min(dtype);
  const bool above = dtype != DType::UInt64 && value > int_max(dtype);
  if (!below && !above) return std::nullopt;
  if (relation == Relation::Equal) return false;
  return constant_left ? below : above;
}

bool is_signed_integer(DType dtype) {
  return is_int(dtype) && !is_unsigned(dtype) && !is_weak(dtype);
}

/// Comparison of a signed integer with uint64, which have no common integer type.
Tensor compare_mixed(const Tensor& a, const Tensor& b, Relation relation) {
  const bool a_signed = is_signed_integer(a.dtype());
  const Tensor& with_sign = a_signed ? a : b;
  const Tensor is_negative = less(with_sign, 0);
  const Tensor x = cast(a, DType::UInt64), y = cast(b, DType::UInt64);
  const Tensor same_sign =
      binary("compare", relation == Relation::Less ? Op::Cmplt : Op::Cmpeq, DType::Bool, x, y);
  const bool when_negative = relation == Relation::Less && a_signed;
  return when_negative ? logical_or(is_negative, same_sign)
                       : logical_and(logical_not(is_negative), same_sign);
}

Tensor compare(std::string_view operation, const Operand& left, const Operand& right,
               Relation relation) {
  const Pair p = as_tensors(operation, left, right);
  std::optional<bool> known = out_of_range(p.a, p.b, relation, /*constant_left=*/false);
  if (!known) known = out_of_range(p.b, p.a, relation, /*constant_left=*/true);
  if (known) {
    return Tensor::full_int(p.a.graph(), broadcast_shapes(operation, p.a, p.b), *known ? 1 : 0,
                            DType::Bool);
  }
  const DType dtype = promote(p.a.dtype(), p.b.dtype());
  if ((is_signed_integer(p.a.dtype()) && p.b.dtype() == DType::UInt64) ||
      (is_signed_integer(p.b.dtype()) && p.a.dtype() == DType::UInt64)) {
    return compare_mixed(p.a, p.b, relation);
  }
  if (dtype == DType::Bool && relation == Relation::Less) return logical_and(not_of(p.a), p.b);
  return binary(operation, relation == Relation::Less ? Op::Cmplt : Op::Cmpeq, DType::Bool,
                cast(p.a, dtype), cast(p.b, dtype));
}

/// a <= b: for floats two comparisons, since not (b < a) would hold for NaN.
Tensor compare_or_equal(std::string_view operation, const Operand& a, const Operand& b) {
  const Pair p = as_tensors(operation, a, b);
  if (is_float(promote(p.a.dtype(), p.b.dtype()))) {
    return logical_or(compare(operation, p.a, p.b, Relation::Less),
                      compare(operation, p.a, p.b, Relation::Equal));
  }
  return not_of(compare(operation, p.b, p.a, Relation::Less));
}

}  // namespace

Tensor less(const Operand& a, const Operand& b) { return compare("less", a, b, Relation::Less); }
Tensor greater(const Operand& a, const Operand& b) {
  return compare("greater", b, a, Relation::Less);
}
Tensor less_equal(const Operand& a, const Operand& b) {
  return compare_or_equal("less_equal", a, b);
}
Tensor greater_equal(const Operand& a, const Operand& b) {
  return compare_or_equal("greater_equal", b, a);
}
Tensor equal(const Operand& a, const Operand& b) { return compare("equal", a, b, Relation::Equal); }
Tensor not_equal(const Operand& a, const Operand& b) {
  const Pair p = as_tensors("not_equal", a, b);
  const DType dtype = promote(p.a.dtype(), p.b.dtype());
  const Tensor same = compare("not_equal", p.a, p.b, Relation::Equal);
  if (!same.node().is(Op::Cmpeq)) return not_of(same);
  return binary("not_equal", Op::Cmpne, DType::Bool, cast(p.a, dtype), cast(p.b, dtype));
}

Tensor isnan(const Tensor& x) {
  if (!is_float(x.dtype())) return Tensor::full_int(x.graph(), x.shape(), 0, DType::Bool);
  return binary("isnan", Op::Cmpne, DType::Bool, x, x);
}
Tensor isinf(const Tensor& x, bool positive, bool negative) {
  Tensor result = Tensor::full_int(x.graph(), x.shape(), 0, DType::Bool);
  if (!is_float(x.dtype()) || (is_fp8(x.dtype()) && x.dtype() != DType::Fp8E5M2)) return result;
  if (positive && negative) return equal(abs(x), HUGE_VAL);
  if (positive) return equal(x, HUGE_VAL);
  if (negative) return equal(x, -HUGE_VAL);
  return result;
}

Tensor where(const Tensor& condition, const Operand& then_value, const Operand& else_value) {
  if (condition.dtype() != DType::Bool)
    fail("where: the condition " + condition.describe() + " is not bool.");
  const Operand condition_operand(condition);
  const Operand* const all[] = {&condition_operand, &then_value, &else_value};
  const auto& graph = common_graph("where", all);
  const Tensor a = then_value.in(graph), b = else_value.in(graph);
  const DType dtype = promote(a.dtype(), b.dtype());
  const Tensor operands[] = {condition, cast(a, dtype), cast(b, dtype)};
  if (const Node known = splat_of(condition.node())) {
    return broadcast_to(known.const_int() != 0 ? operands[1] : operands[2],
                        detail::broadcast_all("where", operands));
  }
  return elementwise("where", Op::Where, dtype, operands);
}

Tensor logical_not(const Tensor& x) { return not_of(cast(x, DType::Bool)); }
Tensor logical_and(const Tensor& a, const Tensor& b) {
  return joined("logical_and", Op::And, cast(a, DType::Bool), cast(b, DType::Bool));
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  return joined("logical_or", Op::Or, cast(a, DType::Bool), cast(b, DType::Bool));
}
Tensor logical_xor(const Tensor& a, const Tensor& b) {
  return joined("logical_xor", Op::Xor, cast(a, DType::Bool), cast(b, DType::Bool));
}

namespace {

Tensor bitwise(std::string_view operation, Op op, const Operand& a, const Operand& b) {
  const Pair p = as_tensors(operation, a, b);
  require_integers(operation, p.a);
  require_integers(operation, p.b);
  if (promote(p.a.dtype(), p.b.dtype()) == DType::WeakFloat) {
    fail(std::string(operation) + ": " + p.a.describe() + " and " + p.b.describe() +
         " have no common integer type.");
  }
  return joined(operation, op, p.a, p.b);
}

Tensor shift(std::string_view operation, Op op, const Operand& a, const Operand& count) {
  const Pair p = as_tensors(operation, a, count);
  require_integers(operation, p.a);
  require_integers(operation, p.b);
  const DType dtype = p.a.dtype() == DType::Bool ? DType::Int32 : p.a.dtype();
  Tensor amount = p.b;
  if (amount.dtype() != dtype && !is_weak(dtype)) {
    // Bounded before it is narrowed, so that a count of 256 does not become 0 for uint8.
    const bool has_sign = !is_unsigned(amount.dtype()) && amount.dtype() != DType::Bool;
    const Tensor bounded = minimum(amount, bits(dtype));
    amount = cast(has_sign ? where(less(amount, 0), bits(dtype), bounded) : bounded, dtype);
    if (const Node splat = splat_of(p.b.node())) {
      const int64_t value = splat.const_int();
      amount = detail::stretch_scalar(
          p.a.graph(),
          p.a.graph()->constant(dtype, value < 0 || value > bits(dtype) ? bits(dtype) : value),
          p.b.shape());
    }
  }
  return binary(operation, op, dtype, cast(p.a, dtype), amount);
}

}  // namespace

Tensor bitwise_and(const Operand& a, const Operand& b) {
  return bitwise("bitwise_and", Op::And, a, b);
}
Tensor bitwise_or(const Operand& a, const Operand& b) {
  return bitwise("bitwise_or", Op::Or, a, b);
}
Tensor bitwise_xor(const Operand& a, const Operand& b) {
  return bitwise("bitwise_xor", Op::Xor, a, b);
}
Tensor bitwise_not(const Tensor& x) {
  require_integers("bitwise_not", x);
  return x.dtype() == DType::Bool ? not_of(x) : bitwise_xor(x, -1);
}
Tensor shift_left(const Operand& a, const Operand& count) {
  return shift("shift_left", Op::Shl, a, count);
}
Tensor shift_right(const Operand& a, const Operand& count) {
  return shift("shift_right", Op::Shr, a, count);
}

}  // namespace ignis::tensor
