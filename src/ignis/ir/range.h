#pragma once

#include "ignis/ir/node.h"
#include "ignis/ir/side_array.h"

#include <cstdint>
#include <iosfwd>
#include <limits>
#include <vector>

namespace ignis::ir {

/// An inclusive interval of exact integers. The two extreme int64 values stand for "unbounded" on their side, so
/// every operation saturates instead of wrapping. Values of uint64 are non-negative; beyond INT64_MAX: unbounded.
struct Interval {
  static constexpr int64_t kNoLow = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kNoHigh = std::numeric_limits<int64_t>::max();

  int64_t lo = kNoLow;
  int64_t hi = kNoHigh;

  static Interval point(int64_t v) { return {v, v}; }
  bool has_low() const { return lo != kNoLow; }
  bool has_high() const { return hi != kNoHigh; }
  bool is_bounded() const { return has_low() && has_high(); }
  /// Exactly one value, and a known one.
  bool is_point() const { return lo == hi && is_bounded(); }
  bool contains(int64_t v) const { return lo <= v && v <= hi; }
  /// True when every value of this one is in `other`.
  bool inside(const Interval& other) const { return other.lo <= lo && hi <= other.hi; }
  bool operator==(const Interval&) const = default;
};

Interval operator+(const Interval& a, const Interval& b);
Interval operator-(const Interval& a, const Interval& b);
Interval operator-(const Interval& a);
Interval operator*(const Interval& a, const Interval& b);
/// Smallest interval that holds both.
Interval hull(const Interval& a, const Interval& b);
/// Values of an integer dtype or bool; unbounded for the weak integer, floats and int64.
Interval dtype_interval(DType dtype);
std::ostream& operator<<(std::ostream& os, const Interval& interval);

/// Exact integer helpers of the one rule for division: by zero gives 0.
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);
/// ceil(a / b) for b > 0.
int64_t ceil_div(int64_t a, int64_t b);

/// What is known about the value of an integer or bool node.
struct ValueRange {
  Interval interval;
  /// Every value is a multiple of this; 0 only for the constant 0.
  int64_t multiple_of = 1;
  /// A strong integer operation whose exact result may leave its dtype. Weak integers never wrap.
  bool may_wrap = false;
};

/// Value ranges of a graph's scalar nodes, computed on demand and kept by node id.
class RangeAnalysis {
 public:
  const ValueRange& of(const Node& node);
  Interval interval(const Node& node) { return of(node).interval; }

  /// States that `node` lies in `interval` from now on, besides what is known. Forgets all cached ranges.
  void assume(const Node& node, const Interval& interval);

 private:
  struct Entry {
    ValueRange range;
    bool known = false;
  };
  ValueRange compute(const Node& node);

  SideArray<Entry> entries_;
  std::vector<std::pair<Node, Interval>> assumptions_;
};

}  // namespace ignis::ir
