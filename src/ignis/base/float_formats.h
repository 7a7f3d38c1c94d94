#pragma once

#include "ignis/base/dtype.h"

#include <cstdint>

namespace ignis {

/// What a cast to an fp8 type does beyond the largest finite value.
enum class Fp8Overflow : uint8_t {
  Saturate,  ///< finite overflow to +-max; Inf to +-max in e4m3 and e5m2, to NaN in the fnuz types (ONNX)
  NonSaturate,  ///< e5m2: Inf, e4m3 and fnuz: NaN
};

/// Decodes the low bits of `code` as a value of a float format of 8, 16, 32 or 64 bits; exact, subnormals kept.
double decode_float(DType format, uint64_t code);

/// Rounds `value` once, to nearest even, onto the format's full grid (subnormals included) and returns its code.
/// NaN stays a quiet NaN. This is the one routine for constants, the interpreter and tests of every back end.
uint64_t encode_float(DType format, double value, Fp8Overflow overflow = Fp8Overflow::Saturate);

/// Rounds an integer once onto the format's grid and returns its code; a detour over double would round 64-bit
/// values twice. With `is_unsigned_value` the 64 bits are read as unsigned.
uint64_t encode_float_from_int(DType format, int64_t value, bool is_unsigned_value = false,
                               Fp8Overflow overflow = Fp8Overflow::Saturate);

/// decode(encode(value)).
double round_to(DType format, double value);

/// Float to integer as on every device: truncates towards zero, saturates, NaN gives 0. uint64 as its bit pattern.
int64_t float_to_int(DType to, double value);
/// Wraps `value` modulo 2^bits into the integer dtype (sign- or zero-extended back to int64). Bool: value != 0.
int64_t wrap_int(DType to, int64_t value);

}  // namespace ignis
