// The searches of the simplifier over exact (weak) integers: sums and comparisons.

#include "ignis/ir/simplify.h"
#include "ignis/ir/simplify_terms.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace ignis::ir {

using namespace terms;
Interval Simplifier::interval(const Affine& sum) {
  Interval total = Interval::point(sum.constant);
  for (const auto& [atom, coefficient] : sum.terms)
    total = total + interval(atom) * Interval::point(coefficient);
  return total;
}

Node Simplifier::divide(const Node& x, int64_t by) {
  return by == 1 ? x : graph_.make(Op::Floordiv, DType::WeakInt, {x, weak(by)});
}
Node Simplifier::modulo(const Node& x, int64_t by) {
  return by == 1 ? weak(0) : graph_.make(Op::Floormod, DType::WeakInt, {x, weak(by)});
}

// m*(x % c) with m*c*(x // c) is m*x, and its partial forms:
//   m*(B % c) + m*c*(A // c)           -> m*A              A = B up to multiples of c
//   m*(B % c) + m*c*((A // c) % k)     -> m*(A % (c*k))    likewise, A a single node
//   m*((y // e) % c) + m*c*(y // (e*c)) -> m*(y // e)
//   m*x + (-m*c)*(x // c)              -> m*(x % c)        x a single node
// Each leaves one division less.
bool Simplifier::recombine(Affine& sum) {
  const auto replace = [&](const Node& first, const Node& second, const Node& by,
                           int64_t coefficient) {
    Affine rest = sum;
    drop_term(rest, first);
    drop_term(rest, second);
    const auto merged = add_scaled(rest, affine(by), coefficient, order_);
    if (!merged) return false;
    sum = *merged;
    return true;
  };
  const auto congruent = [&](const Node& a, const Node& b, int64_t c) {
    if (a == b) return true;
    const auto difference = add_scaled(affine(a), affine(b), -1, order_);
    if (!difference || difference->constant % c != 0) return false;
    return std::all_of(difference->terms.begin(), difference->terms.end(),
                       [&](const auto& t) { return t.second % c == 0; });
  };
  for (const auto& [low, m] : sum.terms) {
    if (by_positive_const(low, Op::Floormod)) {
      const int64_t c = divisor_of(low);
      const Node b = low.src(0);
      int64_t wanted = 0;
      if (mul_overflows(m, c, wanted)) continue;
      for (const auto& [high, coefficient] : sum.terms) {
        if (coefficient != wanted || high == low) continue;
        if (by_positive_const(high, Op::Floordiv)) {
          if (divisor_of(high) == c && congruent(high.src(0), b, c))
            return replace(low, high, high.src(0), m);
          if (by_positive_const(b, Op::Floordiv) && b.src(0) == high.src(0)) {
            int64_t both = 0;
            if (!mul_overflows(divisor_of(b), c, both) && both == divisor_of(high))
              return replace(low, high, b, m);
          }
        } else if (by_positive_const(high, Op::Floormod) &&
                   by_positive_const(high.src(0), Op::Floordiv)) {
          const Node inner = high.src(0);
          int64_t wider = 0;
          if (divisor_of(inner) == c && !mul_overflows(c, divisor_of(high), wider) &&
              congruent(inner.src(0), b, c)) {
            return replace(low, high, modulo(inner.src(0), wider), m);
          }
          if (by_positive_const(b, Op::Floordiv) &&
              b.src(0) == inner.src(0)) {  // ((y//e) % c) and (y//(e*c)) % k
            int64_t both = 0;
            if (!mul_overflows(divisor_of(b), c, both) && both == divisor_of(inner) &&
                !mul_overflows(c, divisor_of(high), wider)) {
              return replace(low, high, modulo(b, wider), m);
            }
          }
        }
      }
    } else if (by_positive_const(low, Op::Floordiv)) {
      const Node x = low.src(0);
      int64_t back = 0;
      for (const auto& [atom, coefficient] : sum.terms) {
        if (atom != x || mul_overflows(coefficient, -divisor_of(low), back) || back != m) continue;
        const int64_t scale = coefficient;
        return replace(low, x, modulo(x, divisor_of(low)), scale);
      }
    }
  }
  return false;
}

Node Simplifier::rewrite_sum(const Node& node) {
  Affine sum = affine(node);
  if (sum.terms.size() == 1 && sum.terms[0].first == node)
    return Node();  // opaque: too long or too large
  bool recombined = false;
  while (recombine(sum)) recombined = true;
  const Node result = node_of(sum);
  if (!recombined && result == node) {
    return Node();
  }
  return result;
}

