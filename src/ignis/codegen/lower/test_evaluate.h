#pragma once

#include "ignis/base/float_formats.h"
#include "ignis/codegen/lower/expr.h"

#include "tests/support/seed.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <unordered_map>
#include <vector>

// Evaluates scalar expressions of programs on many values at once, in the machine's own float32 and float64: what the
// tests of the lowerings compare with references. Leaves are Reg nodes and, for memory, Loads.
namespace ignis::codegen {

using ignis::testing::test_seed;

/// Raw bits of one value in each lane, zero-extended.
using Column = std::vector<uint64_t>;

template <typename T>
T read_as(uint64_t raw) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(static_cast<uint32_t>(raw));
  else if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(raw);
  else return static_cast<T>(raw);
}
template <typename T>
uint64_t raw_of(T value) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>) return std::bit_cast<uint64_t>(value);
  else if constexpr (std::is_same_v<T, bool>) return value ? 1 : 0;
  else return static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(value));
}

class Evaluator {
 public:
  explicit Evaluator(bool has_fma) : has_fma_(has_fma) {}

  void set(const ir::Node& leaf, Column values) {
    count_ = values.size();
    values_[leaf] = std::move(values);
  }
  const Column& of(const ir::Node& root) {
    std::vector<std::pair<ir::Node, int>> stack{{root, 0}};
    while (!stack.empty()) {  // what lies below a known value is not looked at
      auto& [n, next] = stack.back();
      if (values_.contains(n)) {
        stack.pop_back();
      } else if (next < n.source_count()) {
        const ir::Node source = n.src(next++);
        stack.emplace_back(source, 0);
      } else {
        const ir::Node done = n;
        values_.emplace(done, compute(done));
        stack.pop_back();
      }
    }
    return values_.at(root);
  }
  /// Forgets all values, also those that were set.
  void clear() { values_.clear(); }

 private:
  template <typename F>
  static auto with_type(DType dtype, const F& f) {
    switch (dtype) {
      case DType::Bool: return f(bool{});
      case DType::Int8: return f(int8_t{});
      case DType::UInt8: return f(uint8_t{});
      case DType::Int16: return f(int16_t{});
      case DType::UInt16: return f(uint16_t{});
      case DType::Int32: return f(int32_t{});
      case DType::UInt32: return f(uint32_t{});
      case DType::Int64: return f(int64_t{});
      case DType::UInt64: return f(uint64_t{});
      case DType::Float32: return f(float{});
      case DType::Float64: return f(double{});
      default: IGNIS_CHECK(false) << "not a dtype of programs: " << to_string(dtype); std::abort();
    }
  }

  Column compute(const ir::Node& n) {
    using ir::Op;
    Column out(count_);
    if (n.is(Op::Param) || n.is(Op::Index)) return out;
    if (n.is(Op::Const)) {
      const uint64_t raw = n.dtype() == DType::Float32 ? raw_of(static_cast<float>(n.const_float()))
                           : n.dtype() == DType::Float64
                               ? raw_of(n.const_float())
                               : with_type(n.dtype(), [&](auto t) {
                                   return raw_of(static_cast<decltype(t)>(n.const_int()));
                                 });
      out.assign(count_, raw);
      return out;
    }
    const Column& a = values_.at(n.src(0));
    const DType from = n.src(0).dtype();
    if (n.is(Op::Bitcast)) return a;
    if (n.is(Op::Where)) {
      const Column &b = values_.at(n.src(1)), &c = values_.at(n.src(2));
      for (size_t i = 0; i < count_; ++i) out[i] = a[i] != 0 ? b[i] : c[i];
      return out;
    }
    if (n.is(Op::Cast)) {
      with_type(from, [&](auto f) {
        with_type(n.dtype(), [&](auto t) {
          for (size_t i = 0; i < count_; ++i)
            out[i] = raw_of(convert<decltype(t)>(n.dtype(), read_as<decltype(f)>(a[i])));
        });
      });
      return out;
    }
    with_type(from, [&](auto t) {
      using T = decltype(t);
      if constexpr (!std::is_same_v<T, bool>) {
        for (size_t i = 0; i < count_; ++i) {
          const T y = n.source_count() > 1 && n.src(1).dtype() == from
                          ? read_as<T>(values_.at(n.src(1))[i])
                          : T{};
          const T z = n.source_count() > 2 ? read_as<T>(values_.at(n.src(2))[i]) : T{};
          const uint64_t count = n.source_count() > 1 ? values_.at(n.src(1))[i] : 0;
          out[i] = operate<T>(n, read_as<T>(a[i]), y, z, count);
        }
      } else {
        const Column& b = n.source_count() > 1 ? values_.at(n.src(1)) : a;
        for (size_t i = 0; i < count_; ++i) out[i] = logic(n, a[i], b[i]);
      }
    });
    return out;
  }

