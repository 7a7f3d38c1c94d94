#include "ignis/base/dtype.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace ignis {
namespace {

// The short names of the promotion matrix in the dtype specification, section 2.
const std::map<std::string, DType>& short_names() {
  static const std::map<std::string, DType> names = {
      {"b", DType::Bool},      {"wi", DType::WeakInt},      {"i8", DType::Int8},
      {"u8", DType::UInt8},    {"i16", DType::Int16},       {"u16", DType::UInt16},
      {"i32", DType::Int32},   {"u32", DType::UInt32},      {"i64", DType::Int64},
      {"u64", DType::UInt64},  {"wf", DType::WeakFloat},    {"e4", DType::Fp8E4M3},
      {"e5", DType::Fp8E5M2},  {"e4z", DType::Fp8E4M3Fnuz}, {"e5z", DType::Fp8E5M2Fnuz},
      {"f16", DType::Float16}, {"bf", DType::BFloat16},     {"f32", DType::Float32},
      {"f64", DType::Float64},
  };
  return names;
}

// The first word of a row is the row's dtype; the header gives the columns.
struct Matrix {
  std::string header;
  std::vector<std::string> rows;
};

const Matrix& small_matrix() {
  static const Matrix m = {
      "b wi i8 u8 i16 u16 i32 u32 i64 u64 wf",
      {"b   b wi i8 u8 i16 u16 i32 u32 i64 u64 wf", "wi  wi wi i8 u8 i16 u16 i32 u32 i64 u64 wf",
       "i8  i8 i8 i8 i16 i16 i32 i32 i64 i64 wf wf", "u8  u8 u8 i16 u8 i16 u16 i32 u32 i64 u64 wf",
       "i16 i16 i16 i16 i16 i16 i32 i32 i64 i64 wf wf",
       "u16 u16 u16 i32 u16 i32 u16 i32 u32 i64 u64 wf",
       "i32 i32 i32 i32 i32 i32 i32 i32 i64 i64 wf wf",
       "u32 u32 u32 i64 u32 i64 u32 i64 u32 i64 u64 wf",
       "i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 wf wf",
       "u64 u64 u64 wf u64 wf u64 wf u64 wf u64 wf"}};
  return m;
}

const Matrix& float_matrix() {
  static const Matrix m = {
      "e4 e5 e4z e5z f16 bf f32 f64",
      {"e4  e4 f16 f16 f16 f16 bf f32 f64", "e5  f16 e5 f16 f16 f16 bf f32 f64",
       "e4z f16 f16 e4z f16 f16 bf f32 f64", "e5z f16 f16 f16 e5z f16 bf f32 f64",
       "f16 f16 f16 f16 f16 f16 f32 f32 f64", "bf  bf bf bf bf f32 bf f32 f64",
       "f32 f32 f32 f32 f32 f32 f32 f32 f64", "f64 f64 f64 f64 f64 f64 f64 f64 f64"}};
  return m;
}

std::vector<DType> parse_row(const std::string& text) {
  std::istringstream stream(text);
  std::vector<DType> result;
  for (std::string word; stream >> word;) result.push_back(short_names().at(word));
  return result;
}

std::vector<DType> lattice_dtypes() {
  std::vector<DType> result;
  for (int i = 1; i < kDTypeCount; ++i) result.push_back(static_cast<DType>(i));
  return result;
}

TEST(Promotion, MatchesTheMatrix) {
  int pairs = 0;
  for (const Matrix* matrix : {&small_matrix(), &float_matrix()}) {
    const std::vector<DType> columns = parse_row(matrix->header);
    for (const std::string& text : matrix->rows) {
      const std::vector<DType> row = parse_row(text);
      ASSERT_EQ(row.size(), columns.size() + 1);
      for (size_t i = 0; i < columns.size(); ++i, ++pairs) {
        EXPECT_EQ(to_string(promote(row[0], columns[i])), to_string(row[i + 1]))
            << to_string(row[0]) << " with " << to_string(columns[i]);
        EXPECT_EQ(promote(columns[i], row[0]), row[i + 1]);
      }
    }
  }
  EXPECT_EQ(pairs, 10 * 11 + 8 * 8);
}

TEST(Promotion, AnyFloatWinsOverEveryIntegerAndWeakDtype) {
  for (const DType column : parse_row(small_matrix().header)) {
    for (const DType f : parse_row(float_matrix().header)) {
      EXPECT_EQ(promote(column, f), f);
      EXPECT_EQ(promote(f, column), f);
    }
  }
}

TEST(Promotion, IsAssociativeButForBfloat16BesideTwoFp8) {
  int exceptions = 0;
  for (const DType a : lattice_dtypes()) {
    for (const DType b : lattice_dtypes()) {
      for (const DType c : lattice_dtypes()) {
        if (promote(promote(a, b), c) == promote(a, promote(b, c))) continue;
        ++exceptions;
        const bool bf_after = is_fp8(a) && is_fp8(b) && a != b && c == DType::BFloat16;
        const bool bf_before = is_fp8(b) && is_fp8(c) && b != c && a == DType::BFloat16;
        EXPECT_TRUE(bf_after || bf_before) << to_string(a) << to_string(b) << to_string(c);
      }
    }
  }
  EXPECT_EQ(exceptions, 24);
}

TEST(Promotion, IsIdempotentAndVoidJoinsWithNothing) {
  for (const DType d : lattice_dtypes()) {
    EXPECT_EQ(promote(d, d), d);
    EXPECT_EQ(promote(d, DType::Void), DType::Void);
  }
}

TEST(LosslessCast, MatchesTheTable) {
  // Specification section 2, "Lossless-cast relation". Bool goes to everything, a dtype to itself.
  const std::map<std::string, std::string> table = {
      {"i8", "wi i16 i32 i64 f16 f32 f64"},
      {"u8", "wi i16 u16 i32 u32 i64 u64 f16 f32 f64"},
      {"i16", "wi i32 i64 f32 f64"},
      {"u16", "wi i32 u32 i64 u64 f32 f64"},
      {"i32", "wi i64 f64"},
      {"u32", "wi i64 u64 f64"},
      {"i64", "wi"},
      {"u64", "wi"},
      {"e4", "f16 f32 f64"},
      {"e5", "f16 f32 f64"},
      {"e4z", "f16 f32 f64"},
      {"e5z", "f16 f32 f64"},
      {"f16", "f32 f64"},
      {"bf", "f32 f64"},
      {"f32", "f64"},
      {"f64", ""},
      {"wi", ""},
      {"wf", ""},
  };
  for (const auto& [name, text] : table) {
    const DType from = short_names().at(name);
    const std::vector<DType> row = parse_row(text);
    const std::set<DType> allowed(row.begin(), row.end());
    for (const DType to : lattice_dtypes()) {
      EXPECT_EQ(is_lossless_cast(from, to), from == to || allowed.contains(to))
          << to_string(from) << " to " << to_string(to);
    }
  }
  for (const DType to : lattice_dtypes()) EXPECT_TRUE(is_lossless_cast(DType::Bool, to));
}

TEST(DTypeNames, ParseBackUnchanged) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto d = static_cast<DType>(i);
    const Result<DType> parsed = parse_dtype(to_string(d));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(*parsed, d);
  }
  EXPECT_EQ(*parse_dtype("float32"), DType::Float32);
  EXPECT_EQ(*parse_dtype("uint8"), DType::UInt8);
  EXPECT_EQ(*parse_dtype("float8_e4m3fn"), DType::Fp8E4M3);
  EXPECT_EQ(*parse_dtype("bfloat16"), DType::BFloat16);
}

