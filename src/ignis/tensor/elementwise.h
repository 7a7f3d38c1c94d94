#pragma once

#include "ignis/tensor/core.h"

/// Elementwise operations. Operands are broadcast right-aligned and meet at the join of their dtypes
/// (base/dtype.h promote); a weak scalar constant takes the other operand's dtype without a cast node.
/// Error bounds are those of float32 and hold for float64 in its own ulp; narrower floats are computed in float32.
namespace ignis::tensor {

// --- conversions ---
/// Numeric conversion. Float to integer truncates, saturates, and NaN gives 0; integers wrap; to bool is x != 0.
Tensor cast(const Tensor& x, DType dtype);
/// Reinterprets the bits; when the sizes differ the last axis is rescaled (bytes must divide). Weak: error.
Tensor bitcast(const Tensor& x, DType dtype);

// --- arithmetic ---
Tensor add(const Operand& a, const Operand& b);       ///< integers wrap; bool: or
Tensor sub(const Operand& a, const Operand& b);       ///< bool: error
Tensor mul(const Operand& a, const Operand& b);       ///< bool: and
Tensor div(const Operand& a, const Operand& b);       ///< true division: int / int is float32
Tensor floordiv(const Operand& a, const Operand& b);  ///< rounds down; x // 0 is 0 for integers
Tensor floormod(const Operand& a,
                const Operand& b);  ///< sign of the divisor; x % 0 is 0 for integers
Tensor cdiv(const Operand& a,
            const Operand& b);  ///< truncates (ONNX integer Div); floats: trunc(a / b)
Tensor cmod(const Operand& a, const Operand& b);  ///< sign of the dividend (ONNX Mod with fmod=1)
/// Floats: 4 ulp. Integers: exact, wrapping, a negative exponent gives the truncated reciprocal (0, 1 or -1); a
/// negative constant exponent on integers is an error. A float base takes an integer exponent.
Tensor pow(const Operand& a, const Operand& b);
Tensor maximum(const Operand& a, const Operand& b);  ///< NaN wins
Tensor minimum(const Operand& a, const Operand& b);  ///< NaN wins
Tensor neg(const Tensor& x);                         ///< bool: not
Tensor abs(const Tensor& x);
Tensor sign(const Tensor& x);  ///< -1, 0 (signed zero kept), 1; NaN stays NaN
Tensor square(const Tensor& x);
Tensor copysign(const Tensor& magnitude, const Tensor& sign);
/// min(max(x, lo), hi); an absent end does not bound. NaN stays NaN.
Tensor clamp(const Tensor& x, const std::optional<Operand>& lo, const std::optional<Operand>& hi);
Tensor lerp(const Tensor& a, const Tensor& b, const Operand& t);  ///< a + (b - a) * t

// --- comparison (bool results; compared exactly, also int64 with uint64 and int8 with the scalar 200) ---
Tensor less(const Operand& a, const Operand& b);
Tensor less_equal(const Operand& a, const Operand& b);
Tensor greater(const Operand& a, const Operand& b);
Tensor greater_equal(const Operand& a, const Operand& b);
Tensor equal(const Operand& a, const Operand& b);
Tensor not_equal(const Operand& a, const Operand& b);
Tensor isnan(const Tensor& x);
/// Infinities of the chosen signs; false everywhere for integers.
Tensor isinf(const Tensor& x, bool positive = true, bool negative = true);

// --- logic and bits ---
/// `condition` must be bool and takes no part in promotion.
Tensor where(const Tensor& condition, const Operand& then_value, const Operand& else_value);
Tensor logical_not(const Tensor& x);  ///< of x != 0
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);
Tensor bitwise_and(const Operand& a, const Operand& b);  ///< integers and bool
Tensor bitwise_or(const Operand& a, const Operand& b);
Tensor bitwise_xor(const Operand& a, const Operand& b);
Tensor bitwise_not(const Tensor& x);
/// Result has the left operand's dtype; a count of the width or more shifts everything out (sign fill for signed right
/// shifts). Negative counts count as too large.
Tensor shift_left(const Operand& a, const Operand& count);
Tensor shift_right(const Operand& a, const Operand& count);

// --- rounding ---
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);  ///< half to even
Tensor trunc(const Tensor& x);

