#include "ignis/codegen/render/llvm_address.h"

#include <llvm/IR/Constants.h>

#include <algorithm>
namespace ignis::codegen {

using ir::Node;
using llvm::Value;

namespace {

/// More pointers than this in one loop would crowd the general registers out; the others are indexed by the counter.
constexpr size_t kMaxCursors = 6;

/// Strides that an access can scale the counter by itself.
bool is_scale(int64_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

}  // namespace

Value* AddressBuilder::variable_part(int64_t slot, Value* base, int64_t element_bytes,
                                     const Node& offset, bool in_gated_block,
                                     int64_t* constant_bytes) {
  const LinearForm& form = forms_.of(offset);
  std::vector<Term> terms;
  for (const auto& [node, coefficient] : form.terms) {
    terms.push_back({node, atoms_.at(node.id()), coefficient * element_bytes});
  }
  // Outer parts first; of those that change in one loop its counter first, so that the others add to a stepped pointer.
  std::stable_sort(terms.begin(), terms.end(), [&](const Term& x, const Term& y) {
    if (x.atom.depth != y.atom.depth) return x.atom.depth < y.atom.depth;
    const Node counter = scopes_[x.atom.depth].range;
    return (x.node == counter) > (y.node == counter);
  });
  std::vector<int64_t> key{slot};
  *constant_bytes = form.constant * element_bytes;
  return sum(key, base, terms, terms.size(), in_gated_block);
}

Value* AddressBuilder::displace(Value* from, int64_t bytes) {
  if (bytes == 0) return from;
  return b_.CreateConstGEP1_64(b_.getInt8Ty(), from, static_cast<uint64_t>(bytes));
}

/// base + the first `count` terms. Leaves their description in `key`.
Value* AddressBuilder::sum(std::vector<int64_t>& key, Value* base, const std::vector<Term>& terms,
                           size_t count, bool in_gated_block) {
  if (count == 0) return base;
  const Term& last = terms[count - 1];
  Value* const from = sum(key, base, terms, count - 1, in_gated_block);
  key.insert(key.end(), {static_cast<int64_t>(last.node.id()), last.bytes});
  auto& known = scopes_[last.atom.depth].addresses;
  const auto found = known.find(key);
  if (found != known.end()) return found->second;

  OpenScope& scope = scopes_[last.atom.depth];
  const bool is_counter = scope.counter != nullptr && last.atom.value == scope.counter;
  if (is_counter && is_innermost_loop(last.atom.depth) && !is_scale(last.bytes) &&
      scope.cursors.size() < kMaxCursors) {
    return known.emplace(key, add_cursor(scope, from, last)).first->second;
  }
  const llvm::IRBuilderBase::InsertPointGuard restore(b_);
  const bool is_outside = move_to_depth(last.atom.depth);
  Value* const result = advance(from, last);
  if (is_outside || !in_gated_block) known.emplace(key, result);
  return result;
}

bool AddressBuilder::is_innermost_loop(size_t depth) const {
  return std::none_of(scopes_.begin() + static_cast<std::ptrdiff_t>(depth) + 1, scopes_.end(),
                      [](const OpenScope& s) { return s.counter != nullptr; });
}

/// Moves the builder to where code of an outer scope still can be added: before the first block opened inside it.
/// False, and no move, when there is none.
bool AddressBuilder::move_to_depth(size_t depth) {
  for (size_t inner = depth + 1; inner < scopes_.size(); ++inner) {
    if (scopes_[inner].entrance == nullptr) continue;
    b_.SetInsertPoint(scopes_[inner].entrance);
    return true;
  }
  return false;
}

Value* AddressBuilder::advance(Value* from, const Term& term) {
  if (const auto* fixed = llvm::dyn_cast<llvm::ConstantInt>(term.atom.value)) {
    return displace(from, fixed->getSExtValue() * term.bytes);
  }
  if (is_scale(term.bytes)) {
    return b_.CreateGEP(b_.getIntNTy(static_cast<unsigned>(8 * term.bytes)), from, term.atom.value);
  }
  Value* const bytes =
      b_.CreateMul(term.atom.value, b_.getInt64(static_cast<uint64_t>(term.bytes)));
  return b_.CreateGEP(b_.getInt8Ty(), from, bytes);
}

Value* AddressBuilder::add_cursor(OpenScope& loop, Value* from, const Term& term) {
  const llvm::IRBuilderBase::InsertPointGuard restore(b_);
  llvm::BasicBlock* const body = loop.counter->getParent();
  b_.SetInsertPoint(body, body->begin());
  llvm::PHINode* const pointer = b_.CreatePHI(b_.getPtrTy(), 2, "p");
  pointer->addIncoming(from, loop.entrance->getParent());
  loop.cursors.push_back({pointer, term.bytes});
  return pointer;
}

void AddressBuilder::step_cursors(const OpenScope& loop) {
  for (const OpenScope::Cursor& cursor : loop.cursors) {
    Value* const next = displace(cursor.pointer, cursor.step_bytes);
    cursor.pointer->addIncoming(next, b_.GetInsertBlock());
  }
}

}  // namespace ignis::codegen
