#include "ignis/ir/rules.h"

#include "ignis/ir/test_eval.h"
#include "ignis/ir/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

namespace ignis::ir {
namespace {

using testing::IntEvaluator;
using testing::test_seed;

void collect_names(const Pat& pat, std::set<std::string>& any_names,
                   std::set<std::string>& constant_names) {
  const Pat::Data& d = pat.data();
  if (d.kind == Pat::Kind::Any) any_names.insert(d.name);
  if (d.kind == Pat::Kind::Constant) constant_names.insert(d.name);
  for (const Pat& s : d.sources) collect_names(s, any_names, constant_names);
}

class Random {
 public:
  explicit Random(uint64_t seed) : rng_(seed) {}
  int64_t pick(int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(rng_);
  }

 private:
  std::mt19937_64 rng_;
};

struct Sample {
  Binding binding;
  std::vector<Node> leaves;  // Special nodes with small domains
};

// Leaves with domains of a few values for `any` names, constants for the others; names p and q are conditions.
Sample random_sample(Graph& g, const Rule& rule, DType dtype, Random& random) {
  std::set<std::string> any_names, constant_names;
  collect_names(rule.from, any_names, constant_names);
  const Interval whole = dtype_interval(dtype);
  const auto clamp = [&](int64_t v) { return std::min(std::max(v, whole.lo), whole.hi); };
  Sample sample;
  for (const std::string& name : any_names) {
    const bool is_condition = name == "p" || name == "q";
    const DType d = is_condition ? DType::Bool : dtype;
    int64_t lo = clamp(random.pick(-40, 40)), hi = clamp(lo + random.pick(0, 6));
    if (d == DType::Bool) {
      lo = random.pick(0, 3) == 0 ? 1 : 0;
      hi = random.pick(0, 3) == 0 ? lo : 1;
    }
    const Node leaf = g.make(Op::Special, d, std::span<const Node>{}, Arg{{lo, hi}, name});
    sample.leaves.push_back(leaf);
    sample.binding[name] = leaf;
  }
  for (const std::string& name : constant_names) {
    sample.binding[name] = g.constant(dtype, random.pick(-12, 40));
  }
  return sample;
}

void check_rows(const RuleTable& table, const std::vector<DType>& dtypes) {
  Random random(test_seed());
  for (const Rule& rule : table) {
    SCOPED_TRACE(rule.name + ": " + rule.from.to_string() + " -> " + rule.to.to_string());
    const RuleTable one(table.domain(), {rule});
    int times_true = 0;
    Graph g;
    for (int i = 0; i < 4000; ++i) {
      const DType dtype =
          dtypes[static_cast<size_t>(random.pick(0, static_cast<int64_t>(dtypes.size()) - 1))];
      const Sample sample = random_sample(g, rule, dtype, random);
      const Node from = instantiate(g, rule.from, sample.binding, dtype);
      RangeAnalysis ranges;
      RuleContext context{g, ranges, FloatLevel::Strict, nullptr, nullptr, nullptr};
      const Node to = one.apply(context, from);
      if (!to) continue;
      ++times_true;
      ASSERT_EQ(to.dtype(), from.dtype()) << from << " became " << to;
      IntEvaluator evaluate_from(from), evaluate_to(to);
      for (int point = 0; point < 8; ++point) {
        std::unordered_map<Node, int64_t> at;
        for (const Node& leaf : sample.leaves) {
          at[leaf] = random.pick(leaf.arg().ints[0], leaf.arg().ints[1]);
        }
        const auto before = evaluate_from(at), after = evaluate_to(at);
        ASSERT_EQ(before, after) << from << " became " << to;
      }
    }
    EXPECT_GT(times_true, 50) << "The row almost never applies: it is untested.";
  }
}

const std::vector<DType> kStrong{DType::Int8, DType::UInt8, DType::Int32, DType::UInt32,
                                 DType::Int64};

TEST(IntegerRules, EveryRowKeepsTheValue) {
  std::vector<DType> dtypes = kStrong;
  dtypes.push_back(DType::WeakInt);
  check_rows(integer_rules(), dtypes);
}
TEST(WrappingRules, EveryRowKeepsTheValue) { check_rows(wrapping_rules(), kStrong); }
TEST(IndexRules, EveryRowKeepsTheValue) { check_rows(index_rules(), {DType::WeakInt}); }
TEST(CompareRules, EveryRowKeepsTheValue) { check_rows(compare_rules(), {DType::WeakInt}); }
TEST(BoolRules, EveryRowKeepsTheValue) { check_rows(bool_rules(), {DType::Bool, DType::WeakInt}); }
TEST(WhereRules, EveryRowKeepsTheValue) {
  check_rows(where_rules(), {DType::WeakInt, DType::UInt8, DType::Bool});
}

// Naive float32 arithmetic: one rounding for each operation.
class FloatEvaluator {
 public:
  explicit FloatEvaluator(const std::unordered_map<Node, float>& leaves) : leaves_(leaves) {}
  float operator()(const Node& n) const {
    if (const auto it = leaves_.find(n); it != leaves_.end()) return it->second;
    if (n.is(Op::Const)) return static_cast<float>(n.const_float());
    const float a = (*this)(n.src(0)), b = n.source_count() > 1 ? (*this)(n.src(1)) : 0;
    switch (n.op()) {
      case Op::Add: return a + b;
      case Op::Sub: return a - b;
      case Op::Mul: return a * b;
      case Op::Fdiv: return a / b;
      case Op::Neg: return -a;
      case Op::Sqrt: return std::sqrt(a);
      case Op::Pow: return std::pow(a, b);
      case Op::Reciprocal: return 1.0f / a;
      case Op::Max: return std::isnan(a) || std::isnan(b) ? NAN : (a > b ? a : b);
      case Op::Min: return std::isnan(a) || std::isnan(b) ? NAN : (a < b ? a : b);
      case Op::Cmplt: return a < b ? 1.0f : 0.0f;
      case Op::Mulacc: return std::fmaf(a, b, (*this)(n.src(2)));
      default: IGNIS_CHECK(false) << to_string(n.op());
    }
    return 0;
  }

