// The division engine of the simplifier: floor division and remainder of an exact sum by a constant.

#include "ignis/ir/simplify.h"
#include "ignis/ir/simplify_terms.h"

#include <algorithm>
#include <numeric>

namespace ignis::ir {

using namespace terms;

// The steps in the order they are tried; the first that applies wins. Each leaves a smaller divisor, fewer terms or
// smaller coefficients.
Node Simplifier::rewrite_division(const Node& node) {
  const Node x = node.src(0), y = node.src(1);
  if (!is_weak_const(y) || y.const_int() <= 0 || !is_modest(y.const_int())) return Node();
  const Division division{x, affine(x), y.const_int(), node.is(Op::Floordiv)};
  if (!is_modest(division.sum)) return Node();
  using Step = Node (Simplifier::*)(const Division&);
  static constexpr Step kSteps[] = {
      &Simplifier::divide_one_period,    &Simplifier::divide_inner_remainders,
      &Simplifier::divide_multiples,     &Simplifier::divide_common_factor,
      &Simplifier::divide_by_congruence, &Simplifier::divide_by_factor,
      &Simplifier::divide_nested,        &Simplifier::divide_known_multiples,
  };
  for (const Step step : kSteps) {
    if (const Node result = (this->*step)(division)) return result;
  }
  const Node canonical = node_of(division.sum);
  return canonical == x ? Node() : graph_.make(node.op(), node.dtype(), {canonical, y});
}

// All values lie in one period: the quotient is a constant.
Node Simplifier::divide_one_period(const Division& d) {
  const auto q = one_period(interval(d.numerator), d.by);
  if (!q) return Node();
  if (d.is_quotient) return weak(*q);
  Affine rest = d.sum;
  rest.constant -= *q * d.by;
  return node_of(rest);
}

// Remainder of inner remainders: in (a*(y % k) + …) % c with c | a*k the inner remainder is not needed.
Node Simplifier::divide_inner_remainders(const Division& d) {
  if (d.is_quotient) return Node();
  for (const auto& [atom, a] : d.sum.terms) {
    int64_t period = 0;
    if (!by_positive_const(atom, Op::Floormod) || mul_overflows(a, divisor_of(atom), period) ||
        period % d.by != 0) {
      continue;
    }
    Affine rest = d.sum;
    drop_term(rest, atom);
    if (const auto merged = add_scaled(rest, affine(atom.src(0)), a, order_))
      return modulo(node_of(*merged), d.by);
  }
  return Node();
}

// Exact multiples of c leave; the constant goes to [0, c); coefficients of a remainder below c.
Node Simplifier::divide_multiples(const Division& d) {
  Affine multiples, rest;
  multiples.constant = floor_div(d.sum.constant, d.by);
  rest.constant = floor_mod(d.sum.constant, d.by);
  for (const auto& [atom, a] : d.sum.terms) {
    if (a % d.by == 0) multiples.terms.emplace_back(atom, a / d.by);
    else if (!d.is_quotient && (a > d.by || a < -d.by)) rest.terms.emplace_back(atom, a % d.by);
    else rest.terms.emplace_back(atom, a);
  }
  if (multiples.terms.empty() && multiples.constant == 0 && rest.terms == d.sum.terms)
    return Node();
  const Node part = node_of(rest);
  if (!d.is_quotient) return modulo(part, d.by);
  return graph_.make(Op::Add, DType::WeakInt, {node_of(multiples), divide(part, d.by)});
}

// A common factor of all coefficients and c; the constant's remainder below it has no influence on the quotient.
Node Simplifier::divide_common_factor(const Division& d) {
  int64_t common = d.by;
  for (const auto& [atom, a] : d.sum.terms) common = std::gcd(common, a);
  if (common <= 1) return Node();
  Affine reduced{floor_div(d.sum.constant, common), d.sum.terms};
  for (auto& [atom, a] : reduced.terms) a /= common;
  if (d.is_quotient) return divide(node_of(reduced), d.by / common);
  return scaled_sum(modulo(node_of(reduced), d.by / common), common,
                    weak(floor_mod(d.sum.constant, common)));
}

// With each coefficient replaced by a residue the sum may stay within one period. Then it is the remainder, and what
// it differs by is an exact multiple. Both residues of each coefficient are tried.
Node Simplifier::divide_by_congruence(const Division& d) {
  const size_t n = d.sum.terms.size();
  if (n == 0 || n > 5) return Node();
  for (uint32_t choice = 0; choice < (1u << n); ++choice) {
    Affine residue = d.sum;
    for (size_t i = 0; i < n; ++i) {
      int64_t& a = residue.terms[i].second;
      a = floor_mod(a, d.by) - ((choice >> i & 1) != 0 ? d.by : 0);
    }
    const auto q = one_period(interval(residue), d.by);
    if (!q) continue;
    residue.constant -= *q * d.by;
    const auto remainder = add_scaled({}, residue, 1, order_);
    if (!remainder) continue;
    if (!d.is_quotient) return node_of(*remainder);
    auto quotient = add_scaled(d.sum, *remainder, -1, order_);
    if (!quotient) continue;
    quotient->constant /= d.by;
    for (auto& [atom, a] : quotient->terms) a /= d.by;
    return node_of(*quotient);
  }
  return Node();
}

// A factor f of c divides some terms, and the others stay within one period of f: they have no influence on the
// quotient, and are the low part of the remainder.
Node Simplifier::divide_by_factor(const Division& d) {
  for (const auto& term : d.sum.terms) {
    const int64_t f = std::gcd(term.second, d.by);
    if (f <= 1 || f == d.by) continue;
    Affine high{floor_div(d.sum.constant, f), {}}, low{floor_mod(d.sum.constant, f), {}};
    for (const auto& [atom, a] : d.sum.terms) {
      if (a % f == 0) high.terms.emplace_back(atom, a / f);
      else low.terms.emplace_back(atom, a);
    }
    const auto q = one_period(interval(low), f);
    if (!q) continue;
    high.constant += *q;
    low.constant -= *q * f;
    if (d.is_quotient) return divide(node_of(high), d.by / f);
    return scaled_sum(modulo(node_of(high), d.by / f), f, node_of(low));
  }
  return Node();
}

// (y // a + k) // c -> (y + k*a) // (a*c); (y % (k*c)) // c is a row of index_rules.
Node Simplifier::divide_nested(const Division& d) {
  if (!d.is_quotient || d.sum.terms.size() != 1 || d.sum.terms[0].second != 1) return Node();
  const Node atom = d.sum.terms[0].first;
  int64_t product = 0, shift = 0;
  if (!by_positive_const(atom, Op::Floordiv) || mul_overflows(divisor_of(atom), d.by, product) ||
      mul_overflows(d.sum.constant, divisor_of(atom), shift)) {
    return Node();
  }
  return divide(graph_.make(Op::Add, DType::WeakInt, {atom.src(0), weak(shift)}), product);
}

// Terms whose every value is a multiple of c leave a remainder.
Node Simplifier::divide_known_multiples(const Division& d) {
  if (d.is_quotient) return Node();
  Affine left{d.sum.constant, {}};
  for (const auto& [atom, a] : d.sum.terms) {
    int64_t step = 0;
    if (mul_overflows(a, ranges_.of(atom).multiple_of, step) || step % d.by != 0)
      left.terms.emplace_back(atom, a);
  }
  return left.terms.size() == d.sum.terms.size() ? Node() : modulo(node_of(left), d.by);
}

}  // namespace ignis::ir
