#include "ignis/ir/range.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <ostream>

namespace ignis::ir {
namespace {

__extension__ typedef __int128 Wide;  // holds every sum and product of two int64

int64_t saturate(Wide v) {
  if (v <= Interval::kNoLow) return Interval::kNoLow;
  if (v >= Interval::kNoHigh) return Interval::kNoHigh;
  return static_cast<int64_t>(v);
}

Interval hull_of(std::initializer_list<int64_t> ends) {
  const auto [lo, hi] = std::minmax(ends);
  return {lo, hi};
}

int64_t trunc_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return a == Interval::kNoLow ? Interval::kNoHigh : -a;
  return a / b;
}

// One end of a quotient; an unbounded operand keeps its meaning.
int64_t quotient_end(int64_t a, int64_t b, bool floors) {
  const bool a_unbounded = a == Interval::kNoLow || a == Interval::kNoHigh;
  const bool b_unbounded = b == Interval::kNoLow || b == Interval::kNoHigh;
  if (b_unbounded) return floors && a != 0 && (a < 0) != (b < 0) ? -1 : 0;
  if (a_unbounded) return (a < 0) != (b < 0) ? Interval::kNoLow : Interval::kNoHigh;
  return floors ? floor_div(a, b) : trunc_div(a, b);
}

// Quotients for divisors in [d.lo, d.hi], which has one sign and excludes 0: the corners hold the extremes.
Interval divide_one_sign(const Interval& x, const Interval& d, bool floors) {
  return hull_of({quotient_end(x.lo, d.lo, floors), quotient_end(x.lo, d.hi, floors),
                  quotient_end(x.hi, d.lo, floors), quotient_end(x.hi, d.hi, floors)});
}

struct Parts {  // a divisor's interval, cut at zero
  bool has_positive, has_negative, has_zero;
  Interval positive, negative;
};
Parts cut_at_zero(const Interval& d) {
  return {d.hi > 0,
          d.lo < 0,
          d.contains(0),
          {std::max<int64_t>(d.lo, 1), d.hi},
          {d.lo, std::min<int64_t>(d.hi, -1)}};
}

// Hull over the signs of the divisor; division by zero gives 0.
template <typename OneSign>
Interval over_divisor(const Interval& d, OneSign one_sign) {
  const Parts parts = cut_at_zero(d);
  Interval result;
  bool any = false;
  const auto add = [&](const Interval& i) {
    result = any ? hull(result, i) : i;
    any = true;
  };
  if (parts.has_positive) add(one_sign(parts.positive));
  if (parts.has_negative) add(one_sign(parts.negative));
  if (parts.has_zero) add(Interval::point(0));
  return result;
}

Interval floor_mod_range(const Interval& x, const Interval& divisor) {
  return over_divisor(divisor, [&](const Interval& d) -> Interval {
    if (d.is_point() && x.is_bounded() && floor_div(x.lo, d.lo) == floor_div(x.hi, d.lo)) {
      return {floor_mod(x.lo, d.lo), floor_mod(x.hi, d.lo)};
    }
    if (d.lo > 0) {
      if (x.lo >= 0 && x.hi < d.lo) return x;
      const int64_t largest = d.has_high() ? d.hi - 1 : Interval::kNoHigh;
      return {0, x.lo >= 0 ? std::min(largest, x.hi) : largest};
    }
    if (x.hi <= 0 && x.lo > d.hi) return x;
    const int64_t smallest = d.has_low() ? d.lo + 1 : Interval::kNoLow;
    return {x.hi <= 0 ? std::max(smallest, x.lo) : smallest, 0};
  });
}

Interval trunc_mod_range(const Interval& x, const Interval& divisor) {
  return over_divisor(divisor, [&](const Interval& d) -> Interval {
    const Interval size = d.lo > 0 ? d : -d;  // the sign of the divisor has no influence
    if (x.lo > -size.lo && x.hi < size.lo) return x;
    const int64_t most = size.has_high() ? size.hi - 1 : Interval::kNoHigh;
    const int64_t least = size.has_high() ? -most : Interval::kNoLow;
    return {x.lo < 0 ? std::max(least, x.lo) : 0, x.hi > 0 ? std::min(most, x.hi) : 0};
  });
}

// 2^k - 1 >= v, smallest k; v >= 0.
int64_t all_ones_above(int64_t v) {
  if (v <= 0) return 0;
  return static_cast<int64_t>(~uint64_t{0} >> std::countl_zero(static_cast<uint64_t>(v)));
}

Interval bit_and_range(const Interval& a, const Interval& b) {
  if (a.lo >= 0 && b.lo >= 0) return {0, std::min(a.hi, b.hi)};
  if (a.lo >= 0) return {0, a.hi};
  if (b.lo >= 0) return {0, b.hi};
  if (!a.has_low() || !b.has_low()) return {Interval::kNoLow, std::max({a.hi, b.hi, int64_t{-1}})};
  return {-all_ones_above(-std::min(a.lo, b.lo)) - 1, std::max({a.hi, b.hi, int64_t{-1}})};
}
Interval bit_or_range(const Interval& a, const Interval& b) {
  const int64_t hi = std::max(a.hi, b.hi);
  const int64_t most = hi < 0 ? -1 : hi == Interval::kNoHigh ? hi : all_ones_above(hi);
  if (a.lo >= 0 && b.lo >= 0) return {std::max(a.lo, b.lo), most};
  return {std::min(a.lo, b.lo), a.hi < 0 || b.hi < 0 ? -1 : most};
}
Interval bit_xor_range(const Interval& a, const Interval& b) {
  if (!a.is_bounded() || !b.is_bounded()) {
    return a.lo >= 0 && b.lo >= 0 ? Interval{0, Interval::kNoHigh} : Interval{};
  }
  const auto size = [](int64_t v) { return v < 0 ? -(v + 1) : v; };
  const int64_t most = all_ones_above(std::max({size(a.lo), size(a.hi), size(b.lo), size(b.hi)}));
  return {a.lo >= 0 && b.lo >= 0 ? 0 : -most - 1, most};
}

Interval shift_left_range(const Interval& x, const Interval& count, bool& unknown) {
  if (count.lo < 0 || count.hi > 62) {
    unknown = true;
    return {};
  }
  return x * Interval{int64_t{1} << count.lo, int64_t{1} << count.hi};
}
Interval shift_right_range(const Interval& x, const Interval& count, DType dtype) {
  // A negative count reads as a huge one: everything is shifted out.
  const int64_t least = count.lo < 0 ? 0 : std::min<int64_t>(count.lo, 63);
  const int64_t most = count.lo < 0 ? 63 : std::min<int64_t>(count.hi, 63);
  const auto shifted = [&](int64_t v, int64_t by) -> int64_t {
    if (v == Interval::kNoHigh && dtype == DType::UInt64) {
      return by == 0 ? v : static_cast<int64_t>(~uint64_t{0} >> by);
    }
    return v >> by;
  };
  // An unbounded end of a weak integer stays unbounded; for int64 the end is a true value, and shifts.
  const bool keep = dtype == DType::WeakInt;
  const auto end = [&](int64_t v, int64_t by) {
    const bool unbounded = v == Interval::kNoLow || v == Interval::kNoHigh;
    return unbounded && keep ? (by == 63 ? (v < 0 ? int64_t{-1} : int64_t{0}) : v) : shifted(v, by);
  };
  Interval result = hull_of({end(x.lo, least), end(x.lo, most), end(x.hi, least), end(x.hi, most)});
  if (count.hi > 63 && dtype == DType::UInt64) result.lo = std::min<int64_t>(result.lo, 0);
  return result;
}

int64_t gcd(int64_t a, int64_t b) { return std::gcd(a, b); }
int64_t magnitude(int64_t v) { return v == Interval::kNoLow ? 1 : v < 0 ? -v : v; }
int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::max(a, b) : result;
}

