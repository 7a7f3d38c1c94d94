#include "ignis/ir/rules.h"

#include <cmath>

namespace ignis::ir {
namespace {

// A float constant whose reciprocal is exact: a power of two, far enough from the ends of every format it has.
bool is_exact_reciprocal(const Node& c) {
  int exponent = 0;
  const double v = c.const_float();
  if (!std::isfinite(v) || v == 0 || std::abs(std::frexp(v, &exponent)) != 0.5) return false;
  const int limit = c.dtype() == DType::Float64 || c.dtype() == DType::WeakFloat  ? 1000
                    : c.dtype() == DType::Float32 || c.dtype() == DType::BFloat16 ? 120
                    : c.dtype() == DType::Float16                                 ? 13
                                                                                  : 0;
  return std::abs(exponent) < limit;
}

bool is_finite_nonzero(const Node& c) {
  return std::isfinite(c.const_float()) && c.const_float() != 0;
}
bool is_not_invalid(const Node& n) { return !n.is_invalid(); }
bool is_bool(const Node& n) {
  return n.dtype() == DType::Bool;
}  // the 1 of "not" also matches integers
bool is_not_constant(const Node& n) { return !n.is_const(); }
bool is_weak_int(const Node& n) { return n.dtype() == DType::WeakInt; }

}  // namespace

// clang-format off
const RuleTable& integer_rules() {
  static const Pat x = any("x"), y = any("y"), z = any("z"), c = constant("c"), d = constant("d");
  static const RuleTable table(Domain::AnyInt, {
      // name             from                    to                  when
      {"add-zero",        x + 0,                  x},
      {"sub-zero",        x - 0,                  x},
      {"sub-self",        x - x,                  0},
      {"neg-neg",         -(-x),                  x},
      {"mul-one",         x * 1,                  x},
      {"mul-zero",        x * 0,                  0},
      {"mulacc-zero",     mulacc(x, 0, z),        z},
      {"mulacc-one",      mulacc(x, 1, z),        x + z},
      {"mulacc-no-add",   mulacc(x, y, 0),        x * y},

      {"and-zero",        x & 0,                  0},
      {"and-self",        x & x,                  x},
      {"and-and-const",   (x & c) & d,            x & fold(c & d)},
      {"or-zero",         x | 0,                  x},
      {"or-self",         x | x,                  x},
      {"or-or-const",     (x | c) | d,            x | fold(c | d)},
      {"xor-zero",        x ^ 0,                  x},
      {"xor-self",        x ^ x,                  0},
      {"xor-xor",         (x ^ y) ^ y,            x},
      {"absorb-and-or",   x & (x | y),            x},
      {"absorb-or-and",   x | (x & y),            x},
      {"shl-none",        x << 0,                 x},
      {"shl-of-zero",     0 << x,                 0},
      {"shr-none",        x >> 0,                 x},
      {"shr-of-zero",     0 >> x,                 0},

      {"max-self",        max(x, x),              x},
      {"min-self",        min(x, x),              x},
      {"max-left",        max(x, y),              x,                  x >= y},
      {"min-left",        min(x, y),              x,                  y >= x},
      {"max-max-const",   max(max(x, c), d),      max(x, fold(max(c, d)))},
      {"min-min-const",   min(min(x, c), d),      min(x, fold(min(c, d)))},
      {"max-max",         max(max(x, y), y),      max(x, y)},
      {"min-min",         min(min(x, y), y),      min(x, y)},
      {"max-min",         max(min(x, y), y),      y},
      {"min-max",         min(max(x, y), y),      y},

      {"div-one",         x / 1,                  x},
      {"div-zero",        x / 0,                  0},
      {"div-self",        x / x,                  1,                  x != 0},
      {"div-small",       x / y,                  0,                  in_range(x, y)},
      {"mod-one",         x % 1,                  0},
      {"mod-zero",        x % 0,                  0},
      {"mod-self",        x % x,                  0},
      {"mod-small",       x % y,                  x,                  in_range(x, y)},
      {"mod-mod",         (x % y) % y,            x % y},
      {"cdiv-one",        cdiv(x, 1),             x},
      {"cdiv-zero",       cdiv(x, 0),             0},
      {"cdiv-self",       cdiv(x, x),             1,                  x != 0},
      {"cdiv-small",      cdiv(x, y),             0,                  in_range(x, y)},
      {"cmod-one",        cmod(x, 1),             0},
      {"cmod-zero",       cmod(x, 0),             0},
      {"cmod-self",       cmod(x, x),             0},
      {"cmod-small",      cmod(x, y),             x,                  in_range(x, y)},
      {"cmod-cmod",       cmod(cmod(x, y), y),    cmod(x, y)},

      {"lt-self",         lt(x, x),               0},
      {"ne-self",         ne(x, x),               0},
      {"eq-self",         eq(x, x),               1},
  });
  return table;
}

const RuleTable& wrapping_rules() {
  static const Pat x = any("x"), y = any("y"), c = constant("c"), d = constant("d");
  static const RuleTable table(Domain::StrongInt, {
      // name             from                    to
      {"zero-sub",        0 - x,                  -x},
      {"add-neg",         x + -y,                 x - y},
      {"sub-neg",         x - -y,                 x + y},
      {"add-sub",         (x - y) + y,            x},
      {"sub-add",         (x + y) - y,            x},
      {"neg-sub",         -(x - y),               y - x},
      {"mul-minus-one",   x * -1,                 -x},
      {"add-add-const",   (x + c) + d,            x + fold(c + d)},
      {"sub-add-const",   (x - c) + d,            x + fold(d - c)},
      {"add-sub-const",   (x + c) - d,            x + fold(c - d)},
      {"mul-mul-const",   (x * c) * d,            x * fold(c * d)},
      {"like-terms",      x * c + x * d,          x * fold(c + d)},
      {"like-term-one",   x * c + x,              x * fold(c + 1)},
      {"twice",           x + x,                  x * 2},
  });
  return table;
}

// `/` floors and `%` takes the divisor's sign. x and y match any node, c and d match constants.
const RuleTable& index_rules() {
  static const Pat x = any("x"), y = any("y"), c = constant("c"), d = constant("d");
  static const RuleTable table(Domain::WeakInt, {
      // name              from                    to                             when
      {"mul-div-same",     (x * c) / c,            x,                             c != 0},
      {"mul-mod-same",     (x * c) % c,            0},
      {"row-of-index",     (x * c + y) / c,        x,                             in_range(y, c)},
      {"col-of-index",     (x * c + y) % c,        y,                             in_range(y, c)},
      {"div-div-const",    (x / c) / d,            x / fold(c * d),               c > 0 && d > 0},
      {"div-minus",        x / c,                  (-x) / fold(0 - c),            c < 0},
      {"mod-minus",        x % c,                  -((-x) % fold(0 - c)),         c < 0},
      {"mod-mod-const",    (x % c) % d,            x % d,                         c != 0 && d > 0 && c % d == 0},
      {"mod-div-const",    (x % c) / d,            (x / d) % fold(c / d),         c > 0 && d > 0 && c % d == 0},
      {"cdiv-positive",    cdiv(x, y),             x / y,                         x >= 0 && y > 0},
      {"cmod-positive",    cmod(x, y),             x % y,                         x >= 0 && y > 0},
      {"cdiv-minus",       cdiv(x, c),             -cdiv(x, fold(0 - c)),         c < 0},
      {"cmod-minus",       cmod(x, c),             cmod(x, fold(0 - c)),          c < 0},
      {"cdiv-mirror",      cdiv(x, c),             -((-x) / c),                   0 >= x && c > 0},
      {"cmod-mirror",      cmod(x, c),             -((-x) % c),                   0 >= x && c > 0},
      {"factor-outside",   (x * c) * y,            (x * y) * c,                   has(y, is_not_constant)},
  });
  return table;
}

const RuleTable& compare_rules() {
  static const Pat x = any("x"), y = any("y"), c = constant("c"), d = constant("d");
  static const RuleTable table(Domain::WeakInt, {
      // name              from                    to                             when
      {"always-less",      lt(x, y),               1,                             y > x},
      {"never-less",       lt(x, y),               0,                             x >= y},
      {"always-differ",    ne(x, y),               1,                             x != y},
      {"never-equal",      eq(x, y),               0,                             x != y},
      {"lt-move-const",    lt(x + c, d),           lt(x, fold(d - c))},
      {"gt-move-const",    lt(d, x + c),           lt(fold(d - c), x)},
      {"div-less",         lt(x / c, d),           lt(x, fold(c * d)),            c > 0},
      {"div-more",         lt(d, x / c),           lt(fold(c * d + c - 1), x),    c > 0},
  });
  return table;
}

const RuleTable& bool_rules() {
  static const Pat x = any("x"), y = any("y");
  static const RuleTable table(Domain::Bool, {
      // name              from                    to
      {"and-true",         x & 1,                  x},
      {"and-false",        x & 0,                  0},
      {"and-self",         x & x,                  x},
      {"and-not",          x & logical_not(x),     0},
      {"absorb-and-or",    x & (x | y),            x},
      {"or-true",          x | 1,                  1},
      {"or-false",         x | 0,                  x},
      {"or-self",          x | x,                  x},
      {"or-not",           x | logical_not(x),     1},
      {"absorb-or-and",    x | (x & y),            x},
      {"xor-false",        x ^ 0,                  x},
      {"xor-true",         x ^ 1,                  logical_not(x)},
      {"xor-self",         x ^ x,                  0},
      {"ne-false",         ne(x, 0),               x},
      {"eq-true",          eq(x, 1),               x},
      {"eq-false",         eq(x, 0),               logical_not(x)},
      {"ne-self",          ne(x, x),               0},
      {"eq-self",          eq(x, x),               1},
      {"lt-self",          lt(x, x),               0},
      {"not-not",          ne(ne(x, 1), 1),        x,                 has(x, is_bool)},
      {"not-ne",           ne(ne(x, y), 1),        eq(x, y)},
      {"not-eq",           ne(eq(x, y), 1),        ne(x, y)},
      {"not-less",         ne(lt(x, y), 1),        lt(y, x + 1),      has(x, is_weak_int)},
      {"mul-is-and",       x * y,                  x & y},
      {"min-is-and",       min(x, y),              x & y},
      {"add-is-or",        x + y,                  x | y},
      {"max-is-or",        max(x, y),              x | y},
      {"where-is-or",      where(x, 1, y),         x | y},
      {"where-is-and",     where(x, y, 0),         x & y},
      {"where-not-and",    where(x, 0, y),         logical_not(x) & y},
      {"where-not-or",     where(x, y, 1),         logical_not(x) | y},
  });
  return table;
}

const RuleTable& where_rules() {
  static const Pat p = any("p"), q = any("q"), x = any("x"), y = any("y"), z = any("z");
  static const RuleTable table(Domain::Any, {
      // name              from                                  to                          when
      {"where-true",       where(p, x, y),                       x,                          p == 1},
      {"where-false",      where(p, x, y),                       y,                          p == 0},
      {"where-same",       where(p, x, x),                       x},
      {"where-not-invalid",where(p, invalid(), y),               where(logical_not(p), y, invalid())},
      {"where-not",        where(logical_not(p), x, y),          where(p, y, x),             has(p, is_bool) && has(y, is_not_invalid)},
      {"where-then-same",  where(p, where(p, x, y), z),          where(p, x, z)},
      {"where-else-same",  where(p, x, where(p, y, z)),          where(p, x, z)},
      {"where-and",        where(p, where(q, x, y), y),          where(p & q, x, y)},
      {"where-or",         where(p, x, where(q, x, y)),          where(p | q, x, y)},
  });
  return table;
}

const RuleTable& float_rules() {
  static const Pat x = any("x"), y = any("y"), c = constant("c"), d = constant("d");
  static const Pat minus_zero = float_literal(-0.0);
  constexpr FloatLevel kFast = FloatLevel::Fast;
  static const RuleTable table(Domain::Float, {
      // name              from                    to                  when                          level
      {"add-minus-zero",   x + minus_zero,         x},
      {"sub-zero",         x - 0,                  x},
      {"mul-one",          x * 1,                  x},
      {"div-one",          fdiv(x, 1),             x},
      {"div-exact",        fdiv(x, c),             x * fold(fdiv(1, c)), has(c, is_exact_reciprocal)},
      {"neg-neg",          -(-x),                  x},
      {"mul-minus-one",    x * -1,                 -x},
      {"neg-mul-neg",      (-x) * (-y),            x * y},
      {"add-neg",          x + -y,                 x - y},
      {"sub-neg",          x - -y,                 x + y},
      {"max-self",         max(x, x),              x},
      {"min-self",         min(x, x),              x},
      {"lt-self",          lt(x, x),               0},
      {"pow-zero",         pow(x, 0),              1},
      {"pow-one",          pow(x, 1),              x},
      // Wrong for NaN, infinities or the sign of zero, or rounded elsewhere.
      {"add-zero",         x + 0,                  x,                  {},                           kFast},
      {"mul-zero",         x * 0,                  0,                  {},                           kFast},
      {"sub-self",         x - x,                  0,                  {},                           kFast},
      {"div-self",         fdiv(x, x),             1,                  {},                           kFast},
      {"mul-div",          fdiv(x * y, y),         x,                  {},                           kFast},
      {"div-const",        fdiv(x, c),             x * fold(fdiv(1, c)), has(c, is_finite_nonzero),     kFast},
      {"recip-recip",      reciprocal(reciprocal(x)), x,               {},                           kFast},
      {"mul-recip",        x * reciprocal(x),      1,                  {},                           kFast},
      {"pow-two",          pow(x, 2),              x * x,              {},                           kFast},
      {"pow-half",         pow(x, float_literal(0.5)), sqrt(x),        {},                           kFast},
      {"pow-minus-one",    pow(x, -1),             reciprocal(x),      {},                           kFast},
      {"sqrt-squared",     sqrt(x) * sqrt(x),      x,                  {},                           kFast},
      {"add-add-const",    (x + c) + d,            x + fold(c + d),    {},                           kFast},
      {"mul-mul-const",    (x * c) * d,            x * fold(c * d),    {},                           kFast},
      {"neg-sub",          -(x - y),               y - x,              {},                           kFast},
  });
  return table;
}

const RuleTable& contraction_rules() {
  static const Pat x = any("x"), y = any("y"), z = any("z");
  constexpr FloatLevel kFinite = FloatLevel::Finite;
  static const RuleTable table(Domain::Float, {
      {"contract-add",     x * y + z,              mulacc(x, y, z),    {},   kFinite},
      {"contract-sub",     x * y - z,              mulacc(x, y, -z),   {},   kFinite},
      {"contract-rsub",    z - x * y,              mulacc(-x, y, z),   {},   kFinite},
  });
  return table;
}
// clang-format on

}  // namespace ignis::ir
