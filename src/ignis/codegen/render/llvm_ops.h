#pragma once

// Elementwise operations of a program as LLVM instructions. Included by the LLVM renderer's sources only: it shows
// LLVM's headers.

#include "ignis/base/target.h"
#include "ignis/ir/node.h"

#include <llvm/IR/IRBuilder.h>

namespace ignis::codegen {

/// Type of a value in a register: i1 for bool; a vector for more than one lane.
llvm::Type* register_type(llvm::LLVMContext& context, DType dtype, int lanes);
/// Type of the same value in memory: i8 for bool.
llvm::Type* memory_type(llvm::LLVMContext& context, DType dtype, int lanes);

/// Constant of a Const node.
llvm::Constant* constant_value(llvm::LLVMContext& context, const ir::Node& node);

/// One elementwise node (ir::is_elementwise) on operands that are rendered already.
llvm::Value* render_elementwise(llvm::IRBuilder<>& builder, const Target& target,
                                const ir::Node& node, llvm::ArrayRef<llvm::Value*> operands);

}  // namespace ignis::codegen
