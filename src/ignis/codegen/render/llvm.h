#pragma once

#include "ignis/base/target.h"
#include "ignis/codegen/program.h"

#include <memory>

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace ignis::codegen {

/// Turns a verified program into an LLVM module with one external function, entry_symbol(program), of the entry ABI
/// (base/program_image.h). The module has no target triple yet and calls nothing but LLVM intrinsics that the
/// target expands in line.
///
/// Loops come out rotated with one i64 counter from 0, registers as allocas for mem2reg, and every access carries
/// the alias scope of its buffer: a buffer that is stored to shares no memory with any other one.
std::unique_ptr<llvm::Module> render_llvm(const Program& program, const Target& target,
                                          llvm::LLVMContext& context);

}  // namespace ignis::codegen
