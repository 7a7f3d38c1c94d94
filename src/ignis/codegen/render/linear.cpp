#include "ignis/codegen/render/linear.h"

#include <algorithm>

namespace ignis::codegen {

using ir::Node;
using ir::Op;

namespace {

int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

/// a + factor * b.
LinearForm combine(const LinearForm& a, const LinearForm& b, int64_t factor) {
  LinearForm sum;
  sum.constant = wrapping_add(a.constant, wrapping_mul(b.constant, factor));
  auto x = a.terms.begin();
  auto y = b.terms.begin();
  while (x != a.terms.end() || y != b.terms.end()) {
    if (y == b.terms.end() || (x != a.terms.end() && x->first.id() < y->first.id())) {
      sum.terms.push_back(*x++);
    } else if (x == a.terms.end() || y->first.id() < x->first.id()) {
      const int64_t coefficient = wrapping_mul(y->second, factor);
      if (coefficient != 0) sum.terms.emplace_back(y->first, coefficient);
      ++y;
    } else {
      const int64_t coefficient = wrapping_add(x->second, wrapping_mul(y->second, factor));
      if (coefficient != 0) sum.terms.emplace_back(x->first, coefficient);
      ++x;
      ++y;
    }
  }
  return sum;
}

}  // namespace

bool LinearForms::is_sum(const Node& n) {
  if (n.dtype() != DType::Int64 || n.lanes() != 1) return false;
  switch (n.op()) {
    case Op::Add:
    case Op::Sub: return true;
    case Op::Mul: return n.src(0).is_const() || n.src(1).is_const();
    case Op::Shl: return n.src(1).is_const();
    default: return false;
  }
}

const LinearForm& LinearForms::of(const Node& n) {
  const auto found = known_.find(n.id());
  if (found != known_.end()) return found->second;
  LinearForm form;
  if (n.is_const()) {
    form.constant = n.const_int();
  } else if (!is_sum(n)) {
    form.terms.emplace_back(n, 1);
  } else if (n.is(Op::Shl)) {
    form = combine({}, of(n.src(0)), static_cast<int64_t>(uint64_t{1} << n.src(1).const_int()));
  } else if (n.is(Op::Mul)) {
    const int constant = n.src(0).is_const() ? 0 : 1;
    form = combine({}, of(n.src(1 - constant)), n.src(constant).const_int());
  } else {
    form = combine(of(n.src(0)), of(n.src(1)), n.is(Op::Sub) ? -1 : 1);
  }
  return known_.emplace(n.id(), std::move(form)).first->second;
}

std::vector<bool> find_used_values(const Program& program) {
  std::vector<bool> used(program.graph->size(), false);
  // An atom of an address is used; a sum in an address passes the question on to its operands.
  const auto use_in_address = [&](const Node& n) {
    if (!LinearForms::is_sum(n)) used[n.id()] = true;
  };
  for (auto at = program.list.rbegin(); at != program.list.rend(); ++at) {
    const Node& n = *at;
    const bool in_address_only = n.is(Op::Index) || (LinearForms::is_sum(n) && !used[n.id()]);
    for (int i = 0; i < n.source_count(); ++i) {
      if (in_address_only) {
        use_in_address(n.src(i));
      } else {
        used[n.src(i).id()] = true;
      }
    }
  }
  return used;
}

}  // namespace ignis::codegen
