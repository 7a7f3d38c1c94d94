#pragma once

// What the simplifier's searches share. Not for other folders.

#include "ignis/ir/affine.h"

#include <algorithm>
#include <optional>

namespace ignis::ir::terms {

inline bool is_weak_const(const Node& n) { return n.is_const() && n.dtype() == DType::WeakInt; }
// x // c or x % c with a constant c > 0.
inline bool by_positive_const(const Node& n, Op op) {
  return n.is(op) && n.dtype() == DType::WeakInt && is_weak_const(n.src(1)) &&
         n.src(1).const_int() > 0;
}
inline int64_t divisor_of(const Node& n) { return n.src(1).const_int(); }

// Sum without the term of `atom`.
inline void drop_term(Affine& sum, const Node& atom) {
  std::erase_if(sum.terms, [&](const auto& t) { return t.first == atom; });
}

inline bool mul_overflows(int64_t a, int64_t b, int64_t& result) {
  return __builtin_mul_overflow(a, b, &result);
}

// Numbers small enough that sums and differences of a few of them stay in int64. No address comes near.
inline constexpr int64_t kModest = int64_t{1} << 60;
inline bool is_modest(int64_t v) { return -kModest <= v && v <= kModest; }
inline bool is_modest(const Affine& sum) {
  return is_modest(sum.constant) && std::all_of(sum.terms.begin(), sum.terms.end(),
                                                [](const auto& t) { return is_modest(t.second); });
}

// The one k for which `interval` lies in [k*c, k*c + c), if there is one.
inline std::optional<int64_t> one_period(const Interval& interval, int64_t c) {
  if (!is_modest(interval.lo) || !is_modest(interval.hi)) return std::nullopt;
  const int64_t q = floor_div(interval.lo, c);
  if (floor_div(interval.hi, c) != q) return std::nullopt;
  return q;
}

}  // namespace ignis::ir::terms
