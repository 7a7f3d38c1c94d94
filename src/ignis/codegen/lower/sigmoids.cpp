#include "ignis/codegen/lower/functions.h"

#include <cmath>

// tanh, erf and atan: odd functions of |x|, which get its sign at the end.

namespace ignis::codegen {

namespace {

bool is_double(const Expr& x) { return x.dtype() == DType::Float64; }

/// x + x * z * q, the form that keeps the leading term exact.
Expr odd(const Expr& x, const Expr& z, const Expr& q) { return mulacc(x * z, q, x); }

}  // namespace

Expr tanh_of(const Expr& x) {
  // e / (e + 2) with e = exp(2|x|) - 1; beyond the bound the quotient rounds to 1.
  const Expr bounded = min(magnitude(x), x.number(is_double(x) ? 20.0 : 10.0));
  const Expr e = detail::expm1_moderate(bounded + bounded);
  return with_sign_of(e / (e + x.number(2)), x);
}

Expr erf_of(const Expr& x) {
  const Expr size = magnitude(x), z = x * x;
  // erf(x) / x - 1 up to 1; log(1 - erf(x)) beyond, until erf rounds to 1.
  const Expr slope =
      is_double(x)
          ? polynomial(z, {-0x1.a259ac92aa1b0p-31, 0x1.d3e5f2827224cp-27, -0x1.5b8d7a21a57c9p-23,
                           0x1.b96b7d4365324p-20, -0x1.f4c8323626cc1p-17, 0x1.f9a296df52806p-14,
                           -0x1.c02daeb86005cp-11, 0x1.565bcceee0879p-8, -0x1.b82ce311a99a9p-6,
                           0x1.ce2f21a03f8bcp-4, -0x1.812746b03799dp-2, 0x1.06eba8214db68p-3})
          : polynomial(z, {0x1.47721ep-14, -0x1.a35166p-11, 0x1.53f224p-8, -0x1.b7f71ap-6,
                           0x1.ce2ce6p-4, -0x1.81273ep-2, 0x1.06eba8p-3});
  const Expr bounded = min(size, x.number(is_double(x) ? 6.0 : 4.0));
  const Expr log_rest =
      is_double(x)
          ? polynomial(bounded,
                       {-0x1.316d7269efa91p-35, 0x1.0bb1e6742d918p-30, -0x1.6276be7020131p-27,
                        0x1.b8f67ddf6cce5p-26, 0x1.392414f9908d4p-21, -0x1.1b1fd033f90fbp-17,
                        0x1.04f2cee9afa81p-14, -0x1.40e4c998012a6p-12, 0x1.130b7beb24bb1p-10,
                        -0x1.29a352a55d6f5p-9, 0x1.8e62d3948bbafp-11, 0x1.32dfc10e81c8dp-6,
                        -0x1.a417e65f1b06dp-4, -0x1.45fd1da5038fap-1, -0x1.20dc5208e799ap+0,
                        -0x1.e7875e1827584p-20})
          : polynomial(bounded, {0x1.86de66p-13, -0x1.825b3cp-9, 0x1.65cb74p-6, -0x1.a6532cp-4,
                                 -0x1.46baf2p-1, -0x1.2088e8p+0, -0x1.6629b6p-12});
  const Expr far = x.number(1) - detail::exp_moderate(log_rest);
  return where(size < x.number(1), mulacc(x, slope, x), with_sign_of(far, x));
}

Expr atan_of(const Expr& x) {
  const Expr size = magnitude(x), one = x.number(1);
  const Expr is_large = size > one;
  const Expr t = min(size, one) / max(size, one);  // in [0, 1]: x or 1 / x
  Expr value;
  if (is_double(x)) {
    // Above tan(pi/8): pi/4 + atan((t - 1) / (t + 1)).
    const Expr is_upper = t > x.number(0x1.a827999fcef32p-2);
    const Expr u = where(is_upper, t - one, t) / where(is_upper, t + one, one), z = u * u;
    const Expr tail =
        polynomial(z, {-0x1.256055664aab4p-6, 0x1.37d1241fc7a6bp-5, -0x1.9cd1003c26031p-5,
                       0x1.df0eeb177a118p-5, -0x1.10ebb1e99eb5ap-4, 0x1.3b111894ad069p-4,
                       -0x1.745cf8d56d69bp-4, 0x1.c71c70e5d9706p-4, -0x1.24924922acf3fp-3,
                       0x1.9999999995860p-3, -0x1.555555555553dp-2});
    const Expr low = where(is_upper, x.number(0x1.1a62633145c07p-55), x.number(0));
    value = where(is_upper, x.number(0x1.921fb54442d18p-1), x.number(0)) + (odd(u, z, tail) + low);
  } else {
    const Expr z = t * t;
    const Expr tail = polynomial(z, {0x1.7ea9c8p-9, -0x1.0c18fep-6, 0x1.61ef4ep-5, -0x1.3550fep-4,
                                     0x1.b4deb6p-4, -0x1.230a94p-3, 0x1.9978ecp-3, -0x1.5554dcp-2});
    value = odd(t, z, tail);
  }
  const double hi = is_double(x) ? 0x1.921fb54442d18p+0 : 0x1.921fb6p+0;  // pi/2
  const double lo = is_double(x) ? 0x1.1a62633145c07p-54 : -0x1.777a5cf72cecep-25;
  const Expr other = x.number(hi) - (value - x.number(lo));
  return with_sign_of(where(is_large, other, value), x);
}

}  // namespace ignis::codegen