  template <typename To, typename From>
  static To convert(DType to, From value) {
    if constexpr (std::is_same_v<To, bool>) return value != From{};
    else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
      return static_cast<To>(float_to_int(to, static_cast<double>(value)));
    else return static_cast<To>(value);
  }

  static uint64_t logic(const ir::Node& n, uint64_t a, uint64_t b) {
    switch (n.op()) {
      case ir::Op::And: return a & b;
      case ir::Op::Or: return a | b;
      case ir::Op::Xor:
      case ir::Op::Cmpne: return a ^ b;
      case ir::Op::Cmpeq: return a == b ? 1 : 0;
      case ir::Op::Cmplt: return a < b ? 1 : 0;
      default: IGNIS_CHECK(false) << "not defined for bool: " << n; return 0;
    }
  }

  template <typename T>
  uint64_t operate(const ir::Node& n, T x, T y, T z, uint64_t count) const {
    using ir::Op;
    switch (n.op()) {
      case Op::Cmplt: return x < y ? 1 : 0;
      case Op::Cmpne: return x != y ? 1 : 0;
      case Op::Cmpeq: return x == y ? 1 : 0;
      default: break;
    }
    if constexpr (std::is_floating_point_v<T>) {
      switch (n.op()) {
        case Op::Neg: return raw_of(static_cast<T>(-x));
        case Op::Trunc: return raw_of(std::trunc(x));
        case Op::Rint: return raw_of(std::nearbyint(x));
        case Op::Sqrt: return raw_of(std::sqrt(x));
        case Op::Add: return raw_of(static_cast<T>(x + y));
        case Op::Sub: return raw_of(static_cast<T>(x - y));
        case Op::Mul: return raw_of(static_cast<T>(x * y));
        case Op::Fdiv: return raw_of(static_cast<T>(x / y));
        case Op::Max: return raw_of(x != x ? x : y != y ? y : x > y ? x : y);
        case Op::Min: return raw_of(x != x ? x : y != y ? y : x < y ? x : y);
        case Op::Mulacc: {
          if (has_fma_) return raw_of(std::fma(x, y, z));
          const volatile T product =
              static_cast<T>(x * y);  // rounded, whatever the compiler may contract
          return raw_of(static_cast<T>(product + z));
        }
        default: break;
      }
    } else {
      using U = std::make_unsigned_t<T>;
      const auto u = [](T v) { return static_cast<uint64_t>(static_cast<U>(v)); };
      switch (n.op()) {
        case Op::Neg: return raw_of(static_cast<T>(0 - u(x)));
        case Op::Trunc:
        case Op::Rint: return raw_of(x);
        case Op::Add: return raw_of(static_cast<T>(u(x) + u(y)));
        case Op::Sub: return raw_of(static_cast<T>(u(x) - u(y)));
        case Op::Mul: return raw_of(static_cast<T>(u(x) * u(y)));
        case Op::Mulacc: return raw_of(static_cast<T>(u(x) * u(y) + u(z)));
        case Op::Cdiv:
        case Op::Cmod: {
          // Programs guard their divisors: an unguarded one is a failure of the lowering.
          bool is_bad = y == 0;
          if constexpr (std::is_signed_v<T>)
            is_bad |= y == -1 && x == std::numeric_limits<T>::min();
          IGNIS_CHECK(!is_bad) << "a division that traps: " << n;
          return raw_of(static_cast<T>(n.is(Op::Cdiv) ? x / y : x % y));
        }
        case Op::Max: return raw_of(x > y ? x : y);
        case Op::Min: return raw_of(x < y ? x : y);
        case Op::And: return raw_of(static_cast<T>(x & y));
        case Op::Or: return raw_of(static_cast<T>(x | y));
        case Op::Xor: return raw_of(static_cast<T>(x ^ y));
        case Op::Shl:
        case Op::Shr: {
          IGNIS_CHECK(count < 8 * sizeof(T)) << "a shift by the width or more: " << n;
          return raw_of(n.is(Op::Shl) ? static_cast<T>(u(x) << count) : static_cast<T>(x >> count));
        }
        default: break;
      }
    }
    IGNIS_CHECK(false) << "not an operation of programs: " << n;
    return 0;
  }

  bool has_fma_;
  size_t count_ = 0;
  std::unordered_map<ir::Node, Column> values_;
};

}  // namespace ignis::codegen
