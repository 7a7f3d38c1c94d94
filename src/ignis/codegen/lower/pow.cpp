#include "ignis/codegen/lower/functions.h"

#include <cmath>

// x^y = 2^(y * log2|x|), signs and special values apart. The logarithm needs more bits than the result has, because y
// multiplies its error: float32 takes it in float64, float64 in a sum of two float64.

namespace ignis::codegen {

namespace {

bool is_double(const Expr& x) { return x.dtype() == DType::Float64; }

/// 2^(hi + lo), |lo| small, in the dtype of `like`. NaN stays NaN.
Expr exp2_of_sum(const Expr& hi_in, const Expr& lo, const Expr& like) {
  const bool wide = is_double(like);
  const Expr hi =
      min(max(hi_in, hi_in.number(wide ? -1080.0 : -152.0)), hi_in.number(wide ? 1025.0 : 129.0));
  const Expr magic = hi.number(0x1.8p52);
  const Expr t = hi + magic;
  const Expr fraction = ((hi - (t - magic)) + lo).cast(like.dtype());
  const Expr k = wide ? t.bits().shl(52) : t.bits().cast(DType::Int32).shl(23);
  return detail::scale_by_power(detail::exp2_of_fraction(fraction), k, hi.cast(like.dtype()));
}

/// Exponent and significand of a float64 > 0, as in log.
struct Split {
  Expr e, m;
};
Split split(const Expr& x) {
  const Expr is_subnormal = x < x.number(0x1p-1022);
  const Expr bits = where(is_subnormal, x * x.number(0x1p54), x).bits();
  const Expr above = bits - bits.integer(0x3FE6A09E667F3BCD);  // sqrt(1/2)
  const Expr field = above & above.integer(-(int64_t{1} << 52));
  const Expr lifted = where(is_subnormal, x.number(-54), x.number(0));
  return {above.shr(52).cast(DType::Float64) + lifted, (bits - field).as_float()};
}

/// An unevaluated sum of two float64.
struct Sum {
  Expr hi, lo;
};

/// a * b exactly. Without a fused multiply-add by Dekker's splitting: valid while nothing overflows.
Sum product(const Expr& a, const Expr& b, bool has_fma) {
  const Expr p = a * b;
  if (has_fma) return {p, mulacc(a, b, -p)};
  const auto halves = [](const Expr& v) {
    const Expr high = (v.bits() & v.bits().integer(-(int64_t{1} << 27))).as_float();
    return Sum{high, v - high};
  };
  const Sum x = halves(a), y = halves(b);
  return {p, ((x.hi * y.hi - p) + x.hi * y.lo + x.lo * y.hi) + x.lo * y.lo};
}

/// log2(x) to about 2^-60 of its value: 2/ln(2) * (s + s^3/3 + …), s = (m - 1) / (m + 1), s as a sum.
Sum log2_sum(const Expr& x, bool has_fma) {
  const Split part = split(x);
  const Expr one = x.number(1), f = part.m - one, d = part.m + one;
  const Expr d_lo = part.m - (d - one);
  const Expr s = f / d;
  const Sum back = product(s, d, has_fma);
  const Expr s_lo = ((f - back.hi) - back.lo - s * d_lo) / d;
  const Expr z = s * s;
  // 2 / (ln(2) (2k + 3)): the series ends where z^11 < 2^-55.
  const Expr tail = polynomial(
      z, {0x1.00ecd7e080215p-3, 0x1.1964ec6fc9491p-3, 0x1.3703c1f4d0ffep-3, 0x1.5b9ac9b743f0dp-3,
          0x1.89f3b1694cffep-3, 0x1.c68f568d31760p-3, 0x1.0c9a84994022dp-2, 0x1.484b13d7c02a9p-2,
          0x1.a61762a7aded9p-2, 0x1.2776c50ef9bfep-1, 0x1.ec709dc3a03fdp-1});
  const double scale_hi = 0x1.71547652b82fep+1, scale_lo = 0x1.777d0ffda0d24p-55;
  const Sum lead = product(x.number(scale_hi), s, has_fma);
  const Expr rest = lead.lo + (x.number(scale_hi) * s_lo + (x.number(scale_lo) * s + tail * z * s));
  // e + lead + rest: |e| is 0, or larger than the others.
  const Expr hi = part.e + lead.hi;
  const Expr lo = (lead.hi - (hi - part.e)) + rest;
  const Expr total = hi + lo;
  return {total, lo - (total - hi)};
}

/// log2(x) of a float32 > 0 in float64, to 2^-37.
Expr log2_for_float(const Expr& x) {
  const Split part = split(x);
  const Expr s = (part.m - x.number(1)) / (part.m + x.number(1)), z = s * s;
  // z < 0.0295: seven terms of the series leave 2^-40.
  const Expr tail = polynomial(
      z, {0x1.c68f568d31760p-3, 0x1.0c9a84994022dp-2, 0x1.484b13d7c02a9p-2, 0x1.a61762a7aded9p-2,
          0x1.2776c50ef9bfep-1, 0x1.ec709dc3a03fdp-1, 0x1.71547652b82fep+1});
  return mulacc(s, tail, part.e);
}

}  // namespace

Expr pow_of(const Expr& x, const Expr& y, bool has_fma) {
  const Expr zero = x.number(0), one = x.number(1), infinity = x.number(HUGE_VAL),
             size = magnitude(x);
  // |x|^y. The logarithm of 0 and infinity is -+infinity; NaN passes through.
  Expr power;
  const auto special_log = [&](const Expr& log, const Expr& from) {
    const Expr finite = where(equal(from, from.number(0)), from.number(-HUGE_VAL), log);
    return where(from < from.number(HUGE_VAL), finite, from);
  };
  if (is_double(x)) {
    const Sum log = log2_sum(size, has_fma);
    const Expr hi = special_log(log.hi, size);
    // Huge exponents only say "out of range": bounded, so that the exact product cannot overflow.
    const Expr bounded = min(max(y, x.number(-0x1p80)), x.number(0x1p80));
    const Sum exact = product(bounded, log.hi, has_fma);
    const Expr lo = mulacc(bounded, log.lo, exact.lo);
    const Expr plain = (size > zero) & (size < infinity) & (magnitude(exact.hi) < x.number(2000));
    power = exp2_of_sum(where(plain, exact.hi, y * hi), where(plain, lo, zero), x);
  } else {
    const Expr wide = size.cast(DType::Float64);
    const Expr exponent = y.cast(DType::Float64) * special_log(log2_for_float(wide), wide);
    power = exp2_of_sum(exponent, exponent.number(0), x);
  }
  // 1^y is 1 where y is a number: 0 * infinity is not.
  power = where(equal(size, one) & equal(y, y), one, power);
  // Negative x: the sign of odd powers, no value for fractional ones.
  const Expr whole = y.unary(ir::Op::Trunc), half = y * y.number(0.5);
  const Expr is_whole = equal(whole, y),
             is_odd = is_whole & differ(half.unary(ir::Op::Trunc), half);
  const Expr is_below = (x < zero) & (x > x.number(-HUGE_VAL));
  const Expr is_negative = x.bits() < x.bits().integer(0);
  const Expr with_sign = where(is_odd & is_negative, -power, power);
  const Expr value = where(is_below & differ(whole, y), x.number(NAN), with_sign);
  return where(equal(y, zero) | equal(x, one), one, value);
}

}  // namespace ignis::codegen