TEST(DTypeNames, UnknownNameIsRefusedByName) {
  for (const char* text : {"", "f33", "F32", "int", "f32 "}) {
    const Result<DType> parsed = parse_dtype(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), ErrorCode::InvalidArgument);
    EXPECT_NE(parsed.error().message().find("'" + std::string(text) + "'"), std::string::npos);
  }
}

TEST(DTypeLimits, IntegersOfEveryWidth) {
  EXPECT_EQ(int_min(DType::Int8), -128);
  EXPECT_EQ(int_max(DType::Int8), 127);
  EXPECT_EQ(int_max(DType::UInt8), 255);
  EXPECT_EQ(int_min(DType::Int16), -32768);
  EXPECT_EQ(int_max(DType::UInt16), 65535);
  EXPECT_EQ(int_min(DType::Int32), -2147483648LL);
  EXPECT_EQ(int_max(DType::UInt32), 4294967295LL);
  EXPECT_EQ(int_min(DType::Int64), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(static_cast<uint64_t>(int_max(DType::UInt64)), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(int_min(DType::UInt64), 0);
  EXPECT_EQ(int_min(DType::Bool), 0);
  EXPECT_EQ(int_max(DType::Bool), 1);
}

TEST(Accumulator, WidensToAtLeast32Bits) {
  EXPECT_EQ(accumulator_dtype(DType::Bool), DType::Int32);
  EXPECT_EQ(accumulator_dtype(DType::Int8), DType::Int32);
  EXPECT_EQ(accumulator_dtype(DType::UInt8), DType::UInt32);
  EXPECT_EQ(accumulator_dtype(DType::UInt16), DType::UInt32);
  EXPECT_EQ(accumulator_dtype(DType::Int64), DType::Int64);
  EXPECT_EQ(accumulator_dtype(DType::UInt64), DType::UInt64);
  EXPECT_EQ(accumulator_dtype(DType::Float16), DType::Float32);
  EXPECT_EQ(accumulator_dtype(DType::BFloat16), DType::Float32);
  EXPECT_EQ(accumulator_dtype(DType::Fp8E5M2), DType::Float32);
  EXPECT_EQ(accumulator_dtype(DType::Float64), DType::Float64);
}

}  // namespace
}  // namespace ignis
