#pragma once

#include "ignis/base/result.h"

#include <cstdint>
#include <string_view>

namespace ignis {

/// Element types in the order of the promotion lattice's tie break (priority, bits). The weak types have no
/// storage: they are exact values of host scalars that take the other operand's width.
enum class DType : uint8_t {
  Void,
  Bool,
  WeakInt,
  Int8,
  UInt8,
  Int16,
  UInt16,
  Int32,
  UInt32,
  Int64,
  UInt64,
  WeakFloat,
  Fp8E4M3,
  Fp8E5M2,
  Fp8E4M3Fnuz,
  Fp8E5M2Fnuz,
  Float16,
  BFloat16,
  Float32,
  Float64,
};
inline constexpr int kDTypeCount = 20;

/// Short name used in text form, shapes and messages: "bool", "i8", "u8", … "f32", "bf16", "fp8e4m3", "weakint".
std::string_view to_string(DType dtype);
/// Reads a short name ("f32") or a numpy-like name ("float32"). Errors: InvalidArgument.
Result<DType> parse_dtype(std::string_view text);

/// Bytes of one stored element; 0 for void and the weak types. Bool is one byte holding 0 or 1.
constexpr int size_bytes(DType d) {
  switch (d) {
    case DType::Void:
    case DType::WeakInt:
    case DType::WeakFloat: return 0;
    case DType::Bool:
    case DType::Int8:
    case DType::UInt8:
    case DType::Fp8E4M3:
    case DType::Fp8E5M2:
    case DType::Fp8E4M3Fnuz:
    case DType::Fp8E5M2Fnuz: return 1;
    case DType::Int16:
    case DType::UInt16:
    case DType::Float16:
    case DType::BFloat16: return 2;
    case DType::Int32:
    case DType::UInt32:
    case DType::Float32: return 4;
    case DType::Int64:
    case DType::UInt64:
    case DType::Float64: return 8;
  }
  return 0;
}
constexpr bool is_weak(DType d) { return d == DType::WeakInt || d == DType::WeakFloat; }
constexpr bool is_float(DType d) { return d >= DType::WeakFloat; }
/// Integers, the weak one included; bool is not one.
constexpr bool is_int(DType d) { return d >= DType::WeakInt && d <= DType::UInt64; }
constexpr bool is_unsigned(DType d) {
  return d == DType::UInt8 || d == DType::UInt16 || d == DType::UInt32 || d == DType::UInt64;
}
constexpr bool is_fp8(DType d) { return d >= DType::Fp8E4M3 && d <= DType::Fp8E5M2Fnuz; }
/// Bits of the value: 1 for bool, 0 for void and the weak types.
constexpr int bits(DType d) { return d == DType::Bool ? 1 : 8 * size_bytes(d); }
/// int32 for weakint, float32 for weakfloat, else itself.
constexpr DType strong(DType d) {
  return d == DType::WeakInt ? DType::Int32 : d == DType::WeakFloat ? DType::Float32 : d;
}
/// Smallest value of an integer type (bool: 0). Weak int: INT64_MIN.
int64_t int_min(DType d);
/// Largest value of an integer type as a bit pattern read as int64 except uint64, where it is UINT64_MAX's bits.
int64_t int_max(DType d);

/// Least common supertype in the promotion lattice (commutative; see docs/dtypes.md).
DType promote(DType a, DType b);
/// True when every value of `from` is a value of `to`.
bool is_lossless_cast(DType from, DType to);
/// Accumulator of sum and prod: unsigned -> at least u32, signed/bool -> at least i32, float -> at least f32.
DType accumulator_dtype(DType d);

}  // namespace ignis