Node Simplifier::rewrite_product(const Node& node) {
  const Node x = node.src(0), y = node.src(1);
  if (x.is_const() || y.is_const()) return rewrite_sum(node);
  if (order_.less(y, x)) return graph_.make(Op::Mul, DType::WeakInt, {y, x});
  return Node();
}

Node Simplifier::rewrite_compare(const Node& node) {
  const Op op = node.op();
  const Node a = node.src(0), b = node.src(1);
  if (a.dtype() != DType::WeakInt || b.dtype() != DType::WeakInt || a.is_invalid() ||
      b.is_invalid())
    return Node();
  const auto difference = add_scaled(affine(a), affine(b), -1, order_);
  if (!difference) return Node();
  const auto compare = [&](const Node& left, const Node& right) {
    return graph_.make(op, DType::Bool, {left, right});
  };
  Affine sum = *difference;  // op(sum, 0)
  if (!is_modest(sum)) return Node();
  const Interval range = interval(sum);
  if (op == Op::Cmplt) {
    if (range.has_high() && range.hi < 0) return truth(true);
    if (range.has_low() && range.lo >= 0) return truth(false);
  } else {
    if (!range.contains(0)) return truth(op == Op::Cmpne);
    if (range.is_point()) return truth(op == Op::Cmpeq);
  }
  if (sum.terms.empty()) return Node();

  int64_t common = 0;
  for (const auto& [atom, c] : sum.terms) common = std::gcd(common, c);
  if (op != Op::Cmplt) {
    if (sum.constant % common != 0) return truth(op == Op::Cmpne);
    const bool flip = sum.terms[0].second < 0;
    const int64_t by = flip ? -common : common;
    Affine left;
    for (const auto& [atom, c] : sum.terms) left.terms.emplace_back(atom, c / by);
    if (left.terms.size() == 2 && sum.constant == 0 && left.terms[0].second == 1 &&
        left.terms[1].second == -1) {
      Node p = left.terms[0].first, q = left.terms[1].first;
      if (order_.less(q, p)) std::swap(p, q);
      return compare(p, q);
    }
    return compare(node_of(left), weak(-sum.constant / by));
  }

  // sum < 0  <=>  terms < bound, divided by the common factor; then factors that only some terms have.
  Affine left{0, sum.terms};
  for (auto& [atom, c] : left.terms) c /= common;
  int64_t bound = ceil_div(-sum.constant, common);
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& term : left.terms) {
      const int64_t f = term.second < 0 ? -term.second : term.second;
      if (f <= 1) continue;
      // f*P + low < bound with low within one period of f, its end on one side of bound's remainder.
      Affine high, low;
      for (const auto& [atom, c] : left.terms) {
        if (c % f == 0) high.terms.emplace_back(atom, c / f);
        else low.terms.emplace_back(atom, c);
      }
      if (low.terms.empty()) continue;
      const Interval part = interval(low);
      const auto q = one_period(part, f);
      if (!q) continue;
      const int64_t shifted = bound - *q * f;  // f*P + r < shifted, 0 <= r < f
      const int64_t r_lo = part.lo - *q * f, r_hi = part.hi - *q * f;
      const int64_t whole = floor_div(shifted, f), remainder = floor_mod(shifted, f);
      if (r_hi < remainder) bound = whole + 1;
      else if (r_lo >= remainder) bound = whole;
      else continue;
      left = high;
      changed = true;
      break;
    }
  }
  // One quotient against a constant: x // c < k <=> x < k*c; k < x // c <=> k*c + c - 1 < x.
  if (left.terms.size() == 1 && by_positive_const(left.terms[0].first, Op::Floordiv)) {
    const Node atom = left.terms[0].first;
    const int64_t c = divisor_of(atom);
    int64_t limit = 0;
    if (left.terms[0].second == 1 && !mul_overflows(bound, c, limit))
      return compare(atom.src(0), weak(limit));
    if (left.terms[0].second == -1 && !mul_overflows(-bound, c, limit) &&
        limit < Interval::kNoHigh - c) {
      return compare(weak(limit + c - 1), atom.src(0));
    }
  }
  // Positive terms to the left, negative ones to the right, the constant to the side that has no term.
  Affine less, more;
  for (const auto& [atom, c] : left.terms) {
    if (c > 0) less.terms.emplace_back(atom, c);
    else more.terms.emplace_back(atom, -c);
  }
  if (less.terms.empty()) return compare(weak(-bound), node_of(more));
  more.constant = bound;
  return compare(node_of(less), node_of(more));
}

}  // namespace ignis::ir