// What is left of divisibility after wrapping modulo 2^n: the power of two.
int64_t power_of_two_part(int64_t m) { return m == 0 ? int64_t{1} << 62 : m & -m; }

}  // namespace

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return a == Interval::kNoLow ? a : -a;  // the lowest value by -1 wraps
  const int64_t q = a / b;
  return q - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
int64_t ceil_div(int64_t a, int64_t b) { return a / b + ((a % b > 0) ? 1 : 0); }

Interval operator+(const Interval& a, const Interval& b) {
  return {
      a.has_low() && b.has_low() ? saturate(static_cast<Wide>(a.lo) + b.lo) : Interval::kNoLow,
      a.has_high() && b.has_high() ? saturate(static_cast<Wide>(a.hi) + b.hi) : Interval::kNoHigh};
}
Interval operator-(const Interval& a) {
  return {a.has_high() ? saturate(-static_cast<Wide>(a.hi)) : Interval::kNoLow,
          a.has_low() ? -a.lo : Interval::kNoHigh};
}
Interval operator-(const Interval& a, const Interval& b) { return a + -b; }
Interval operator*(const Interval& a, const Interval& b) {
  // An unbounded end is about 2^63, so its product with anything but 0 saturates.
  const auto end = [](int64_t x, int64_t y) -> int64_t {
    if (x == 0 || y == 0) return 0;
    const bool unbounded = x == Interval::kNoLow || x == Interval::kNoHigh ||
                           y == Interval::kNoLow || y == Interval::kNoHigh;
    if (unbounded) return (x < 0) != (y < 0) ? Interval::kNoLow : Interval::kNoHigh;
    return saturate(static_cast<Wide>(x) * y);
  };
  return hull_of({end(a.lo, b.lo), end(a.lo, b.hi), end(a.hi, b.lo), end(a.hi, b.hi)});
}
Interval hull(const Interval& a, const Interval& b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

Interval dtype_interval(DType dtype) {
  if (dtype == DType::Bool) return {0, 1};
  if (!is_int(dtype) || dtype == DType::WeakInt || dtype == DType::Int64) return {};
  if (dtype == DType::UInt64) return {0, Interval::kNoHigh};
  const int width = bits(dtype);
  if (is_unsigned(dtype)) return {0, (int64_t{1} << width) - 1};
  return {-(int64_t{1} << (width - 1)), (int64_t{1} << (width - 1)) - 1};
}

std::ostream& operator<<(std::ostream& os, const Interval& i) {
  i.has_low() ? os << '[' << i.lo : os << "[-inf";
  return i.has_high() ? os << ", " << i.hi << ']' : os << ", inf]";
}

const ValueRange& RangeAnalysis::of(const Node& node) {
  Entry& entry = entries_[node.id()];
  if (entry.known) return entry.range;
  // An explicit stack: expressions may be deep.
  std::vector<Node> stack{node};
  while (!stack.empty()) {
    const Node top = stack.back();
    if (entries_[top.id()].known) {
      stack.pop_back();
      continue;
    }
    bool ready = true;
    for (int i = 0; i < top.source_count(); ++i) {
      if (entries_[top.src(i).id()].known) continue;
      stack.push_back(top.src(i));
      ready = false;
    }
    if (!ready) continue;
    ValueRange range = compute(top);
    for (const auto& [assumed, interval] : assumptions_) {
      if (assumed != top) continue;
      range.interval = {std::max(range.interval.lo, interval.lo),
                        std::min(range.interval.hi, interval.hi)};
    }
    entries_[top.id()] = {range, true};
    stack.pop_back();
  }
  return entries_[node.id()].range;
}

void RangeAnalysis::assume(const Node& node, const Interval& interval) {
  assumptions_.emplace_back(node, interval);
  entries_.clear();
}

ValueRange RangeAnalysis::compute(const Node& node) {
  const DType dtype = node.dtype();
  if (!is_int(dtype) && dtype != DType::Bool) return {};
  const Interval whole = dtype_interval(dtype);
  const auto source = [&](int i) -> const ValueRange& { return entries_[node.src(i).id()].range; };
  const auto is_integral = [](DType d) { return is_int(d) || d == DType::Bool; };

  ValueRange result{whole, 1, false};
  const auto interval = [&](int i) { return source(i).interval; };
  const auto multiple = [&](int i) { return source(i).multiple_of; };
  bool unknown = false;

  switch (node.op()) {
    case Op::Const: {
      if (node.is_invalid()) return result;
      const int64_t v = node.const_int();
      if (dtype == DType::UInt64 && v < 0) {
        return {{Interval::kNoHigh, Interval::kNoHigh},
                power_of_two_part(v == Interval::kNoLow ? 0 : v),
                false};
      }
      return {Interval::point(v), magnitude(v), false};
    }
    case Op::Range: {
      const int64_t end = interval(0).hi;
      return {{0, end == Interval::kNoHigh ? end : std::max<int64_t>(1, end) - 1}, 1, false};
    }
    case Op::Special: {
      const Arg& arg = node.arg();
      if (arg.ints.size() >= 2) result.interval = {arg.ints[0], arg.ints[1]};
      if (arg.ints.size() >= 3) result.multiple_of = arg.ints[2];
      return result;
    }
    case Op::Add: result = {interval(0) + interval(1), gcd(multiple(0), multiple(1)), false}; break;
    case Op::Sub: result = {interval(0) - interval(1), gcd(multiple(0), multiple(1)), false}; break;
    case Op::Neg: result = {-interval(0), multiple(0), false}; break;
    case Op::Mul:
      result = {interval(0) * interval(1), product(multiple(0), multiple(1)), false};
      break;
    case Op::Mulacc:
      result = {interval(0) * interval(1) + interval(2),
                gcd(product(multiple(0), multiple(1)), multiple(2)), false};
      break;
    case Op::Shl: {
      result.interval = shift_left_range(interval(0), interval(1), unknown);
      result.multiple_of = multiple(0);
      if (!unknown && interval(1).is_point()) {
        result.multiple_of = product(multiple(0), int64_t{1} << interval(1).lo);
      }
      if (unknown) result.multiple_of = 1;
      break;
    }
    case Op::Shr: result.interval = shift_right_range(interval(0), interval(1), dtype); break;
    case Op::Floordiv:
    case Op::Cdiv: {
      const bool floors = node.is(Op::Floordiv);
      result.interval = over_divisor(
          interval(1), [&](const Interval& d) { return divide_one_sign(interval(0), d, floors); });
      const Interval d = interval(1);
      if (d.is_point() && d.lo > 0 && multiple(0) % d.lo == 0)
        result.multiple_of = multiple(0) / d.lo;
      break;
    }
    case Op::Floormod:
      result = {floor_mod_range(interval(0), interval(1)), gcd(multiple(0), multiple(1)), false};
      break;
    case Op::Cmod:
      result = {trunc_mod_range(interval(0), interval(1)), gcd(multiple(0), multiple(1)), false};
      break;
    case Op::Max:
    case Op::Min: {
      const Interval a = interval(0), b = interval(1);
      result.interval = node.is(Op::Max) ? Interval{std::max(a.lo, b.lo), std::max(a.hi, b.hi)}
                                         : Interval{std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
      result.multiple_of = gcd(multiple(0), multiple(1));
      break;
    }
    case Op::And: result.interval = bit_and_range(interval(0), interval(1)); break;
    case Op::Or: result.interval = bit_or_range(interval(0), interval(1)); break;
    case Op::Xor: result.interval = bit_xor_range(interval(0), interval(1)); break;
    case Op::Where: {
      const Interval condition = interval(0);
      // Where a side is Invalid nothing is computed with it: the other side is the value.
      if (condition.lo == 1 || node.src(2).is_invalid()) {
        result = {interval(1), multiple(1), false};
      } else if (condition.hi == 0 || node.src(1).is_invalid()) {
        result = {interval(2), multiple(2), false};
      } else {
        result = {hull(interval(1), interval(2)), gcd(multiple(1), multiple(2)), false};
      }
      break;
    }
    case Op::Cmplt:
    case Op::Cmpne:
    case Op::Cmpeq: {
      if (!is_integral(node.src(0).dtype()) || !is_integral(node.src(1).dtype())) break;
      const Interval a = interval(0), b = interval(1);
      const bool apart = a.hi < b.lo || b.hi < a.lo;
      const bool equal = a.is_point() && a == b;
      if (node.is(Op::Cmplt)) {
        // Two saturated ends say nothing about each other's order.
        if (a.hi < b.lo) result.interval = {1, 1};
        else if (a.lo >= b.hi && a.lo != Interval::kNoHigh && b.hi != Interval::kNoHigh)
          result.interval = {0, 0};
      } else if (apart || equal) {
        result.interval = Interval::point(apart == node.is(Op::Cmpne) ? 1 : 0);
      }
      return result;
    }
    case Op::Cast: {
      const DType from = node.src(0).dtype();
      if (!is_integral(from)) return result;
      const Interval x = interval(0);
      if (dtype == DType::Bool) {
        if (!x.contains(0)) result.interval = {1, 1};
        else if (x.is_point()) result.interval = {0, 0};
        return result;
      }
      // uint64's saturated end does not fit int64; int64's open low end does not fit uint64.
      const bool fits = x.inside(whole) &&
                        (x.has_high() || is_lossless_cast(from, dtype) || dtype == DType::WeakInt);
      if (!fits)
        return {whole, gcd(power_of_two_part(multiple(0)), int64_t{1} << std::min(62, bits(dtype))),
                true};
      return {x, multiple(0), false};
    }
    case Op::Reduce: {
      const Interval value = interval(0);
      if (node.reduce_op() == Op::Max || node.reduce_op() == Op::Min) {
        bool runs = true;  // an empty loop gives the identity
        for (int i = 1; i < node.source_count(); ++i)
          runs &= node.src(i).is(Op::Range) && node.src(i).range_extent() > 0;
        if (runs) result = {value, multiple(0), false};
        return result;
      }
      if (node.reduce_op() != Op::Add) return result;
      Interval count = Interval::point(1);
      for (int i = 1; i < node.source_count(); ++i) {
        if (!node.src(i).is(Op::Range)) return result;
        const Interval end = entries_[node.src(i).src(0).id()].range.interval;
        count = count * Interval{std::max<int64_t>(0, end.lo), std::max<int64_t>(0, end.hi)};
      }
      result = {value * count, multiple(0), false};
      break;
    }
    case Op::Stack:
    case Op::Shuffle: {
      if (node.source_count() == 0) return result;
      result = {interval(0), multiple(0), false};
      for (int i = 1; i < node.source_count(); ++i) {
        result.interval = hull(result.interval, interval(i));
        result.multiple_of = gcd(result.multiple_of, multiple(i));
      }
      return result;
    }
    case Op::After:
    case Op::Broadcast:
    case Op::Extract: return {interval(0), multiple(0), false};
    case Op::Trunc:
    case Op::Rint: return {interval(0), multiple(0), false};
    default: return result;
  }
  if (dtype == DType::Bool) {
    if (node.is(Op::Sub) || node.is(Op::Neg) || node.is(Op::Shl)) return {whole, 1, false};
    result.interval = {std::clamp<int64_t>(result.interval.lo, 0, 1),
                       std::clamp<int64_t>(result.interval.hi, 0, 1)};
    return {result.interval, 1, false};
  }
  if (dtype == DType::WeakInt) return result;

  // Strong integers wrap: a result that may leave the dtype can be anything in it. An open end counts as leaving.
  const bool can_overflow = node.is(Op::Add) || node.is(Op::Sub) || node.is(Op::Mul) ||
                            node.is(Op::Neg) || node.is(Op::Shl) || node.is(Op::Mulacc) ||
                            node.is(Op::Reduce) || node.is(Op::Floordiv) || node.is(Op::Cdiv);
  const bool wide = dtype == DType::Int64 || dtype == DType::UInt64;
  const bool open =
      wide && (!result.interval.has_high() || (!is_unsigned(dtype) && !result.interval.has_low()));
  if (unknown || !result.interval.inside(whole) || (can_overflow && open)) {
    const bool divides = node.is(Op::Floordiv) || node.is(Op::Cdiv);
    return {whole,
            divides ? 1
                    : gcd(power_of_two_part(result.multiple_of),
                          int64_t{1} << std::min(62, bits(dtype))),
            can_overflow};
  }
  return result;
}

}  // namespace ignis::ir
