#pragma once

#include "ignis/ir/graph.h"

#include <cstdint>
#include <initializer_list>
#include <span>

namespace ignis::codegen {

/// A scalar expression under construction: makes the formulas of the lowerings read as formulas. Operands of one
/// operation have one dtype; numbers take it. Nothing is simplified, so what is written is what is computed.
class Expr {
 public:
  Expr() = default;
  Expr(ir::Graph& graph, const ir::Node& node) : graph_(&graph), node_(node) {}

  ir::Graph& graph() const { return *graph_; }
  const ir::Node& node() const { return node_; }
  DType dtype() const { return node_.dtype(); }

  /// A constant of this expression's dtype.
  Expr number(double value) const { return {*graph_, graph_->constant_float(dtype(), value)}; }
  Expr integer(int64_t value) const { return {*graph_, graph_->constant(dtype(), value)}; }
  Expr of(DType dtype, int64_t value) const { return {*graph_, graph_->constant(dtype, value)}; }

  Expr cast(DType to) const { return {*graph_, graph_->cast(node_, to)}; }
  Expr bitcast(DType to) const { return make(ir::Op::Bitcast, to, {*this}); }
  /// The bits of a float as a signed integer of its width, and back.
  Expr bits() const { return bitcast(dtype() == DType::Float64 ? DType::Int64 : DType::Int32); }
  Expr as_float() const {
    return bitcast(dtype() == DType::Int64 || dtype() == DType::UInt64 ? DType::Float64
                                                                       : DType::Float32);
  }

  Expr make(ir::Op op, DType to, std::initializer_list<Expr> sources) const;
  Expr binary(ir::Op op, const Expr& other) const {
    return make(op, ir::is_comparison(op) ? DType::Bool : dtype(), {*this, other});
  }
  Expr unary(ir::Op op) const { return make(op, dtype(), {*this}); }
  Expr shl(int count) const { return binary(ir::Op::Shl, integer(count)); }
  Expr shr(int count) const { return binary(ir::Op::Shr, integer(count)); }

 private:
  ir::Graph* graph_ = nullptr;
  ir::Node node_;
};

inline Expr Expr::make(ir::Op op, DType to, std::initializer_list<Expr> sources) const {
  ir::Node nodes[3];
  size_t count = 0;
  for (const Expr& source : sources) nodes[count++] = source.node_;
  return {*graph_, graph_->make(op, to, std::span<const ir::Node>(nodes, count))};
}

inline Expr operator+(const Expr& a, const Expr& b) { return a.binary(ir::Op::Add, b); }
inline Expr operator-(const Expr& a, const Expr& b) { return a.binary(ir::Op::Sub, b); }
inline Expr operator*(const Expr& a, const Expr& b) { return a.binary(ir::Op::Mul, b); }
inline Expr operator/(const Expr& a, const Expr& b) { return a.binary(ir::Op::Fdiv, b); }
inline Expr operator&(const Expr& a, const Expr& b) { return a.binary(ir::Op::And, b); }
inline Expr operator|(const Expr& a, const Expr& b) { return a.binary(ir::Op::Or, b); }
inline Expr operator^(const Expr& a, const Expr& b) { return a.binary(ir::Op::Xor, b); }
inline Expr operator<(const Expr& a, const Expr& b) { return a.binary(ir::Op::Cmplt, b); }
inline Expr operator>(const Expr& a, const Expr& b) { return b < a; }
inline Expr equal(const Expr& a, const Expr& b) { return a.binary(ir::Op::Cmpeq, b); }
inline Expr differ(const Expr& a, const Expr& b) { return a.binary(ir::Op::Cmpne, b); }
inline Expr operator-(const Expr& a) { return a.unary(ir::Op::Neg); }
inline Expr operator!(const Expr& a) { return a ^ a.integer(1); }
inline Expr max(const Expr& a, const Expr& b) { return a.binary(ir::Op::Max, b); }
inline Expr min(const Expr& a, const Expr& b) { return a.binary(ir::Op::Min, b); }
inline Expr where(const Expr& condition, const Expr& a, const Expr& b) {
  return condition.make(ir::Op::Where, a.dtype(), {condition, a, b});
}
/// a * b + c in one instruction where the target has it; formulas hold their bounds either way.
inline Expr mulacc(const Expr& a, const Expr& b, const Expr& c) {
  return a.make(ir::Op::Mulacc, a.dtype(), {a, b, c});
}
/// Horner's rule, highest coefficient first.
inline Expr polynomial(const Expr& x, std::span<const double> coefficients) {
  Expr value;
  for (const double c : coefficients) {
    value = value.node() ? mulacc(value, x, x.number(c)) : x.number(c);
  }
  return value;
}
inline Expr polynomial(const Expr& x, std::initializer_list<double> coefficients) {
  return polynomial(x, std::span<const double>(coefficients.begin(), coefficients.size()));
}
/// |x| of a float: the sign bit cleared.
inline Expr magnitude(const Expr& x) {
  const Expr bits = x.bits();
  return (bits & bits.integer(x.dtype() == DType::Float64 ? INT64_MAX : INT32_MAX)).as_float();
}
/// `x`, which has no sign, with the sign bit of `sign`.
inline Expr with_sign_of(const Expr& x, const Expr& sign) {
  const Expr bits = sign.bits();
  return (x.bits() | (bits & bits.integer(x.dtype() == DType::Float64 ? INT64_MIN : INT32_MIN)))
      .as_float();
}

}  // namespace ignis::codegen
