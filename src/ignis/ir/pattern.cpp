#include "ignis/ir/pattern.h"

#include <sstream>

namespace ignis::ir {
namespace {

Pat leaf(Pat::Kind kind, std::string name) {
  Pat::Data data;
  data.kind = kind;
  data.name = std::move(name);
  return Pat(std::move(data));
}

const char* sign_of(Op op) {
  switch (op) {
    case Op::Add: return "+";
    case Op::Sub: return "-";
    case Op::Mul: return "*";
    case Op::Floordiv: return "//";
    case Op::Floormod: return "%";
    case Op::And: return "&";
    case Op::Or: return "|";
    case Op::Xor: return "^";
    case Op::Shl: return "<<";
    case Op::Shr: return ">>";
    case Op::Cmplt: return "<";
    case Op::Cmpne: return "!=";
    case Op::Cmpeq: return "==";
    default: return nullptr;
  }
}

}  // namespace

Pat::Pat(int64_t literal) {
  Data data;
  data.kind = Kind::Literal;
  data.literal = literal;
  data_ = std::make_shared<const Data>(std::move(data));
}
Pat::Pat(Op op, std::vector<Pat> sources) {
  Data data;
  data.kind = Kind::Op;
  data.op = op;
  data.sources = std::move(sources);
  data_ = std::make_shared<const Data>(std::move(data));
}

std::string Pat::to_string() const {
  const Data& d = data();
  std::ostringstream out;
  switch (d.kind) {
    case Kind::Any:
    case Kind::Constant: return d.name;
    case Kind::Literal: return std::to_string(d.literal);
    case Kind::Float: out << d.value; return out.str();
    case Kind::Invalid: return "Invalid";
    case Kind::Fold: return "fold(" + d.sources[0].to_string() + ")";
    case Kind::Op: break;
  }
  if (const char* sign = sign_of(d.op); sign != nullptr && d.sources.size() == 2) {
    return "(" + d.sources[0].to_string() + " " + sign + " " + d.sources[1].to_string() + ")";
  }
  out << ir::to_string(d.op) << "(";
  for (size_t i = 0; i < d.sources.size(); ++i)
    out << (i > 0 ? ", " : "") << d.sources[i].to_string();
  out << ")";
  return out.str();
}

Pat any(std::string name) { return leaf(Pat::Kind::Any, std::move(name)); }
Pat constant(std::string name) { return leaf(Pat::Kind::Constant, std::move(name)); }
Pat float_literal(double value) {
  Pat::Data data;
  data.kind = Pat::Kind::Float;
  data.value = value;
  return Pat(std::move(data));
}
Pat invalid() { return leaf(Pat::Kind::Invalid, {}); }
Pat fold(Pat expression) {
  Pat::Data data;
  data.kind = Pat::Kind::Fold;
  data.sources = {std::move(expression)};
  return Pat(std::move(data));
}

Pat operator+(Pat a, Pat b) { return {Op::Add, {std::move(a), std::move(b)}}; }
Pat operator-(Pat a, Pat b) { return {Op::Sub, {std::move(a), std::move(b)}}; }
Pat operator*(Pat a, Pat b) { return {Op::Mul, {std::move(a), std::move(b)}}; }
Pat operator/(Pat a, Pat b) { return {Op::Floordiv, {std::move(a), std::move(b)}}; }
Pat operator%(Pat a, Pat b) { return {Op::Floormod, {std::move(a), std::move(b)}}; }
Pat operator&(Pat a, Pat b) { return {Op::And, {std::move(a), std::move(b)}}; }
Pat operator|(Pat a, Pat b) { return {Op::Or, {std::move(a), std::move(b)}}; }
Pat operator^(Pat a, Pat b) { return {Op::Xor, {std::move(a), std::move(b)}}; }
Pat operator<<(Pat a, Pat b) { return {Op::Shl, {std::move(a), std::move(b)}}; }
Pat operator>>(Pat a, Pat b) { return {Op::Shr, {std::move(a), std::move(b)}}; }
Pat operator-(Pat a) { return {Op::Neg, {std::move(a)}}; }
Pat max(Pat a, Pat b) { return {Op::Max, {std::move(a), std::move(b)}}; }
Pat min(Pat a, Pat b) { return {Op::Min, {std::move(a), std::move(b)}}; }
Pat fdiv(Pat a, Pat b) { return {Op::Fdiv, {std::move(a), std::move(b)}}; }
Pat cdiv(Pat a, Pat b) { return {Op::Cdiv, {std::move(a), std::move(b)}}; }
Pat cmod(Pat a, Pat b) { return {Op::Cmod, {std::move(a), std::move(b)}}; }
Pat pow(Pat a, Pat b) { return {Op::Pow, {std::move(a), std::move(b)}}; }
Pat lt(Pat a, Pat b) { return {Op::Cmplt, {std::move(a), std::move(b)}}; }
Pat ne(Pat a, Pat b) { return {Op::Cmpne, {std::move(a), std::move(b)}}; }
Pat eq(Pat a, Pat b) { return {Op::Cmpeq, {std::move(a), std::move(b)}}; }
Pat logical_not(Pat x) { return ne(std::move(x), 1); }
Pat where(Pat condition, Pat a, Pat b) {
  return {Op::Where, {std::move(condition), std::move(a), std::move(b)}};
}
Pat mulacc(Pat a, Pat b, Pat c) { return {Op::Mulacc, {std::move(a), std::move(b), std::move(c)}}; }
Pat sqrt(Pat x) { return {Op::Sqrt, {std::move(x)}}; }
Pat reciprocal(Pat x) { return {Op::Reciprocal, {std::move(x)}}; }

Condition operator>(Pat a, Pat b) { return {Condition::Kind::Greater, std::move(a), std::move(b)}; }
Condition operator<(Pat a, Pat b) { return std::move(b) > std::move(a); }
Condition operator>=(Pat a, Pat b) {
  return {Condition::Kind::GreaterEqual, std::move(a), std::move(b)};
}
Condition operator<=(Pat a, Pat b) { return std::move(b) >= std::move(a); }
Condition operator==(Pat a, Pat b) { return {Condition::Kind::Equal, std::move(a), std::move(b)}; }
Condition operator!=(Pat a, Pat b) {
  return {Condition::Kind::NotEqual, std::move(a), std::move(b)};
}
Condition operator&&(Condition a, Condition b) {
  return {Condition::Kind::And, std::move(a), std::move(b)};
}
Condition operator||(Condition a, Condition b) {
  return {Condition::Kind::Or, std::move(a), std::move(b)};
}
Condition in_range(Pat x, Pat bound) { return x >= 0 && bound > x; }
Condition has(Pat x, bool (*test)(const Node&)) { return {std::move(x), test}; }

}  // namespace ignis::ir
