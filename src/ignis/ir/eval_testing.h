#pragma once

#include "ignis/ir/graph.h"

#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <unordered_map>
#include <vector>

namespace ignis::ir::testing {

/// IGNIS_TEST_SEED, or a fixed seed; printed so that a failing run can be repeated.
inline uint64_t test_seed() {
  static const uint64_t seed = [] {
    const char* text = std::getenv("IGNIS_TEST_SEED");
    const uint64_t s = text != nullptr ? std::strtoull(text, nullptr, 10) : 20240117u;
    std::cout << "IGNIS_TEST_SEED=" << s << "\n";
    return s;
  }();
  return seed;
}

using Wide = __int128_t;

/// A value or "Invalid".
using MaybeInt = std::optional<int64_t>;

/// Naive evaluation of an integer expression on plain integers, independent of the folding under test. Leaves (Range,
/// Special, Param as a scalar) take their value from `leaves`. Strong integers wrap; weak ones must not overflow.
class IntEvaluator {
 public:
  explicit IntEvaluator(const std::unordered_map<Node, int64_t>& leaves) : leaves_(leaves) {}

  MaybeInt operator()(const Node& n) {
    if (const auto it = leaves_.find(n); it != leaves_.end()) return it->second;
    if (const auto it = memo_.find(n); it != memo_.end()) return it->second;
    const MaybeInt v = compute(n);
    memo_[n] = v;
    return v;
  }

 private:
  static Wide floor_quotient(Wide a, Wide b) {
    Wide q = a / b;
    if (q * b != a && ((a < 0) != (b < 0))) --q;
    return q;
  }
  static int64_t wrap(DType d, Wide v) {
    if (d == DType::WeakInt) return static_cast<int64_t>(v);
    if (d == DType::Bool) return v != 0;
    const int width = bits(d);
    if (width == 64) return static_cast<int64_t>(v);
    const Wide modulus = Wide{1} << width;
    Wide r = v % modulus;
    if (r < 0) r += modulus;
    if (!is_unsigned(d) && r >= modulus / 2) r -= modulus;
    return static_cast<int64_t>(r);
  }

  MaybeInt compute(const Node& n) {
    if (n.is_invalid()) return std::nullopt;
    if (n.is(Op::Const)) return n.const_int();
    std::vector<MaybeInt> s;
    if (n.is(Op::Where)) {
      const MaybeInt c = (*this)(n.src(0));
      if (!c) return std::nullopt;
      return (*this)(n.src(*c != 0 ? 1 : 2));
    }
    for (int i = 0; i < n.source_count(); ++i) {
      s.push_back((*this)(n.src(i)));
      if (!s.back()) return std::nullopt;
    }
    const DType d = n.dtype();
    const Wide a = s.empty() ? 0 : *s[0], b = s.size() < 2 ? 0 : *s[1];
    switch (n.op()) {
      case Op::Add: return wrap(d, a + b);
      case Op::Sub: return wrap(d, a - b);
      case Op::Mul: return wrap(d, a * b);
      case Op::Neg: return wrap(d, -a);
      case Op::Mulacc: return wrap(d, a * b + *s[2]);
      case Op::Floordiv: return b == 0 ? 0 : wrap(d, floor_quotient(a, b));
      case Op::Floormod: return b == 0 ? 0 : wrap(d, a - floor_quotient(a, b) * b);
      case Op::Cdiv: return b == 0 ? 0 : wrap(d, a / b);
      case Op::Cmod: return b == 0 ? 0 : wrap(d, a % b);
      case Op::Max: return wrap(d, a > b ? a : b);
      case Op::Min: return wrap(d, a < b ? a : b);
      case Op::And: return *s[0] & *s[1];
      case Op::Or: return *s[0] | *s[1];
      case Op::Xor: return *s[0] ^ *s[1];
      case Op::Shl:
        return b < 0 || b >= (d == DType::WeakInt ? 63 : bits(d))
                   ? 0
                   : wrap(d, a * (Wide{1} << static_cast<int>(b)));
      case Op::Shr: {
        if (b < 0 || b >= 63) return a < 0 ? -1 : 0;
        return wrap(d, floor_quotient(a, Wide{1} << static_cast<int>(b)));
      }
      case Op::Cmplt: return a < b;
      case Op::Cmpeq: return a == b;
      case Op::Cmpne: return a != b;
      case Op::Cast: return d == DType::Bool ? a != 0 : wrap(d, a);
      default: IGNIS_CHECK(false) << "the evaluator does not know " << to_string(n.op());
    }
    return std::nullopt;
  }

  const std::unordered_map<Node, int64_t>& leaves_;
  std::unordered_map<Node, MaybeInt> memo_;
};

}  // namespace ignis::ir::testing
