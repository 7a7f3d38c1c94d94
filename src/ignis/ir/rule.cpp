#include "ignis/ir/rule.h"

#include "ignis/ir/fold.h"

#include <bit>
#include <cmath>

namespace ignis::ir {
namespace {

// All orders of the sources of commutative operations in a pattern.
std::vector<Pat> orders_of(const Pat& pat) {
  const Pat::Data& d = pat.data();
  if (d.kind != Pat::Kind::Op) return {pat};
  std::vector<std::vector<Pat>> choices{{}};
  for (const Pat& source : d.sources) {
    std::vector<std::vector<Pat>> longer;
    for (const auto& choice : choices) {
      for (const Pat& variant : orders_of(source)) {
        longer.push_back(choice);
        longer.back().push_back(variant);
      }
    }
    choices = std::move(longer);
  }
  std::vector<Pat> result;
  for (const auto& choice : choices) result.emplace_back(d.op, choice);
  // Swapping is pointless when both sides look the same, as in x + x.
  const bool same = d.sources.size() == 2 && &d.sources[0].data() == &d.sources[1].data();
  if (is_commutative(d.op) && !same) {
    for (const auto& choice : choices)
      result.emplace_back(d.op, std::vector<Pat>{choice[1], choice[0]});
  }
  return result;
}

Interval interval_of(Op op, const Interval& a, const Interval& b) {
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::Neg: return -a;
    case Op::Floordiv:
      return a.is_point() && b.is_point() ? Interval::point(floor_div(a.lo, b.lo)) : Interval{};
    case Op::Floormod:
      return a.is_point() && b.is_point() ? Interval::point(floor_mod(a.lo, b.lo)) : Interval{};
    default: return {};
  }
}

bool compare(Condition::Kind kind, const Interval& a, const Interval& b) {
  switch (kind) {
    case Condition::Kind::Greater: return a.lo > b.hi;
    case Condition::Kind::GreaterEqual: return a.lo >= b.hi && a.has_low() && b.has_high();
    case Condition::Kind::Equal: return a.is_point() && a == b;
    case Condition::Kind::NotEqual: return a.hi < b.lo || b.hi < a.lo;
    default: return false;
  }
}

}  // namespace

bool in_domain(Domain domain, DType dtype) {
  switch (domain) {
    case Domain::Any: return true;
    case Domain::WeakInt: return dtype == DType::WeakInt;
    case Domain::StrongInt: return is_int(dtype) && dtype != DType::WeakInt;
    case Domain::AnyInt: return is_int(dtype);
    case Domain::Bool: return dtype == DType::Bool;
    case Domain::Float: return is_float(dtype);
  }
  return false;
}

struct RuleTable::Names {
  std::unordered_map<std::string, int> slots;
  int of(const std::string& name) {
    const auto [it, added] = slots.emplace(name, static_cast<int>(slots.size()));
    IGNIS_CHECK(it->second < kMaxCaptures) << "too many names in one rule";
    return it->second;
  }
};

RuleTable::RuleTable(Domain domain, std::vector<Rule> rules)
    : domain_(domain), rules_(std::move(rules)) {
  for (size_t r = 0; r < rules_.size(); ++r) {
    const Rule& rule = rules_[r];
    IGNIS_CHECK(rule.from.data().kind == Pat::Kind::Op)
        << rule.name << ": a rule starts with an operation";
    for (const Pat& order : orders_of(rule.from)) {
      Names names;
      Variant variant;
      variant.rule = static_cast<int>(r);
      variant.from = compile(order, names);
      const size_t known = names.slots.size();
      variant.to = compile(rule.to, names);
      variant.when = rule.when.kind() == Condition::Kind::Always ? -1 : compile(rule.when, names);
      IGNIS_CHECK(names.slots.size() == known)
          << rule.name << ": a name of the result is not in the pattern";
      const auto& sources = order.data().sources;
      variant.second = sources.size() > 1 ? ops_of(sources[1]) : OpSet().set();
      auto& by_first = dispatch_[static_cast<size_t>(order.data().op)];
      if (by_first.empty()) by_first.resize(kOpCount);
      const OpSet first = sources.empty() ? OpSet().set() : ops_of(sources[0]);
      for (size_t op = 0; op < kOpCount; ++op) {
        if (first[op]) by_first[op].push_back(static_cast<int>(variants_.size()));
      }
      variants_.push_back(variant);
    }
  }
}

RuleTable::OpSet RuleTable::ops_of(const Pat& pat) const {
  OpSet set;
  switch (pat.data().kind) {
    case Pat::Kind::Any:
    case Pat::Kind::Fold: return set.set();
    case Pat::Kind::Op: set.set(static_cast<size_t>(pat.data().op)); return set;
    default: set.set(static_cast<size_t>(Op::Const)); return set;
  }
}

