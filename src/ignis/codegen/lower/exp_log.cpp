#include "ignis/codegen/lower/functions.h"

#include <cmath>
#include <vector>

// exp, exp2, log, log2. All polynomials are minimax fits of the stated remainder on the reduced range, by Remez'
// exchange in 200-bit arithmetic, rounded from the lowest power up with the rest fitted again.

namespace ignis::codegen {

namespace {

bool is_double(const Expr& x) { return x.dtype() == DType::Float64; }
int mantissa_bits(const Expr& x) { return is_double(x) ? 52 : 23; }
int64_t one_bits(const Expr& x) { return is_double(x) ? 0x3FF0000000000000 : 0x3F800000; }

/// Adding it to |x| < 2^22 (2^51) leaves x rounded to an integer in the low bits: no conversion, which would have to
/// saturate.
double rounding_constant(const Expr& x) { return is_double(x) ? 0x1.8p52 : 0x1.8p23; }

/// exp(r) - 1 over r for |r| <= ln(2) / 2: relative error of exp under 2^-28 and 2^-56. `factor`, a power of two, is in
/// the coefficients.
Expr exp_slope(const Expr& r, double factor) {
  std::vector<double> coefficients =
      is_double(r) ? std::vector<double>{0x1.ad8c4ae62bbacp-26,
                                         0x1.28af6109f8578p-22,
                                         0x1.71df2379b1e79p-19,
                                         0x1.a019982825eeap-16,
                                         0x1.a01a012954286p-13,
                                         0x1.6c16c184ced0ep-10,
                                         0x1.111111112830dp-7,
                                         0x1.55555555505c2p-5,
                                         0x1.55555555554f7p-3,
                                         0x1.000000000000ap-1,
                                         1}
                   : std::vector<double>{0x1.6adfaap-10, 0x1.12408ap-7, 0x1.555842p-5,
                                         0x1.555488p-3,  0x1.fffffcp-2, 1};
  for (double& c : coefficients) c *= factor;
  return polynomial(r, coefficients);
}

/// exp(x) = (1 + slope * r) * 2^k; the slope times the factor that was asked for.
struct Scaled {
  Expr slope, r;
  Expr k_bits;  ///< k at the exponent's place
};

bool is_at_most_zero(const ir::Node& n) {
  if (!n.is(ir::Op::Min)) return false;
  const auto bounds = [](const ir::Node& c) { return c.is_const() && c.const_float() <= 0; };
  return bounds(n.src(0)) || bounds(n.src(1));
}

Scaled reduce_exp(const Expr& x, double factor = 1) {
  const double log2e = 0x1.71547652b82fep+0;
  // ln(2) in two parts; the first has so few bits that k times it is exact.
  const double hi = is_double(x) ? 0x1.62e42feep-1 : 0x1.62e4p-1;
  const double lo = is_double(x) ? 0x1.a39ef35793c76p-33 : 0x1.7f7d1cf79abcap-20;
  const Expr magic = x.number(rounding_constant(x));
  const Expr t = mulacc(x, x.number(log2e), magic);
  const Expr k = t - magic;
  const Expr r = mulacc(k, x.number(-lo), mulacc(k, x.number(-hi), x));
  return {exp_slope(r, factor), r, t.bits().shl(mantissa_bits(x))};
}

}  // namespace

namespace detail {

// Two factors: 2^(k+64) * 2^-64 below, 2^(k-1) * 2 above, so that neither leaves the range before the product does. Both
// come from one mask; a float product, unlike adding to the exponent field, keeps NaN.
Expr scale_by_power(const Expr& p, const Expr& k_bits, const Expr& sign) {
  const int width = is_double(p) ? 64 : 32, shift = mantissa_bits(p);
  const Expr bits = sign.bits();
  const Expr step = bits.shr(width - 1) & bits.integer(int64_t{65} << shift);
  const int64_t one = one_bits(p), unit = int64_t{1} << shift;
  const Expr first = (k_bits + step + bits.integer(one - unit)).as_float();
  const Expr second = (bits.integer(one + unit) - step).as_float();
  return p * first * second;
}

Expr exp_moderate(const Expr& x) {
  const Scaled e = reduce_exp(x);
  const Expr power = (e.k_bits + e.k_bits.integer(one_bits(x))).as_float();
  return mulacc(e.slope, e.r, x.number(1)) * power;
}

Expr expm1_moderate(const Expr& x) {
  const Scaled e = reduce_exp(x);
  const Expr power = (e.k_bits + e.k_bits.integer(one_bits(x))).as_float();
  return mulacc(e.slope * e.r, power,
                power - x.number(1));  // near 0 the power is 1, and nothing cancels
}

// (2^r - 1) / r: relative error of 2^r under 2^-26 and 2^-57.
Expr exp2_of_fraction(const Expr& r) {
  const Expr slope =
      is_double(r)
          ? polynomial(r, {0x1.e4e864e8f8cc1p-35, 0x1.ed0c0a8d4aa65p-32, 0x1.e350730a6b73fp-28,
                           0x1.b522cafdfb4fbp-24, 0x1.62c08b756d888p-20, 0x1.ffcbfd79b7fddp-17,
                           0x1.430912de3204fp-13, 0x1.5d87fe786afd9p-10, 0x1.3b2ab6fbaa99cp-7,
                           0x1.c6b08d704a1fap-5, 0x1.ebfbdff82c575p-3, 0x1.62e42fefa39efp-1})
          : polynomial(r, {0x1.186e32p-13, 0x1.5ef71cp-10, 0x1.3b6778p-7, 0x1.c6af9cp-5,
                           0x1.ebfb94p-3, 0x1.62e43p-1});
  return mulacc(slope, r, r.number(1));
}

}  // namespace detail

Expr exp_of(const Expr& x) {
  if (is_at_most_zero(x.node())) {
    // k is not positive. Below the normal numbers its power is zero, as kernels, which run with denormals off, take them:
    // the lower bound is where k is the first whose power's bits are zero.
    const Scaled e = reduce_exp(max(x, x.number(is_double(x) ? -709.0 : -88.0)));
    const Expr power = e.k_bits + e.k_bits.integer(one_bits(x));
    return mulacc(e.slope, e.r, x.number(1)) * power.as_float();
  }
  // Beyond these the result is infinite, or less than half the smallest number.
  const Expr above = max(x, x.number(is_double(x) ? -746.0 : -104.0));
  const Scaled e = reduce_exp(min(above, x.number(is_double(x) ? 710.0 : 89.0)));
  return detail::scale_by_power(mulacc(e.slope, e.r, x.number(1)), e.k_bits, x);
}

Expr exp_plus_of(const Expr& x, double c) {
  // Below the lower bound exp(x) is nothing beside c, at the upper one it is infinite. Twice the polynomial and half the
  // power: 2^(k-1) is a normal number for every k in between, and the product overflows where exp does.
  const Expr clamped =
      min(max(x, x.number(is_double(x) ? -700.0 : -86.0)), x.number(is_double(x) ? 710.0 : 89.0));
  const Scaled e = reduce_exp(clamped, 2);
  const Expr half_power =
      (e.k_bits + e.k_bits.integer(one_bits(x) - (int64_t{1} << mantissa_bits(x)))).as_float();
  return mulacc(mulacc(e.slope, e.r, x.number(2)), half_power, x.number(c));
}

Expr exp2_of(const Expr& x) {
  const Expr clamped = min(max(x, x.number(is_double(x) ? -1080.0 : -152.0)),
                           x.number(is_double(x) ? 1025.0 : 129.0));
  const Expr magic = x.number(rounding_constant(x));
  const Expr t = clamped + magic;
  const Expr r = clamped - (t - magic);  // exact
  return detail::scale_by_power(detail::exp2_of_fraction(r), t.bits().shl(mantissa_bits(x)), x);
}

namespace {

/// x = 2^e * (1 + f), 1 + f in [sqrt(1/2), sqrt(2)), for finite x > 0.
struct Split {
  Expr e, f;
};

Split split_logarithm(const Expr& x) {
  const int shift = mantissa_bits(x);
  const double smallest_normal = is_double(x) ? 0x1p-1022 : 0x1p-126,
               lift = is_double(x) ? 0x1p54 : 0x1p25;
  const Expr is_subnormal = x < x.number(smallest_normal);
  const Expr bits = where(is_subnormal, x * x.number(lift), x).bits();
  const Expr above =
      bits - bits.integer(is_double(x) ? 0x3FE6A09E667F3BCD : 0x3F3504F3);  // sqrt(1/2)
  const Expr field =
      above & above.integer(is_double(x) ? -(int64_t{1} << 52) : -(int64_t{1} << 23));
  const Expr exponent = above.shr(shift).cast(x.dtype());
  const Expr lifted = where(is_subnormal, x.number(is_double(x) ? -54.0 : -25.0), x.number(0));
  return {exponent + lifted, (bits - field).as_float() - x.number(1)};
}

/// (log(1 + f) - f) / f, relative error of log(1 + f) under 2^-27 and 2^-58.
Expr log_curve(const Expr& f) {
  const Expr q =
      is_double(f)
          ? polynomial(f, {-0x1.d8493766f4657p-6, 0x1.037e8f7f20181p-4,  -0x1.066f702727de2p-4,
                           0x1.abb2698fa27cfp-5,  -0x1.ace923699eabbp-5, 0x1.de313b7145cb2p-5,
                           -0x1.018084bec67afp-4, 0x1.116863518e942p-4,  -0x1.2478d64c7fb41p-4,
                           0x1.3b0c420865e8ep-4,  -0x1.5556569793bd4p-4, 0x1.745d72ec976cfp-4,
                           -0x1.999993a9c159bp-4, 0x1.c71c6f34c4237p-4,  -0x1.0000000983221p-3,
                           0x1.24924929b6af8p-3,  -0x1.55555555474d6p-3, 0x1.999999998f951p-3,
                           -0x1.0000000000033p-2, 0x1.555555555558bp-2,  -0x1p-1})
          : polynomial(f,
                       {-0x1.3a32ap-4, 0x1.090176p-3, -0x1.0f2d0ap-3, 0x1.2254aep-3, -0x1.5424fcp-3,
                        0x1.99a544p-3, -0x1.000438p-2, 0x1.55554ep-2, -0x1.fffff8p-2});
  return f * q;
}

/// What a logarithm is outside the positive finite numbers.
Expr finish_logarithm(const Expr& x, const Expr& value) {
  const Expr is_below_infinity = x < x.number(HUGE_VAL);
  const Expr at_most_zero = where(equal(x, x.number(0)), x.number(-HUGE_VAL), x.number(NAN));
  // +infinity and NaN are their own logarithms.
  return where((x > x.number(0)) & is_below_infinity, value,
               where(is_below_infinity, at_most_zero, x));
}

}  // namespace

Expr log_of(const Expr& x) {
  const double hi = is_double(x) ? 0x1.62e42feep-1 : 0x1.62e4p-1;
  const double lo = is_double(x) ? 0x1.a39ef35793c76p-33 : 0x1.7f7d1cf79abcap-20;
  const Split s = split_logarithm(x);
  const Expr small = mulacc(s.e, x.number(lo), s.f * log_curve(s.f));
  return finish_logarithm(x, mulacc(s.e, x.number(hi), s.f + small));
}

Expr log2_of(const Expr& x) {
  const double log2e = 0x1.71547652b82fep+0;
  // A leading part of half the bits; so has that of f, and their product is exact.
  const double hi = is_double(x) ? 0x1.715476p+0 : 0x1.716p+0;
  const double lo = is_double(x) ? 0x1.4ae0bf85ddf44p-26 : -0x1.7135a8fa03d11p-13;
  const Split s = split_logarithm(x);
  const Expr bits = s.f.bits();
  const Expr f_hi = (bits & bits.integer(-(int64_t{1} << (is_double(x) ? 27 : 12)))).as_float();
  const Expr f_lo = s.f - f_hi;
  // (f + curve) * log2(e), the large product last.
  const Expr curve = mulacc(s.f, x.number(lo), s.f * log_curve(s.f) * x.number(log2e));
  const Expr small = mulacc(f_lo, x.number(hi), curve);
  return finish_logarithm(x, s.e + mulacc(f_hi, x.number(hi), small));
}

}  // namespace ignis::codegen
