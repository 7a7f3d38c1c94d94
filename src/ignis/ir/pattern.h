#pragma once

#include "ignis/ir/graph.h"
#include "ignis/ir/range.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ignis::ir {

/// A pattern of nodes, written as an expression: what a rule looks for, and what it puts in place.
///
/// `any("x")` matches every node, `constant("c")` every constant but Invalid; the same name twice means the same node.
/// A number matches a constant of exactly that value, of any dtype; in a result it takes the dtype of its neighbour.
/// Commutative operations match in both orders. `/` is Floordiv and `%` Floormod; `fdiv` divides floats.
class Pat {
 public:
  enum class Kind : uint8_t { Any, Constant, Literal, Float, Invalid, Op, Fold };
  struct Data {
    Kind kind = Kind::Any;
    Op op = Op::Const;
    int64_t literal = 0;
    double value = 0;
    std::string name;
    std::vector<Pat> sources;
  };

  Pat(int64_t literal);  // NOLINT: implicit, so that rules read like formulas
  Pat(int literal) : Pat(static_cast<int64_t>(literal)) {}  // NOLINT
  Pat(Op op, std::vector<Pat> sources);
  explicit Pat(Data data) : data_(std::make_shared<const Data>(std::move(data))) {}

  const Data& data() const { return *data_; }
  /// "(x*c + y)//c".
  std::string to_string() const;

 private:
  std::shared_ptr<const Data> data_;
};

Pat any(std::string name);
Pat constant(std::string name);
/// The float constant with exactly this value and sign of zero.
Pat float_literal(double value);
/// The constant Invalid.
Pat invalid();
/// In a result: the constant this expression of constants computes. The rule does not apply when it cannot be known.
Pat fold(Pat expression);

Pat operator+(Pat a, Pat b);
Pat operator-(Pat a, Pat b);
Pat operator*(Pat a, Pat b);
Pat operator/(Pat a, Pat b);
Pat operator%(Pat a, Pat b);
Pat operator&(Pat a, Pat b);
Pat operator|(Pat a, Pat b);
Pat operator^(Pat a, Pat b);
Pat operator<<(Pat a, Pat b);
Pat operator>>(Pat a, Pat b);
Pat operator-(Pat a);
Pat max(Pat a, Pat b);
Pat min(Pat a, Pat b);
Pat fdiv(Pat a, Pat b);
Pat cdiv(Pat a, Pat b);
Pat cmod(Pat a, Pat b);
Pat pow(Pat a, Pat b);
Pat lt(Pat a, Pat b);
Pat ne(Pat a, Pat b);
Pat eq(Pat a, Pat b);
/// Cmpne(x, true): the one form of "not".
Pat logical_not(Pat x);
Pat where(Pat condition, Pat a, Pat b);
Pat mulacc(Pat a, Pat b, Pat c);
Pat sqrt(Pat x);
Pat reciprocal(Pat x);

/// When a rule may be applied: comparisons of what patterns captured. A comparison holds when the value ranges prove
/// it for every possible value, so `c > 0` on a constant looks at its value and `x >= 0` at what is known about x.
class Condition {
 public:
  enum class Kind : uint8_t { Always, Greater, GreaterEqual, Equal, NotEqual, And, Or, Predicate };
  Condition() = default;
  Condition(Kind kind, Pat a, Pat b) : kind_(kind), operands_{std::move(a), std::move(b)} {}
  Condition(Kind kind, Condition a, Condition b)
      : kind_(kind), parts_{std::move(a), std::move(b)} {}
  Condition(Pat a, bool (*test)(const Node&))
      : kind_(Kind::Predicate), operands_{std::move(a)}, predicate_(test) {}

  Kind kind() const { return kind_; }
  const std::vector<Pat>& operands() const { return operands_; }
  const std::vector<Condition>& parts() const { return parts_; }
  bool (*predicate() const)(const Node&) { return predicate_; }

 private:
  Kind kind_ = Kind::Always;
  std::vector<Pat> operands_;
  std::vector<Condition> parts_;
  bool (*predicate_)(const Node&) = nullptr;
};

Condition operator>(Pat a, Pat b);
Condition operator<(Pat a, Pat b);
Condition operator>=(Pat a, Pat b);
Condition operator<=(Pat a, Pat b);
Condition operator==(Pat a, Pat b);
Condition operator!=(Pat a, Pat b);
Condition operator&&(Condition a, Condition b);
Condition operator||(Condition a, Condition b);
/// 0 <= x < bound.
Condition in_range(Pat x, Pat bound);
/// A property of one captured node.
Condition has(Pat x, bool (*test)(const Node&));

}  // namespace ignis::ir