int RuleTable::compile(const Pat& pat, Names& names) {
  const Pat::Data& d = pat.data();
  Compiled compiled{};
  compiled.kind = d.kind;
  compiled.op = d.op;
  compiled.slot = d.kind == Pat::Kind::Any || d.kind == Pat::Kind::Constant ? names.of(d.name) : -1;
  compiled.literal = d.literal;
  compiled.value = d.value;
  compiled.source_count = static_cast<int>(d.sources.size());
  IGNIS_CHECK(d.sources.size() <= 3);
  for (size_t i = 0; i < d.sources.size(); ++i) compiled.sources[i] = compile(d.sources[i], names);
  nodes_.push_back(compiled);
  return static_cast<int>(nodes_.size()) - 1;
}

int RuleTable::compile(const Condition& condition, Names& names) {
  CompiledCondition compiled{condition.kind(), -1, -1, condition.predicate()};
  if (!condition.operands().empty()) compiled.a = compile(condition.operands()[0], names);
  if (condition.operands().size() > 1) compiled.b = compile(condition.operands()[1], names);
  if (!condition.parts().empty()) {
    compiled.a = compile(condition.parts()[0], names);
    compiled.b = compile(condition.parts()[1], names);
  }
  conditions_.push_back(compiled);
  return static_cast<int>(conditions_.size()) - 1;
}

Node RuleTable::apply(RuleContext& context, const Node& node) const {
  const auto& by_first = dispatch_[static_cast<size_t>(node.op())];
  if (by_first.empty() || node.source_count() == 0) return Node();
  const Node first = node.src(0);
  if (!in_domain(domain_, is_comparison(node.op()) ? first.dtype() : node.dtype())) return Node();
  const auto& candidates = by_first[static_cast<size_t>(first.op())];
  const size_t second = node.source_count() > 1 ? static_cast<size_t>(node.src(1).op()) : 0;
  for (const int candidate : candidates) {
    const Variant& variant = variants_[static_cast<size_t>(candidate)];
    const Rule& rule = rules_[static_cast<size_t>(variant.rule)];
    if (!variant.second[second] || rule.level > context.level) continue;
    if (context.stats != nullptr) ++context.stats->attempts;
    Captures captures{};
    if (!match(variant.from, node, captures)) continue;
    if (variant.when >= 0 && !holds(variant.when, context, captures)) continue;
    const Node result = build(variant.to, context, captures, node.dtype());
    if (!result || result == node) continue;
    if (context.stats != nullptr) ++context.stats->hits;
    context.last_rule = rule.name.c_str();
    return result;
  }
  return Node();
}

bool RuleTable::match(int pattern, const Node& node, Captures& captures) const {
  const Compiled& p = nodes_[static_cast<size_t>(pattern)];
  switch (p.kind) {
    case Pat::Kind::Constant:
      if (!node.is_const()) return false;
      [[fallthrough]];
    case Pat::Kind::Any: {
      Node& captured = captures[static_cast<size_t>(p.slot)];
      if (captured) return captured == node;
      captured = node;
      return true;
    }
    case Pat::Kind::Literal: return node.is_const_value(p.literal);
    case Pat::Kind::Float:
      return node.is_const() && is_float(node.dtype()) &&
             std::bit_cast<uint64_t>(node.const_float()) == std::bit_cast<uint64_t>(p.value);
    case Pat::Kind::Invalid: return node.is_invalid();
    case Pat::Kind::Fold: return false;
    case Pat::Kind::Op: break;
  }
  if (node.op() != p.op || node.source_count() != p.source_count) return false;
  for (int i = 0; i < p.source_count; ++i) {
    if (!match(p.sources[static_cast<size_t>(i)], node.src(i), captures)) return false;
  }
  return true;
}

bool RuleTable::holds(int condition, RuleContext& context, const Captures& captures) const {
  const CompiledCondition& c = conditions_[static_cast<size_t>(condition)];
  switch (c.kind) {
    case Condition::Kind::Always: return true;
    case Condition::Kind::And:
      return holds(c.a, context, captures) && holds(c.b, context, captures);
    case Condition::Kind::Or: return holds(c.a, context, captures) || holds(c.b, context, captures);
    case Condition::Kind::Predicate:
      return c.predicate(captures[static_cast<size_t>(nodes_[static_cast<size_t>(c.a)].slot)]);
    default:
      return compare(c.kind, evaluate(c.a, context, captures), evaluate(c.b, context, captures));
  }
}

