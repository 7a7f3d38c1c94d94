#pragma once

// Addresses of a program's memory accesses as LLVM pointers. Included by the LLVM renderer's sources only.

#include "ignis/codegen/program.h"
#include "ignis/codegen/render/linear.h"

#include <llvm/IR/IRBuilder.h>

#include <map>
#include <unordered_map>
#include <vector>

namespace ignis::codegen {

/// One scope of the list that is open where code is being written: a loop, a branch, or the body of a range that runs
/// once and needs no block of its own.
struct OpenScope {
  ir::Node range;
  llvm::PHINode* counter = nullptr;       ///< null: not a loop
  llvm::Value* end = nullptr;             ///< of a loop
  llvm::Instruction* entrance = nullptr;  ///< the branch into it; null: it has no block
  llvm::BasicBlock* exit = nullptr;       ///< null: it has no block

  /// A pointer that moves on by a constant in each iteration of a loop.
  struct Cursor {
    llvm::PHINode* pointer;
    int64_t step_bytes;
  };
  std::vector<Cursor> cursors;
  /// Addresses made at this depth, by (slot, atom, coefficient, …).
  std::map<std::vector<int64_t>, llvm::Value*> addresses;
};

/// Makes the address of an access: parts that do not change in a loop are computed before it, the part that moves with
/// the innermost loop's counter becomes a pointer that is stepped, and the constant part is left to the access's own
/// displacement. This is strength reduction, done where the sums are still known: LLVM's own pass for it searches the
/// same thing at up to half of the whole compile time, and is switched off (compile/llvm_compile.cpp).
class AddressBuilder {
 public:
  /// `scopes[0]` stands for the function's body.
  AddressBuilder(llvm::IRBuilder<>& builder, std::vector<OpenScope>& scopes)
      : b_(builder), scopes_(scopes) {}

  /// Notes that a node gets its value now, in the innermost open scope.
  void define(const ir::Node& node, llvm::Value* value) {
    atoms_[node.id()] = {value, scopes_.size() - 1};
  }

  /// Address of element `offset` of the buffer at `base`, all but its constant part, which `constant_bytes` receives.
  /// `in_gated_block`: code written now is not always run before what follows in its scope.
  llvm::Value* variable_part(int64_t slot, llvm::Value* base, int64_t element_bytes,
                             const ir::Node& offset, bool in_gated_block, int64_t* constant_bytes);
  /// from + bytes.
  llvm::Value* displace(llvm::Value* from, int64_t bytes);
  /// Closes the innermost loop's pointers; the builder stands at the end of its last block.
  void step_cursors(const OpenScope& loop);

 private:
  struct Atom {
    llvm::Value* value = nullptr;
    size_t depth = 0;
  };
  /// A coefficient in bytes times an atom.
  struct Term {
    ir::Node node;
    Atom atom;
    int64_t bytes;
  };

  llvm::Value* sum(std::vector<int64_t>& key, llvm::Value* base, const std::vector<Term>& terms,
                   size_t count, bool in_gated_block);
  llvm::Value* advance(llvm::Value* from, const Term& term);
  llvm::Value* add_cursor(OpenScope& loop, llvm::Value* from, const Term& term);
  bool is_innermost_loop(size_t depth) const;
  bool move_to_depth(size_t depth);

  llvm::IRBuilder<>& b_;
  std::vector<OpenScope>& scopes_;
  LinearForms forms_;
  std::unordered_map<uint32_t, Atom> atoms_;
};

}  // namespace ignis::codegen
