#include "ignis/tensor/build.h"
#include "ignis/tensor/elementwise.h"

#include <cmath>
#include <numbers>

// Functions composed of the IR's operations. Composed formulas run in float32 for narrower floats (detail::widen) and
// return to the argument's dtype, so that float16 sees one rounding.

namespace ignis::tensor {

using detail::float_dtype;
using detail::unary;
using detail::widen;
using ir::Op;

namespace {

Tensor narrow(const Tensor& result, const Tensor& x) {
  return cast(result, float_dtype(x.dtype()));
}

/// An IR function applied at the argument's own float dtype: the compiler widens as it needs.
Tensor direct(Op op, const Tensor& x) { return unary(op, cast(x, float_dtype(x.dtype()))); }

/// Horner's rule, highest coefficient first.
Tensor polynomial(const Tensor& x, std::initializer_list<double> coefficients) {
  Tensor value;
  for (const double c : coefficients) {
    value = value ? add(mul(value, x), c) : Tensor::full(x.graph(), {}, c, x.dtype());
  }
  return value;
}

bool is_double(const Tensor& x) {
  return x.dtype() == DType::Float64 || x.dtype() == DType::WeakFloat;
}

/// log(1 + u): the rounding of 1 + u is divided out again (w = 1 + u; log(w) * u / (w - 1)).
Tensor wide_log1p(const Tensor& u) {
  const Tensor w = add(u, 1), log_w = log(w);
  const Tensor corrected = mul(log_w, div(u, sub(w, 1)));
  // From 2^60 on, and for infinity, 1 + u is u and the quotient is no help.
  return where(equal(w, 1), u, where(less(u, 0x1p60), corrected, log_w));
}

/// exp(x) - 1: a series near 0, where the subtraction would lose everything.
Tensor wide_expm1(const Tensor& x) {
  // Taylor coefficients 1/n!; |x| < 0.5 leaves a relative error under 2^-27 (f32) and 2^-54 (f64).
  const Tensor series =
      is_double(x)
          ? polynomial(x, {1.0 / 1307674368000, 1.0 / 87178291200, 1.0 / 6227020800,
                           1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                           1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5})
          : polynomial(x, {1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5});
  const Tensor near_zero = add(mul(series, mul(x, x)), x);
  return where(less(abs(x), 0.5), near_zero, sub(exp(x), 1));
}

/// e = exp(|x|) / 2 without overflow before the result overflows.
Tensor half_exp(const Tensor& size) {
  const Tensor root = exp(mul(size, 0.5));
  return mul(mul(root, 0.5), root);
}

}  // namespace

Tensor sqrt(const Tensor& x) { return direct(Op::Sqrt, x); }
Tensor reciprocal(const Tensor& x) { return direct(Op::Reciprocal, x); }
Tensor rsqrt(const Tensor& x) { return narrow(reciprocal(sqrt(widen(x))), x); }
Tensor exp(const Tensor& x) { return direct(Op::Exp, x); }
Tensor exp2(const Tensor& x) { return direct(Op::Exp2, x); }
Tensor log(const Tensor& x) { return direct(Op::Log, x); }
Tensor log2(const Tensor& x) { return direct(Op::Log2, x); }
Tensor sin(const Tensor& x) { return direct(Op::Sin, x); }
Tensor cos(const Tensor& x) { return direct(Op::Cos, x); }
Tensor atan(const Tensor& x) { return direct(Op::Atan, x); }
Tensor tanh(const Tensor& x) { return direct(Op::Tanh, x); }
Tensor erf(const Tensor& x) { return direct(Op::Erf, x); }

Tensor expm1(const Tensor& x) { return narrow(wide_expm1(widen(x)), x); }
Tensor log1p(const Tensor& x) { return narrow(wide_log1p(widen(x)), x); }
Tensor log10(const Tensor& x) { return narrow(mul(log(widen(x)), std::numbers::log10e), x); }

Tensor tan(const Tensor& x) {
  const Tensor w = widen(x);
  return narrow(div(sin(w), cos(w)), x);
}

Tensor asin(const Tensor& x) {
  const Tensor w =
      widen(x);  // (1 - x)(1 + x) keeps what 1 - x * x loses near 1; x / 0 = inf gives pi / 2
  return narrow(atan(div(w, sqrt(mul(sub(1, w), add(1, w))))), x);
}
Tensor acos(const Tensor& x) {
  const Tensor w = widen(x);
  return narrow(mul(2.0, atan(sqrt(div(sub(1, w), add(1, w))))), x);
}

Tensor atan2(const Tensor& y, const Tensor& x) {
  const DType dtype = float_dtype(promote(y.dtype(), x.dtype()));
  const Tensor a = widen(cast(y, dtype)), b = widen(cast(x, dtype));
  const Tensor size_y = abs(a), size_x = abs(b);
  const Tensor hi = maximum(size_x, size_y), lo = minimum(size_x, size_y);
  // 0/0 counts as 0, inf/inf as 1: the angle is then one of the axes or diagonals.
  const Tensor ratio = where(equal(hi, 0), 0.0, where(equal(lo, HUGE_VAL), 1.0, div(lo, hi)));
  const Tensor octant = atan(ratio);
  const Tensor quadrant = where(less(size_x, size_y), sub(std::numbers::pi / 2, octant), octant);
  const Tensor x_negative = less(copysign(Tensor::full(b.graph(), {}, 1.0, b.dtype()), b), 0);
  const Tensor half_plane = where(x_negative, sub(std::numbers::pi, quadrant), quadrant);
  return cast(copysign(half_plane, a), dtype);
}

Tensor sinh(const Tensor& x) {
  const Tensor w = widen(x), size = abs(w), square_of = mul(w, w);
  // Odd series below 1 (1/(2n+1)!); beyond, e - 1/(4e) with e = exp(|x|) / 2.
  const Tensor series =
      is_double(w)
          ? polynomial(square_of, {1.0 / 121645100408832000, 1.0 / 355687428096000,
                                   1.0 / 1307674368000, 1.0 / 6227020800, 1.0 / 39916800,
                                   1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6})
          : polynomial(square_of, {1.0 / 39916800, 1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6});
  const Tensor near_zero = add(mul(mul(series, square_of), w), w);
  const Tensor e = half_exp(size), far = sub(e, div(0.25, e));
  return narrow(where(less(size, 1), near_zero, where(less(w, 0), neg(far), far)), x);
}
Tensor cosh(const Tensor& x) {
  const Tensor e = half_exp(abs(widen(x)));
  return narrow(add(e, div(0.25, e)), x);
}

Tensor asinh(const Tensor& x) {
  const Tensor w = widen(x), size = abs(w), square_of = mul(w, w);
  // log1p(a + a^2 / (1 + sqrt(a^2 + 1))); where a^2 + 1 is a^2 this is log(a) + log(2).
  const Tensor near = wide_log1p(add(size, div(square_of, add(sqrt(add(square_of, 1)), 1))));
  const Tensor value =
      where(less(size, is_double(w) ? 0x1p28 : 0x1p13), near, add(log(size), std::numbers::ln2));
  return narrow(where(less(w, 0), neg(value), where(equal(w, 0), w, value)), x);
}
Tensor acosh(const Tensor& x) {
  const Tensor w = widen(x), t = sub(w, 1);
  const Tensor near = wide_log1p(add(t, sqrt(mul(t, add(t, 2)))));
  return narrow(
      where(less(is_double(w) ? 0x1p28 : 0x1p13, w), add(log(w), std::numbers::ln2), near), x);
}
Tensor atanh(const Tensor& x) {
  const Tensor w = widen(x), size = abs(w);
  const Tensor value = mul(0.5, wide_log1p(div(mul(size, 2), sub(1, size))));
  return narrow(where(less(w, 0), neg(value), where(equal(w, 0), w, value)), x);
}

Tensor floor(const Tensor& x) {
  if (!is_float(x.dtype())) return x;
  const Tensor t = unary(Op::Trunc, x);
  return where(less(x, t), sub(t, 1), t);
}
Tensor ceil(const Tensor& x) {
  if (!is_float(x.dtype())) return x;
  const Tensor t = unary(Op::Trunc, x);
  return where(less(t, x), add(t, 1), t);
}
Tensor round(const Tensor& x) { return is_float(x.dtype()) ? unary(Op::Rint, x) : x; }
Tensor trunc(const Tensor& x) { return is_float(x.dtype()) ? unary(Op::Trunc, x) : x; }

Tensor relu(const Tensor& x) { return maximum(x, 0); }
Tensor leaky_relu(const Tensor& x, double alpha) {
  const Tensor w = widen(x);
  return narrow(where(less(w, 0), mul(w, alpha), w), x);
}
Tensor prelu(const Tensor& x, const Tensor& slope) { return where(less(x, 0), mul(x, slope), x); }
Tensor elu(const Tensor& x, double alpha) {
  const Tensor w = widen(x);
  return narrow(where(less(w, 0), mul(wide_expm1(w), alpha), w), x);
}
Tensor selu(const Tensor& x, double alpha, double gamma) {
  const Tensor w = widen(x);
  return narrow(mul(where(less(w, 0), mul(wide_expm1(w), alpha), w), gamma), x);
}
Tensor celu(const Tensor& x, double alpha) {
  const Tensor w = widen(x);
  return narrow(where(less(w, 0), mul(wide_expm1(mul(w, 1 / alpha)), alpha), w), x);
}
Tensor sigmoid(const Tensor& x) { return narrow(reciprocal(add(exp(neg(widen(x))), 1)), x); }
Tensor silu(const Tensor& x) {
  const Tensor w = widen(x);
  return narrow(div(w, add(exp(neg(w)), 1)), x);
}
Tensor gelu(const Tensor& x, GeluForm form) {
  const Tensor w = widen(x);
  const Tensor half = mul(w, 0.5);
  if (form == GeluForm::Erf)
    return narrow(mul(half, add(erf(mul(w, std::numbers::sqrt2 / 2)), 1)), x);
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
  const Tensor inner = mul(mul(w, add(mul(mul(w, w), 0.044715), 1)), scale);
  return narrow(mul(half, add(tanh(inner), 1)), x);
}
Tensor softplus(const Tensor& x) {
  const Tensor w = widen(x);  // max(x, 0) + log1p(exp(-|x|)) overflows nowhere
  return narrow(add(maximum(w, 0), wide_log1p(exp(neg(abs(w))))), x);
}
Tensor softsign(const Tensor& x) {
  const Tensor w = widen(x);
  return narrow(div(w, add(abs(w), 1)), x);
}
Tensor hard_sigmoid(const Tensor& x, double alpha, double beta) {
  return narrow(clamp(add(mul(widen(x), alpha), beta), 0, 1), x);
}
Tensor hard_swish(const Tensor& x) {
  const Tensor w = widen(x);
  return narrow(mul(w, hard_sigmoid(w, 1.0 / 6, 0.5)), x);
}
Tensor mish(const Tensor& x) {
  // tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2), e = exp(x); 1 from x = 20 on.
  const Tensor w = widen(x), e = exp(minimum(w, 20)), n = mul(e, add(e, 2));
  return narrow(mul(w, div(n, add(n, 2))), x);
}
Tensor shrink_activation(const Tensor& x, double lambd, double bias) {
  const Tensor w = widen(x);
  const Tensor y = where(less(w, -lambd), add(w, bias), where(less(lambd, w), sub(w, bias), 0));
  return cast(y, x.dtype());
}
Tensor thresholded_relu(const Tensor& x, double alpha) {
  const Tensor w = widen(x);
  return narrow(where(less(alpha, w), w, 0), x);
}

}  // namespace ignis::tensor
