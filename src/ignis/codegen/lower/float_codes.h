#pragma once

#include "ignis/codegen/lower/expr.h"

/// Conversions between the codes of narrow floats and float32, as integer and float32 operations that vectorise. They
/// agree with base/float_formats.h in every bit: decoding is exact, encoding rounds once to nearest even onto the full
/// grid, subnormals included; fp8 saturates.
namespace ignis::codegen {

/// float16, bfloat16 and the four fp8 formats.
bool is_narrow_float(DType dtype);
/// uint8 or uint16: what such a value is stored as.
DType code_dtype(DType format);

/// The float32 value of a code (of code_dtype(format)).
Expr decode(DType format, const Expr& code);
/// The code of a float32 value.
Expr encode(DType format, const Expr& value);

/// float64 to float32 such that a second rounding to a narrower format rounds correctly (round to odd).
Expr float64_to_float32_odd(const Expr& value);

}  // namespace ignis::codegen
