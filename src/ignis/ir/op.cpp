#include "ignis/ir/op.h"

#include <array>
#include <string>

namespace ignis::ir {
namespace {

struct OpInfo {
  std::string_view name;
  int arity;
  OpClass cls;
};

constexpr std::array<OpInfo, kOpCount> kOps{{
#define IGNIS_IR_OP_INFO(name, arity, cls) {#name, arity, OpClass::cls},
    IGNIS_IR_OPS(IGNIS_IR_OP_INFO)
#undef IGNIS_IR_OP_INFO
}};

}  // namespace

std::string_view to_string(Op op) { return kOps[static_cast<size_t>(op)].name; }
OpClass op_class(Op op) { return kOps[static_cast<size_t>(op)].cls; }
int op_arity(Op op) { return kOps[static_cast<size_t>(op)].arity; }

Result<Op> parse_op(std::string_view text) {
  for (size_t i = 0; i < kOps.size(); ++i) {
    if (kOps[i].name == text) return static_cast<Op>(i);
  }
  return Error(ErrorCode::InvalidArgument,
               "'" + std::string(text) + "' is not the name of an IR operation.");
}

bool is_commutative(Op op) {
  switch (op) {
    case Op::Add:
    case Op::Mul:
    case Op::Max:
    case Op::Min:
    case Op::Cmpne:
    case Op::Cmpeq:
    case Op::Xor:
    case Op::And:
    case Op::Or: return true;
    default: return false;
  }
}

bool is_associative(Op op) {
  switch (op) {
    case Op::Add:
    case Op::Mul:
    case Op::And:
    case Op::Or:
    case Op::Max:
    case Op::Min: return true;
    default: return false;
  }
}

char letter(AxisKind kind) { return "LRtvu"[static_cast<size_t>(kind)]; }

}  // namespace ignis::ir
