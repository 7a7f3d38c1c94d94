#include "ignis/ir/text.h"

#include <ostream>
#include <sstream>

namespace ignis::ir {
namespace {

struct Infix {
  const char* sign;
  int precedence;
};

// Higher binds tighter.
Infix infix(Op op) {
  switch (op) {
    case Op::Mul: return {"*", 9};
    case Op::Fdiv: return {"/", 9};
    case Op::Floordiv: return {"//", 9};
    case Op::Floormod: return {"%", 9};
    case Op::Add: return {" + ", 8};
    case Op::Sub: return {" - ", 8};
    case Op::Shl: return {" << ", 7};
    case Op::Shr: return {" >> ", 7};
    case Op::And: return {" & ", 6};
    case Op::Xor: return {" ^ ", 5};
    case Op::Or: return {" | ", 4};
    case Op::Cmplt: return {" < ", 3};
    case Op::Cmpne: return {" != ", 3};
    case Op::Cmpeq: return {" == ", 3};
    default: return {nullptr, 0};
  }
}

constexpr int kMaxDepth = 40;
constexpr size_t kMaxLength = 2000;

void print(const Node& n, int outer, int depth, std::string& out) {
  if (!n) {
    out += "null";
    return;
  }
  if (depth > kMaxDepth || out.size() > kMaxLength) {
    out += "…";
    return;
  }
  if (n.is_invalid()) {
    out += "Invalid";
    return;
  }
  if (n.is(Op::Const)) {
    std::ostringstream text;
    text.precision(9);
    if (is_float(n.dtype())) text << n.const_float();
    else if (n.dtype() == DType::Bool) text << (n.const_int() != 0 ? "true" : "false");
    else if (n.dtype() == DType::UInt64) text << static_cast<uint64_t>(n.const_int());
    else text << n.const_int();
    out += text.str();
    return;
  }
  if (n.is(Op::Range)) {
    out += letter(n.axis_kind()) + std::to_string(n.id_arg());
    return;
  }
  if (n.is(Op::Special)) {
    out += n.arg().text;
    return;
  }
  if (n.is(Op::Param)) {
    out += n.arg().text.empty() ? "p" + std::to_string(n.arg().ints[0]) : n.arg().text;
    return;
  }
  if (const Infix in = infix(n.op()); in.sign != nullptr && n.source_count() == 2) {
    const bool parentheses = in.precedence < outer;
    if (parentheses) out += '(';
    print(n.src(0), in.precedence, depth + 1, out);
    out += in.sign;
    print(n.src(1), in.precedence + 1, depth + 1, out);
    if (parentheses) out += ')';
    return;
  }
  if (n.is(Op::Index)) {
    print(n.src(0), 10, depth + 1, out);
    out += '[';
    for (int i = 1; i < n.source_count(); ++i) {
      if (i > 1) out += ", ";
      print(n.src(i), 0, depth + 1, out);
    }
    out += ']';
    return;
  }
  std::string name(to_string(n.op()));
  name[0] = static_cast<char>(std::tolower(name[0]));
  if (n.is(Op::Cast) || n.is(Op::Bitcast)) name += "." + std::string(to_string(n.dtype()));
  if (n.is(Op::Reduce) || n.is(Op::ReduceAxes)) name += "." + std::string(to_string(n.reduce_op()));
  out += name + "(";
  for (int i = 0; i < n.source_count(); ++i) {
    if (i > 0) out += ", ";
    print(n.src(i), 0, depth + 1, out);
  }
  out += ')';
}

}  // namespace

std::string print_expr(const Node& node) {
  std::string text;
  print(node, 0, 0, text);
  return text;
}

std::ostream& operator<<(std::ostream& os, const Node& node) {
  if (!node) return os << "null";
  return os << '%' << node.id() << " = " << print_expr(node) << " : " << to_string(node.dtype());
}

}  // namespace ignis::ir