Interval RuleTable::evaluate(int pattern, RuleContext& context, const Captures& captures) const {
  const Compiled& p = nodes_[static_cast<size_t>(pattern)];
  if (p.kind == Pat::Kind::Literal) return Interval::point(p.literal);
  if (p.slot >= 0) return context.ranges.interval(captures[static_cast<size_t>(p.slot)]);
  if (p.kind != Pat::Kind::Op) return {};
  const Interval a = evaluate(p.sources[0], context, captures);
  return interval_of(p.op, a,
                     p.source_count > 1 ? evaluate(p.sources[1], context, captures) : Interval{});
}

namespace {

// Makes a node of a pattern's operation; null sources are numbers that take the dtype of their neighbours.
struct Number {
  Pat::Kind kind;
  int64_t literal;
  double value;
};
Node make_number(Graph& graph, const Number& number, DType dtype) {
  if (number.kind == Pat::Kind::Invalid) return graph.invalid(dtype);
  if (number.kind == Pat::Kind::Float) return graph.constant_float(dtype, number.value);
  return graph.constant(dtype, number.literal);
}
bool is_number(Pat::Kind kind) {
  return kind == Pat::Kind::Literal || kind == Pat::Kind::Float || kind == Pat::Kind::Invalid;
}

// `hint` is the dtype the result is wanted in.
Node make_op(Graph& graph, Op op, std::array<Node, 3> sources, const std::array<Number, 3>& numbers,
             int count, DType hint) {
  const int first_value = op == Op::Where ? 1 : 0;
  DType dtype = hint;
  int lanes = 1;
  for (int i = count - 1; i >= first_value; --i) {
    if (sources[static_cast<size_t>(i)]) dtype = sources[static_cast<size_t>(i)].dtype();
  }
  for (int i = 0; i < count; ++i) {
    Node& s = sources[static_cast<size_t>(i)];
    if (!s)
      s = make_number(graph, numbers[static_cast<size_t>(i)],
                      i < first_value ? DType::Bool : dtype);
    lanes = std::max(lanes, s.lanes());
  }
  return graph.make(op, is_comparison(op) ? DType::Bool : dtype,
                    std::span<const Node>(sources.data(), static_cast<size_t>(count)), {}, lanes);
}

}  // namespace

Node RuleTable::build(int pattern, RuleContext& context, const Captures& captures,
                      DType hint) const {
  const Compiled& p = nodes_[static_cast<size_t>(pattern)];
  if (p.slot >= 0) return captures[static_cast<size_t>(p.slot)];
  if (is_number(p.kind)) return make_number(context.graph, {p.kind, p.literal, p.value}, hint);
  if (p.kind == Pat::Kind::Fold) {
    const Node expression = build(p.sources[0], context, captures, hint);
    if (!expression || expression.is_const()) return expression;
    return fold_constants(context.graph, expression);
  }
  std::array<Node, 3> sources;
  std::array<Number, 3> numbers{};
  for (int i = 0; i < p.source_count; ++i) {
    const auto at = static_cast<size_t>(i);
    const Compiled& source = nodes_[static_cast<size_t>(p.sources[at])];
    numbers[at] = {source.kind, source.literal, source.value};
    if (is_number(source.kind)) continue;
    sources[at] =
        build(p.sources[at], context, captures, p.op == Op::Where && i == 0 ? DType::Bool : hint);
    if (!sources[at]) return Node();
  }
  const Node result = make_op(context.graph, p.op, sources, numbers, p.source_count, hint);
  // Inside fold every step is a constant.
  const bool all_constant = result.source_count() > 0 && result.src(0).is_const() &&
                            (result.source_count() < 2 || result.src(1).is_const()) &&
                            (result.source_count() < 3 || result.src(2).is_const());
  if (!all_constant) return result;
  const Node folded = fold_constants(context.graph, result);
  return folded ? folded : result;
}

Node instantiate(Graph& graph, const Pat& pat, const Binding& binding, DType dtype) {
  const Pat::Data& d = pat.data();
  if (d.kind == Pat::Kind::Any || d.kind == Pat::Kind::Constant) return binding.at(d.name);
  if (is_number(d.kind)) return make_number(graph, {d.kind, d.literal, d.value}, dtype);
  std::array<Node, 3> sources;
  std::array<Number, 3> numbers{};
  for (size_t i = 0; i < d.sources.size(); ++i) {
    const Pat::Data& source = d.sources[i].data();
    numbers[i] = {source.kind, source.literal, source.value};
    if (is_number(source.kind)) continue;
    const bool is_condition = d.op == Op::Where && i == 0;
    sources[i] = instantiate(graph, d.sources[i], binding, is_condition ? DType::Bool : dtype);
  }
  return make_op(graph, d.op, sources, numbers, static_cast<int>(d.sources.size()), dtype);
}

}  // namespace ignis::ir