 private:
  const std::unordered_map<Node, float>& leaves_;
};

void check_float_rows(const RuleTable& table, FloatLevel level) {
  Random random(test_seed());
  const std::vector<float> special{NAN,  INFINITY, -INFINITY, 0.0f,  -0.0f,
                                   1.0f, -1.0f,    1e-45f,    -3e38f};
  // The last is left out under contraction: a product that overflows alone may not inside one rounding.
  const auto specials =
      static_cast<int64_t>(special.size()) - (level == FloatLevel::Finite ? 1 : 0);
  for (const Rule& rule : table) {
    if (rule.level != level) continue;
    SCOPED_TRACE(rule.name + ": " + rule.from.to_string() + " -> " + rule.to.to_string());
    const RuleTable one(table.domain(), {rule});
    std::set<std::string> any_names, constant_names;
    collect_names(rule.from, any_names, constant_names);
    const auto value = [&](bool plain) {
      if (!plain && random.pick(0, 2) == 0) {
        return special[static_cast<size_t>(random.pick(0, specials - 1))];
      }
      const float size = std::ldexp(1.0f + static_cast<float>(random.pick(0, 8191)) / 8192.0f,
                                    static_cast<int>(random.pick(-20, 20)));
      const float exact_power = std::ldexp(1.0f, static_cast<int>(random.pick(-20, 20)));
      const float v = random.pick(0, 3) == 0 ? exact_power : size;
      // Plain numbers are positive: sums of them lose nothing to cancellation.
      return !plain && random.pick(0, 1) == 0 ? -v : v;
    };
    int times_true = 0;
    Graph g;
    for (int i = 0; i < 4000; ++i) {
      const bool plain =
          level == FloatLevel::Fast || (level == FloatLevel::Finite && random.pick(0, 1) == 0);
      Binding binding;
      std::unordered_map<Node, float> at;
      for (const std::string& name : any_names) {
        binding[name] = g.make(Op::Special, DType::Float32, std::span<const Node>{}, Arg{{}, name});
        at[binding[name]] = value(plain);
      }
      for (const std::string& name : constant_names)
        binding[name] = g.constant_float(DType::Float32, value(plain));
      const Node from = instantiate(g, rule.from, binding, DType::Float32);
      RangeAnalysis ranges;
      if (level != FloatLevel::Strict) {
        RuleContext below{g, ranges,
                          level == FloatLevel::Fast ? FloatLevel::Finite : FloatLevel::Strict};
        ASSERT_FALSE(one.apply(below, from)) << "applied below its level";
      }
      RuleContext context{g, ranges, level};
      const Node to = one.apply(context, from);
      if (!to) continue;
      const float before = FloatEvaluator(at)(from), after = FloatEvaluator(at)(to);
      ++times_true;
      if (std::isnan(before)) {
        ASSERT_TRUE(std::isnan(after))
            << from << " is " << after << " at " << ::testing::PrintToString(at);
      } else if (level == FloatLevel::Strict) {
        ASSERT_EQ(std::bit_cast<uint32_t>(before), std::bit_cast<uint32_t>(after))
            << from << " became " << to;
      } else if (std::isinf(before) || before == 0) {
        // Contraction may keep what the product alone would have lost.
        if (std::abs(after) < 1e30f && std::abs(after) > 1e-30f) continue;
        ASSERT_EQ(before, after) << from;
      } else {
        float size = std::abs(before);  // of the largest operand: a difference may cancel
        for (const auto& [leaf, v] : at) {
          for (const auto& [other, w] : at) {
            if (std::isfinite(v * w)) size = std::max({size, std::abs(v), std::abs(v * w)});
          }
        }
        ASSERT_NEAR(before, after, 4e-7f * size) << from << " became " << to;
      }
    }
    EXPECT_GT(times_true, 50) << "The row almost never applies: it is untested.";
  }
}

TEST(FloatRules, StrictRowsKeepEveryBit) { check_float_rows(float_rules(), FloatLevel::Strict); }
TEST(FloatRules, FastRowsStayCloseOnPlainNumbers) {
  check_float_rows(float_rules(), FloatLevel::Fast);
}
TEST(ContractionRules, RoundOnce) { check_float_rows(contraction_rules(), FloatLevel::Finite); }

TEST(RuleTable, TriesRowsFromTheTopAndBothOrders) {
  const Pat x = any("x"), c = constant("c");
  const RuleTable table(Domain::AnyInt, {
                                            {"first", x + 7, x},
                                            {"second", x + c, x * c},
                                        });
  Graph g;
  RangeAnalysis ranges;
  RuleStats stats;
  RuleContext context{g, ranges, FloatLevel::Strict, &stats, nullptr, nullptr};
  const Node i = g.range(10, 0, AxisKind::Loop);
  const auto k = [&](int64_t v) { return g.constant(DType::WeakInt, v); };
  EXPECT_EQ(table.apply(context, g.alu(Op::Add, {i, k(7)})), i);
  EXPECT_STREQ(context.last_rule, "first");
  EXPECT_EQ(table.apply(context, g.alu(Op::Add, {k(7), i})), i);
  EXPECT_EQ(table.apply(context, g.alu(Op::Add, {k(8), i})), g.alu(Op::Mul, {i, k(8)}));
  EXPECT_STREQ(context.last_rule, "second");
  EXPECT_FALSE(table.apply(context, g.alu(Op::Sub, {i, k(7)})));
  EXPECT_EQ(stats.hits, 3);
}

TEST(RuleTable, ARepeatedNameIsTheSameNode) {
  const Pat x = any("x"), y = any("y");
  const RuleTable table(Domain::AnyInt, {{"undo", (x - y) + y, x}});
  Graph g;
  RangeAnalysis ranges;
  RuleContext context{g, ranges};
  const Node i = g.range(10, 0, AxisKind::Loop), j = g.range(10, 1, AxisKind::Loop);
  EXPECT_EQ(table.apply(context, g.alu(Op::Add, {g.alu(Op::Sub, {i, j}), j})), i);
  EXPECT_EQ(table.apply(context, g.alu(Op::Add, {j, g.alu(Op::Sub, {i, j})})), i);
  EXPECT_FALSE(table.apply(context, g.alu(Op::Add, {g.alu(Op::Sub, {i, j}), i})));
}

}  // namespace
}  // namespace ignis::ir
