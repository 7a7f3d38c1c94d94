#include "ignis/base/dtype.h"

#include <array>
#include <limits>
#include <string>

namespace ignis {
namespace {

constexpr std::array<std::string_view, kDTypeCount> kNames = {
    "void",        "bool",        "weakint", "i8",   "u8",        "i16",     "u16",
    "i32",         "u32",         "i64",     "u64",  "weakfloat", "fp8e4m3", "fp8e5m2",
    "fp8e4m3fnuz", "fp8e5m2fnuz", "f16",     "bf16", "f32",       "f64"};

struct LongName {
  std::string_view text;
  DType dtype;
};
// numpy's spelling, ml_dtypes' spelling of the fp8 types (with and without underscore), and ONNX's.
constexpr LongName kLongNames[] = {
    {"int8", DType::Int8},
    {"uint8", DType::UInt8},
    {"int16", DType::Int16},
    {"uint16", DType::UInt16},
    {"int32", DType::Int32},
    {"uint32", DType::UInt32},
    {"int64", DType::Int64},
    {"uint64", DType::UInt64},
    {"float16", DType::Float16},
    {"bfloat16", DType::BFloat16},
    {"float32", DType::Float32},
    {"float64", DType::Float64},
    {"float", DType::Float32},
    {"double", DType::Float64},
    {"float8e4m3fn", DType::Fp8E4M3},
    {"float8e5m2", DType::Fp8E5M2},
    {"float8e4m3fnuz", DType::Fp8E4M3Fnuz},
    {"float8e5m2fnuz", DType::Fp8E5M2Fnuz},
    {"float8_e4m3fn", DType::Fp8E4M3},
    {"float8_e5m2", DType::Fp8E5M2},
    {"float8_e4m3fnuz", DType::Fp8E4M3Fnuz},
    {"float8_e5m2fnuz", DType::Fp8E5M2Fnuz},
};

constexpr uint32_t bit_of(DType d) { return 1U << static_cast<int>(d); }

/// The immediate supertypes of a dtype, as a bit set.
constexpr uint32_t direct_supertypes(DType d) {
  constexpr uint32_t kAllFp8 = bit_of(DType::Fp8E4M3) | bit_of(DType::Fp8E5M2) |
                               bit_of(DType::Fp8E4M3Fnuz) | bit_of(DType::Fp8E5M2Fnuz);
  switch (d) {
    case DType::Void: return 0;
    case DType::Bool: return bit_of(DType::WeakInt);
    case DType::WeakInt: return bit_of(DType::Int8) | bit_of(DType::UInt8);
    case DType::Int8: return bit_of(DType::Int16);
    case DType::UInt8: return bit_of(DType::Int16) | bit_of(DType::UInt16);
    case DType::Int16: return bit_of(DType::Int32);
    case DType::UInt16: return bit_of(DType::Int32) | bit_of(DType::UInt32);
    case DType::Int32: return bit_of(DType::Int64);
    case DType::UInt32: return bit_of(DType::Int64) | bit_of(DType::UInt64);
    case DType::Int64: return bit_of(DType::WeakFloat);
    case DType::UInt64: return bit_of(DType::WeakFloat);
    case DType::WeakFloat: return kAllFp8;
    case DType::Fp8E4M3:
    case DType::Fp8E5M2:
    case DType::Fp8E4M3Fnuz:
    case DType::Fp8E5M2Fnuz: return bit_of(DType::Float16) | bit_of(DType::BFloat16);
    case DType::Float16: return bit_of(DType::Float32);
    case DType::BFloat16: return bit_of(DType::Float32);
    case DType::Float32: return bit_of(DType::Float64);
    case DType::Float64: return 0;
  }
  return 0;
}

/// Every supertype of every dtype, itself included. Edges only lead upwards in the enum's order.
constexpr std::array<uint32_t, kDTypeCount> make_supertypes() {
  std::array<uint32_t, kDTypeCount> result{};
  for (int i = kDTypeCount - 1; i >= 0; --i) {
    const auto d = static_cast<DType>(i);
    uint32_t set = bit_of(d);
    for (int j = i + 1; j < kDTypeCount; ++j) {
      if ((direct_supertypes(d) >> j) & 1U) set |= result[static_cast<size_t>(j)];
    }
    result[static_cast<size_t>(i)] = set;
  }
  return result;
}
constexpr std::array<uint32_t, kDTypeCount> kSupertypes = make_supertypes();

}  // namespace

std::string_view to_string(DType dtype) { return kNames[static_cast<size_t>(dtype)]; }

Result<DType> parse_dtype(std::string_view text) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<DType>(i);
  }
  for (const LongName& name : kLongNames) {
    if (name.text == text) return name.dtype;
  }
  return Error(ErrorCode::InvalidArgument,
               "'" + std::string(text) + "' is not the name of a dtype.");
}

