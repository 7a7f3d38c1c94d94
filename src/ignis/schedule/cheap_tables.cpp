#include "ignis/schedule/cheap_tables.h"

#include <unordered_map>

namespace ignis::schedule {
namespace {

using ir::Node;
using ir::Op;

// A page of the fastest cache holds what is smaller anyway; beyond the growth, what is stored is next to nothing.
constexpr int64_t kMinElements = int64_t{1} << 12, kMinGrowth = 8;
constexpr int kMaxOperations = 3;

bool is_cheap(Op op) {
  switch (op) {
    case Op::Cast:
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Max:
    case Op::Min:
    case Op::And:
    case Op::Where: return true;
    default: return false;
  }
}

// Moves no element, so stores none.
bool is_index_rule(Op op) {
  return op == Op::Const ||
         (ir::is_movement(op) && op != Op::Gather && op != Op::Cat && op != Op::Contiguous);
}

struct Cost {
  bool reaches_input = false;
  int64_t stored_elements = 0;  // that the node is computed from...
  int operations = 0;           // ...by so many operations an element
};

}  // namespace

std::unordered_set<Node> find_cheap_tables(const std::vector<Node>& order) {
  std::unordered_set<Node> tables;
  std::unordered_map<Node, Cost> costs;
  for (const Node& node : order) {
    Cost& cost = costs[node];
    cost.reaches_input = node.is(Op::Param);
    for (int i = 0; i < node.source_count(); ++i) {
      const Cost& source = costs.at(node.src(i));
      cost.reaches_input |= source.reaches_input;
      cost.stored_elements += source.stored_elements;
      cost.operations += source.operations;
    }
    if (is_index_rule(node.op())) continue;
    const int64_t elements = element_count(node.shape());
    ++cost.operations;
    if (is_cheap(node.op()) && is_int(node.dtype()) && !cost.reaches_input &&
        cost.operations <= kMaxOperations && elements >= kMinElements &&
        elements / kMinGrowth >= cost.stored_elements) {
      if (cost.stored_elements > 0) tables.insert(node);
    } else {
      cost.stored_elements = elements;
      cost.operations = 0;
    }
  }
  return tables;
}

}  // namespace ignis::schedule
