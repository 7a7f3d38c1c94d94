#include "ignis/codegen/render/semantics.h"

#include <cmath>

namespace ignis::codegen {

using ir::Op;

std::string entry_symbol(const Program& program) {
  std::string symbol = "ignis_";
  for (const char c : program.name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    symbol += plain ? c : '_';
  }
  return symbol;
}

bool is_never_nan(const ir::Node& node) {
  switch (node.op()) {
    case Op::Const: return !std::isnan(node.const_float());
    case Op::Cast: return !is_float(node.src(0).dtype());
    case Op::Broadcast: return is_never_nan(node.src(0));
    case Op::Stack:
      for (int i = 0; i < node.source_count(); ++i) {
        if (!is_never_nan(node.src(i))) return false;
      }
      return true;
    default: return false;
  }
}

bool is_all_zero_bits(const ir::Node& node) {
  switch (node.op()) {
    case Op::Const: return node.arg().ints[0] == 0;  // a float's bits are those of its double
    case Op::Broadcast: return is_all_zero_bits(node.src(0));
    case Op::Stack:
      for (int i = 0; i < node.source_count(); ++i) {
        if (!is_all_zero_bits(node.src(i))) return false;
      }
      return true;
    default: return false;
  }
}

bool is_branch(const ir::Node& range) {
  const ir::Node end = range.src(0);
  return end.is(Op::Cast) && end.src(0).dtype() == DType::Bool;
}

}  // namespace ignis::codegen