// --- functions: integers are converted to float32, weak ints to weak floats ---
Tensor sqrt(const Tensor& x);                    ///< 0.5 ulp
Tensor rsqrt(const Tensor& x);                   ///< 1.5 ulp
Tensor reciprocal(const Tensor& x);              ///< 0.5 ulp
Tensor exp(const Tensor& x);                     ///< 2 ulp
Tensor exp2(const Tensor& x);                    ///< 2 ulp
Tensor expm1(const Tensor& x);                   ///< 4 ulp
Tensor log(const Tensor& x);                     ///< 2 ulp
Tensor log2(const Tensor& x);                    ///< 2 ulp
Tensor log10(const Tensor& x);                   ///< 4 ulp
Tensor log1p(const Tensor& x);                   ///< 5 ulp
Tensor sin(const Tensor& x);                     ///< 2 ulp
Tensor cos(const Tensor& x);                     ///< 2 ulp
Tensor tan(const Tensor& x);                     ///< 5 ulp
Tensor asin(const Tensor& x);                    ///< 6 ulp; NaN outside [-1, 1]
Tensor acos(const Tensor& x);                    ///< 6 ulp
Tensor atan(const Tensor& x);                    ///< 4 ulp
Tensor atan2(const Tensor& y, const Tensor& x);  ///< 6 ulp; atan2(0, 0) is 0
Tensor sinh(const Tensor& x);                    ///< 6 ulp
Tensor cosh(const Tensor& x);                    ///< 6 ulp
Tensor tanh(const Tensor& x);                    ///< 4 ulp
Tensor asinh(const Tensor& x);                   ///< 8 ulp
Tensor acosh(const Tensor& x);  ///< 8 ulp, beyond 1 + 2^-10 (near 1 the argument's own rounding)
Tensor atanh(const Tensor& x);  ///< 8 ulp
Tensor erf(const Tensor& x);    ///< 4 ulp

// --- activations ---
Tensor relu(const Tensor& x);  ///< NaN stays NaN; integers too
Tensor leaky_relu(const Tensor& x, double alpha = 0.01);
Tensor prelu(const Tensor& x, const Tensor& slope);  ///< slope broadcast against x
Tensor elu(const Tensor& x, double alpha = 1.0);
Tensor selu(const Tensor& x, double alpha = 1.67326319217681884765625,
            double gamma = 1.05070102214813232421875);
Tensor celu(const Tensor& x, double alpha = 1.0);
Tensor sigmoid(const Tensor& x);  ///< 4 ulp
Tensor silu(const Tensor& x);     ///< x * sigmoid(x)
enum class GeluForm : uint8_t { Erf, Tanh };
Tensor gelu(const Tensor& x, GeluForm form = GeluForm::Erf);
Tensor softplus(const Tensor& x);
Tensor softsign(const Tensor& x);
Tensor hard_sigmoid(const Tensor& x, double alpha = 0.2, double beta = 0.5);
Tensor hard_swish(const Tensor& x);  ///< x * clamp(x / 6 + 0.5, 0, 1)
Tensor mish(const Tensor& x);
Tensor shrink_activation(const Tensor& x, double lambd = 0.5, double bias = 0.0);  ///< ONNX Shrink
Tensor thresholded_relu(const Tensor& x, double alpha = 1.0);

inline Tensor operator+(const Operand& a, const Operand& b) { return add(a, b); }
inline Tensor operator-(const Operand& a, const Operand& b) { return sub(a, b); }
inline Tensor operator*(const Operand& a, const Operand& b) { return mul(a, b); }
inline Tensor operator/(const Operand& a, const Operand& b) { return div(a, b); }
inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator<(const Operand& a, const Operand& b) { return less(a, b); }
inline Tensor operator<=(const Operand& a, const Operand& b) { return less_equal(a, b); }
inline Tensor operator>(const Operand& a, const Operand& b) { return greater(a, b); }
inline Tensor operator>=(const Operand& a, const Operand& b) { return greater_equal(a, b); }
inline Tensor operator&(const Operand& a, const Operand& b) { return bitwise_and(a, b); }
inline Tensor operator|(const Operand& a, const Operand& b) { return bitwise_or(a, b); }
inline Tensor operator^(const Operand& a, const Operand& b) { return bitwise_xor(a, b); }

}  // namespace ignis::tensor
