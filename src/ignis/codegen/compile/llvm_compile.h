#pragma once

#include "ignis/base/result.h"
#include "ignis/base/target.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
}  // namespace llvm

namespace ignis::codegen {

/// A new code generator for `target`: position-independent, small code model, no fused operations but ours.
/// Thread-safe. Errors: Unsupported when this libLLVM lacks the architecture.
Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const Target& target);

/// Runs the short clean-up list (llvm_compile.cpp) over a module of render_llvm.
void optimize_module(llvm::Module& module, llvm::TargetMachine& machine);

/// Makes a module with one external function of the entry ABI, without a target triple.
using ModuleRenderer = std::function<std::unique_ptr<llvm::Module>(llvm::LLVMContext& context)>;

/// Renders, cleans up and emits an object that refers to nothing outside itself, by this thread's generator: threads share
/// nothing, and calls may run at the same time. `source` may be null; else it gets the LLVM IR. `name` is for errors.
Result<std::vector<std::byte>> generate_object(const std::string& name, const Target& target,
                                               const ModuleRenderer& render, std::string* source);

enum class EmitKind : uint8_t { Object, Assembly };
/// Generates code into a byte string. Errors: Internal.
Result<std::string> emit_module(llvm::Module& module, llvm::TargetMachine& machine, EmitKind kind);

/// Checks that an ELF object refers to no symbol outside itself. Errors: Internal, naming the symbols.
Status check_self_contained(const std::string& object, const std::string& program_name);

}  // namespace ignis::codegen
