#pragma once

#include "ignis/codegen/lower/expr.h"

/// Elementary functions as expressions of float32 or float64 operations that vectorise: no branch, no table in memory,
/// no call. Bounds in units in the last place over the whole range, subnormals, zeros, infinities and NaN included,
/// with and without a fused multiply-add; checked by function_test.cpp.
namespace ignis::codegen {

Expr exp_of(const Expr& x);   ///< 2 ulp
Expr exp2_of(const Expr& x);  ///< 2 ulp
/// exp(x) + c for c >= 1, 3 ulp. Beside c the smallest exponentials vanish: it takes three quarters of exp's operations.
Expr exp_plus_of(const Expr& x, double c);
Expr log_of(const Expr& x);   ///< 2 ulp
Expr log2_of(const Expr& x);  ///< 2 ulp
Expr sin_of(const Expr& x);   ///< 2 ulp; float64: 3 ulp
Expr cos_of(const Expr& x);   ///< 2 ulp; float64: 3 ulp
Expr tanh_of(const Expr& x);  ///< 4 ulp
Expr erf_of(const Expr& x);   ///< 4 ulp
Expr atan_of(const Expr& x);  ///< 4 ulp
/// 4 ulp; float64: 8 ulp. `has_fma`: Mulacc rounds once.
Expr pow_of(const Expr& x, const Expr& y, bool has_fma);

namespace detail {
/// exp(x) for |x| < 80: no clamping, no subnormal results. NaN stays NaN.
Expr exp_moderate(const Expr& x);
/// exp(x) - 1 for 0 <= x < 80, accurate near 0 as well.
Expr expm1_moderate(const Expr& x);
/// p * 2^k for p in [0.5, 2] and any k a result can have, rounded once where it is subnormal, infinite where it is too
/// large. `k_bits` is k shifted to the exponent's place; `sign` has its sign bit set where k <= 0, clear where k >= 0.
Expr scale_by_power(const Expr& p, const Expr& k_bits, const Expr& sign);
/// 2^r for |r| <= 0.5.
Expr exp2_of_fraction(const Expr& r);
}  // namespace detail

}  // namespace ignis::codegen
