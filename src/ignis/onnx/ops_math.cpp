#include "ignis/onnx/ops_common.h"

// Arithmetic, comparison, logic, bits and casts.
namespace ignis::onnx {
namespace {

/// Before operator set 7 the second operand was stretched only on request, from a given axis on.
Tensor second_operand(const OpContext& ctx) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  if (ctx.opset() >= 7 || ctx.attr_int("broadcast", 0) == 0 || !ctx.has_attr("axis")) return b;
  const int64_t axis = ctx.axis(ctx.attr_int("axis"), a.rank());
  Shape shape = b.shape();
  while (static_cast<int64_t>(shape.size()) + axis < a.rank()) shape.push_back(1);
  return tensor::reshape(b, shape);
}

/// The size of a broadcast result is checked before it is made.
void require_broadcast(const OpContext& ctx, const Tensor& a, const Tensor& b) {
  require_size(ctx, tensor::broadcast_shapes(ctx.op(), a, b));
}

using Binary = Tensor (*)(const tensor::Operand&, const tensor::Operand&);

template <Binary F>
OpOutputs binary(const OpContext& ctx) {
  require_same_dtype(ctx);
  const Tensor b = second_operand(ctx);
  require_broadcast(ctx, ctx.input(0), b);
  return one(F(ctx.input(0), b));
}

template <Tensor (*F)(const Tensor&, const Tensor&)>
OpOutputs logical(const OpContext& ctx) {
  const Tensor b = second_operand(ctx);
  require_broadcast(ctx, ctx.input(0), b);
  return one(F(ctx.input(0), b));
}

/// Integers truncate, floats divide.
OpOutputs div(const OpContext& ctx) {
  return is_float(ctx.input(0).dtype()) ? binary<tensor::div>(ctx) : binary<tensor::cdiv>(ctx);
}

OpOutputs mod(const OpContext& ctx) {
  if (ctx.attr_int("fmod", 0) != 0) return binary<tensor::cmod>(ctx);
  if (is_float(ctx.input(0).dtype())) return ctx.error("Mod of floats needs fmod=1.");
  return binary<tensor::floormod>(ctx);
}

/// The result has the base's type whatever the exponent's is.
OpOutputs pow(const OpContext& ctx) {
  const Tensor& base = ctx.input(0);
  const Tensor exponent = second_operand(ctx);
  require_broadcast(ctx, base, exponent);
  if (base.dtype() == exponent.dtype()) return one(tensor::pow(base, exponent));
  if (is_float(base.dtype())) {
    const Tensor power =
        is_float(exponent.dtype()) ? tensor::cast(exponent, base.dtype()) : exponent;
    return one(tensor::cast(tensor::pow(base, power), base.dtype()));
  }
  if (is_float(exponent.dtype())) {
    const Tensor wide =
        tensor::pow(tensor::cast(base, DType::Float64), tensor::cast(exponent, DType::Float64));
    return one(tensor::cast(wide, base.dtype()));
  }
  return one(tensor::pow(base, tensor::cast(exponent, base.dtype())));
}

template <Binary F>
Tensor fold_inputs(const OpContext& ctx) {
  require_same_dtype(ctx);
  Tensor result = ctx.input(0);
  for (int i = 1; i < ctx.input_count(); ++i) {
    require_broadcast(ctx, result, ctx.input(i));
    result = F(result, ctx.input(i));
  }
  return result;
}

template <Binary F>
OpOutputs variadic(const OpContext& ctx) {
  return one(fold_inputs<F>(ctx));
}

OpOutputs mean(const OpContext& ctx) {
  require_float(ctx, 0);
  return one(fold_inputs<tensor::add>(ctx) / static_cast<double>(ctx.input_count()));
}

OpOutputs bit_shift(const OpContext& ctx) {
  const std::string direction = ctx.attr_string("direction", "");
  if (direction == "LEFT") return binary<tensor::shift_left>(ctx);
  if (direction == "RIGHT") return binary<tensor::shift_right>(ctx);
  return ctx.error("BitShift has direction '" + direction + "'.");
}

OpOutputs where(const OpContext& ctx) {
  require_same_dtype(ctx, 1);
  const Tensor &condition = ctx.input(0), &a = ctx.input(1), &b = ctx.input(2);
  if (condition.dtype() != DType::Bool)
    return ctx.error("The condition is " + condition.describe() + ".");
  require_broadcast(ctx, a, b);
  // Two steps: the pairwise products of extents bound the whole.
  require_size(ctx, tensor::broadcast_shapes(
                        ctx.op(), tensor::broadcast_to(a, tensor::broadcast_shapes(ctx.op(), a, b)),
                        condition));
  return one(tensor::where(condition, a, b));
}

/// What a non-saturating cast makes of values that round beyond the largest finite one.
struct Overflow {
  double threshold;            ///< the midpoint beyond the largest finite value
  bool is_tie_included;        ///< the midpoint itself rounds away from it
  uint8_t positive, negative;  ///< codes of NaN
};

Overflow overflow_of(DType to) {
  switch (to) {
    case DType::Fp8E4M3: return {464, false, 0x7F, 0xFF};
    case DType::Fp8E4M3Fnuz: return {248, true, 0x80, 0x80};
    default: return {61440, true, 0x80, 0x80};  // Fp8E5M2Fnuz
  }
}

/// For the formats without infinities. One that has them would need an Inf that every later operation keeps, but a
/// store to an fp8 format saturates.
Tensor cast_non_saturating(const OpContext& ctx, const Tensor& x, DType to) {
  const Overflow o = overflow_of(to);
  const Tensor wide = x.dtype() == DType::Float64 ? x : tensor::cast(x, DType::Float32);
  const auto code = [&](uint8_t bits) {
    return tensor::bitcast(Tensor::full_int(ctx.graph(), {}, bits, DType::UInt8), to);
  };
  const auto beyond = o.is_tie_included ? tensor::greater_equal : tensor::greater;
  const Tensor low =
      tensor::where(beyond(tensor::neg(wide), o.threshold), code(o.negative), tensor::cast(x, to));
  return tensor::where(beyond(wide, o.threshold), code(o.positive), low);
}

OpOutputs cast_to(const OpContext& ctx, DType to) {
  const Tensor& x = ctx.input(0);
  const bool is_saturating = !is_fp8(to) || ctx.attr_int("saturate", 1) != 0 || x.dtype() == to;
  if (is_saturating) return one(tensor::cast(x, to));
  if (to == DType::Fp8E5M2)
    return ctx.unsupported("A cast to FLOAT8E5M2 with saturate=0 is not supported.");
  return one(cast_non_saturating(ctx, x, to));
}

OpOutputs cast(const OpContext& ctx) {
  if (!ctx.has_attr("to")) return ctx.error("Attribute 'to' is missing.");
  return cast_to(ctx, ctx.attr_dtype("to", DType::Float32));
}

OpOutputs cast_like(const OpContext& ctx) { return cast_to(ctx, ctx.input(1).dtype()); }

OpOutputs identity(const OpContext& ctx) { return one(ctx.input(0)); }

OpOutputs is_inf(const OpContext& ctx) {
  return one(tensor::isinf(ctx.input(0), ctx.attr_int("detect_positive", 1) != 0,
                           ctx.attr_int("detect_negative", 1) != 0));
}

OpOutputs clip(const OpContext& ctx) {
  const Tensor& x = ctx.input(0);
  std::optional<tensor::Operand> lo, hi;
  if (ctx.opset() < 11) {
    if (ctx.has_attr("min")) lo = ctx.scalar(x.dtype(), ctx.attr_float("min", 0));
    if (ctx.has_attr("max")) hi = ctx.scalar(x.dtype(), ctx.attr_float("max", 0));
    return one(tensor::clamp(x, lo, hi));
  }
  require_same_dtype(ctx);
  for (int i = 1; i <= 2; ++i) {
    if (!ctx.has_input(i)) continue;
    if (ctx.input(i).count() != 1)
      return ctx.error("A bound is " + ctx.input(i).describe() + ", not a scalar.");
    (i == 1 ? lo : hi) = tensor::reshape(ctx.input(i), {});
  }
  return one(tensor::clamp(x, lo, hi));
}

// clang-format off
constexpr OpEntry kMathOps[] = {
    {"", "Add", 1, 2, 2, binary<tensor::add>},
    {"", "Sub", 1, 2, 2, binary<tensor::sub>},
    {"", "Mul", 1, 2, 2, binary<tensor::mul>},
    {"", "Div", 1, 2, 2, div},
    {"", "Mod", 10, 2, 2, mod},
    {"", "Pow", 1, 2, 2, pow},
    {"", "Neg", 1, 1, 1, unary<tensor::neg>},
    {"", "Abs", 1, 1, 1, unary<tensor::abs>},
    {"", "Sign", 9, 1, 1, unary<tensor::sign>},
    {"", "Ceil", 1, 1, 1, unary<tensor::ceil>},
    {"", "Floor", 1, 1, 1, unary<tensor::floor>},
    {"", "Round", 11, 1, 1, unary<tensor::round>},
    {"", "Reciprocal", 1, 1, 1, unary<tensor::reciprocal>},
    {"", "Sqrt", 1, 1, 1, unary<tensor::sqrt>},
    {"", "Exp", 1, 1, 1, unary<tensor::exp>},
    {"", "Log", 1, 1, 1, unary<tensor::log>},
    {"", "Sin", 7, 1, 1, unary<tensor::sin>},
    {"", "Cos", 7, 1, 1, unary<tensor::cos>},
    {"", "Tan", 7, 1, 1, unary<tensor::tan>},
    {"", "Asin", 7, 1, 1, unary<tensor::asin>},
    {"", "Acos", 7, 1, 1, unary<tensor::acos>},
    {"", "Atan", 7, 1, 1, unary<tensor::atan>},
    {"", "Sinh", 9, 1, 1, unary<tensor::sinh>},
    {"", "Cosh", 9, 1, 1, unary<tensor::cosh>},
    {"", "Asinh", 9, 1, 1, unary<tensor::asinh>},
    {"", "Acosh", 9, 1, 1, unary<tensor::acosh>},
    {"", "Atanh", 9, 1, 1, unary<tensor::atanh>},
    {"", "Tanh", 1, 1, 1, unary<tensor::tanh>},
    {"", "Erf", 9, 1, 1, unary<tensor::erf>},
    {"", "Min", 1, 1, -1, variadic<tensor::minimum>},
    {"", "Max", 1, 1, -1, variadic<tensor::maximum>},
    {"", "Sum", 1, 1, -1, variadic<tensor::add>},
    {"", "Mean", 1, 1, -1, mean},
    {"", "Clip", 1, 1, 3, clip},
    {"", "Equal", 1, 2, 2, binary<tensor::equal>},
    {"", "Less", 1, 2, 2, binary<tensor::less>},
    {"", "LessOrEqual", 12, 2, 2, binary<tensor::less_equal>},
    {"", "Greater", 1, 2, 2, binary<tensor::greater>},
    {"", "GreaterOrEqual", 12, 2, 2, binary<tensor::greater_equal>},
    {"", "And", 1, 2, 2, logical<tensor::logical_and>},
    {"", "Or", 1, 2, 2, logical<tensor::logical_or>},
    {"", "Xor", 1, 2, 2, logical<tensor::logical_xor>},
    {"", "Not", 1, 1, 1, unary<tensor::logical_not>},
    {"", "BitwiseAnd", 18, 2, 2, binary<tensor::bitwise_and>},
    {"", "BitwiseOr", 18, 2, 2, binary<tensor::bitwise_or>},
    {"", "BitwiseXor", 18, 2, 2, binary<tensor::bitwise_xor>},
    {"", "BitwiseNot", 18, 1, 1, unary<tensor::bitwise_not>},
    {"", "BitShift", 11, 2, 2, bit_shift},
    {"", "Where", 9, 3, 3, where},
    {"", "Cast", 6, 1, 1, cast},
    {"", "CastLike", 15, 2, 2, cast_like},
    {"", "Identity", 1, 1, 1, identity},
    {"", "IsNaN", 9, 1, 1, unary<tensor::isnan>},
    {"", "IsInf", 10, 1, 1, is_inf},
};
// clang-format on

}  // namespace

std::span<const OpEntry> math_ops() { return kMathOps; }

}  // namespace ignis::onnx