int64_t int_min(DType d) {
  switch (d) {
    case DType::Int8: return std::numeric_limits<int8_t>::min();
    case DType::Int16: return std::numeric_limits<int16_t>::min();
    case DType::Int32: return std::numeric_limits<int32_t>::min();
    case DType::Int64:
    case DType::WeakInt: return std::numeric_limits<int64_t>::min();
    default: return 0;
  }
}

int64_t int_max(DType d) {
  switch (d) {
    case DType::Bool: return 1;
    case DType::Int8: return std::numeric_limits<int8_t>::max();
    case DType::UInt8: return std::numeric_limits<uint8_t>::max();
    case DType::Int16: return std::numeric_limits<int16_t>::max();
    case DType::UInt16: return std::numeric_limits<uint16_t>::max();
    case DType::Int32: return std::numeric_limits<int32_t>::max();
    case DType::UInt32: return std::numeric_limits<uint32_t>::max();
    case DType::Int64:
    case DType::WeakInt: return std::numeric_limits<int64_t>::max();
    case DType::UInt64: return -1;
    default: return 0;
  }
}

DType promote(DType a, DType b) {
  const uint32_t common = kSupertypes[static_cast<size_t>(a)] & kSupertypes[static_cast<size_t>(b)];
  if (common == 0) return DType::Void;  // void joins with nothing else
  // The enum stands in tie-break order, so the least common supertype is the lowest bit.
  int lowest = 0;
  while (((common >> lowest) & 1U) == 0) ++lowest;
  return static_cast<DType>(lowest);
}

bool is_lossless_cast(DType from, DType to) {
  if (from == to) return true;
  const auto in = [to](std::initializer_list<DType> set) {
    for (const DType d : set) {
      if (d == to) return true;
    }
    return false;
  };
  switch (from) {
    case DType::Bool: return to != DType::Void;
    case DType::Int8:
      return in({DType::WeakInt, DType::Int16, DType::Int32, DType::Int64, DType::Float16,
                 DType::Float32, DType::Float64});
    case DType::UInt8:
      return in({DType::WeakInt, DType::Int16, DType::UInt16, DType::Int32, DType::UInt32,
                 DType::Int64, DType::UInt64, DType::Float16, DType::Float32, DType::Float64});
    case DType::Int16:
      return in({DType::WeakInt, DType::Int32, DType::Int64, DType::Float32, DType::Float64});
    case DType::UInt16:
      return in({DType::WeakInt, DType::Int32, DType::UInt32, DType::Int64, DType::UInt64,
                 DType::Float32, DType::Float64});
    case DType::Int32: return in({DType::WeakInt, DType::Int64, DType::Float64});
    case DType::UInt32: return in({DType::WeakInt, DType::Int64, DType::UInt64, DType::Float64});
    case DType::Int64:
    case DType::UInt64: return to == DType::WeakInt;
    case DType::Fp8E4M3:
    case DType::Fp8E5M2:
    case DType::Fp8E4M3Fnuz:
    case DType::Fp8E5M2Fnuz: return in({DType::Float16, DType::Float32, DType::Float64});
    case DType::Float16:
    case DType::BFloat16: return in({DType::Float32, DType::Float64});
    case DType::Float32: return to == DType::Float64;
    default: return false;
  }
}

DType accumulator_dtype(DType d) {
  if (is_float(d)) return promote(d, DType::Float32);
  return promote(d, is_unsigned(d) ? DType::UInt32 : DType::Int32);
}

}  // namespace ignis
