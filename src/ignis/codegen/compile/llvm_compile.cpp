#include "ignis/codegen/compile/llvm_compile.h"

#include "ignis/codegen/codegen.h"
#include "ignis/codegen/render/llvm.h"
#include "ignis/codegen/render/semantics.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/IR/PassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>

#include <mutex>
#include <span>

namespace ignis::codegen {

namespace {

/// Leaves loop strength reduction out of the code generator, which only a global setting of LLVM does: the renderer
/// steps pointers itself (render/llvm_address.h). The pass took half of the code generator's time (518 against 285 ms
/// for the 32 kernels of a MobileNet v2, one core).
///
/// Tried and not done: without the scheduler before register allocation the code generator is 8% faster, but loads that
/// it clusters spill more (10 inner loops of a ResNet-18 for AVX2 instead of 2).
void leave_out_strength_reduction() {
  llvm::StringMap<llvm::cl::Option*>& options = llvm::cl::getRegisteredOptions();
  const auto found = options.find("disable-lsr");
  if (found != options.end()) found->second->addOccurrence(0, "disable-lsr", "true");
}

void initialize_targets_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
    leave_out_strength_reduction();
  });
}

/// The processor levels of the x86-64 ABI: what every machine with the named vector set has in practice.
const char* cpu_name(const Target& target) {
  switch (target.isa) {
    case Isa::Sse2: return "x86-64";
    case Isa::Avx2: return "x86-64-v3";
    case Isa::Avx512: return "x86-64-v4";
    case Isa::Neon: return "generic";
  }
  return "";
}

Status add_emit_passes(llvm::legacy::PassManager& passes, llvm::TargetMachine& machine,
                       llvm::raw_pwrite_stream& out, EmitKind kind) {
  const auto type = kind == EmitKind::Object ? llvm::CodeGenFileType::ObjectFile
                                             : llvm::CodeGenFileType::AssemblyFile;
  if (!machine.addPassesToEmitFile(passes, out, nullptr, type, /*DisableVerify=*/true)) return {};
  return Error(ErrorCode::Internal, "LLVM cannot emit this kind of file for the target.");
}

std::string feature_list(const Target& target) {
  if (target.arch == Arch::X86_64 && target.isa != Isa::Sse2 && !target.has_fma) return "-fma";
  return "";
}

/// All that can be used again from one program to the next: setting it up is most of the time of a small kernel.
class CodeGenerator {
 public:
  static Result<std::unique_ptr<CodeGenerator>> create(const Target& target, EmitKind kind) {
    IGNIS_TRY_ASSIGN(auto machine, make_target_machine(target));
    auto generator = std::unique_ptr<CodeGenerator>(new CodeGenerator(target, std::move(machine)));
    IGNIS_TRY(add_emit_passes(generator->passes_, *generator->machine_, generator->out_, kind));
    return generator;
  }

  bool is_for(const Target& target) const {
    return target.arch == arch_ && target.isa == isa_ && target.has_fma == has_fma_;
  }
  /// True when the context has collected so many types and constants that a new one is due.
  bool is_worn() const { return uses_ >= 256; }

  /// Renders, cleans up and emits.
  std::string generate(const ModuleRenderer& render, std::string* source) {
    ++uses_;
    const std::unique_ptr<llvm::Module> module = render(context_);
    module->setTargetTriple(machine_->getTargetTriple().str());
    module->setDataLayout(machine_->createDataLayout());
    module->setPICLevel(llvm::PICLevel::SmallPIC);
    optimize_module(*module, *machine_);
    if (source != nullptr) {
      llvm::raw_string_ostream text(*source);
      module->print(text, nullptr);
    }
    bytes_.clear();
    passes_.run(*module);
    return std::string(bytes_.begin(), bytes_.end());
  }

 private:
  CodeGenerator(const Target& target, std::unique_ptr<llvm::TargetMachine> machine)
      : arch_(target.arch),
        isa_(target.isa),
        has_fma_(target.has_fma),
        machine_(std::move(machine)) {}

  Arch arch_;
  Isa isa_;
  bool has_fma_;
  int uses_ = 0;
  std::unique_ptr<llvm::TargetMachine> machine_;
  llvm::LLVMContext context_;
  llvm::SmallVector<char, 0> bytes_;
  llvm::raw_svector_ostream out_{bytes_};
  llvm::legacy::PassManager passes_;  // writes to out_
};

ModuleRenderer renderer_of(const Program& program, const Target& target) {
  return [&](llvm::LLVMContext& context) { return render_llvm(program, target, context); };
}

}  // namespace

Result<std::vector<std::byte>> generate_object(const std::string& name, const Target& target,
                                               const ModuleRenderer& render, std::string* source) {
  static thread_local std::unique_ptr<CodeGenerator> generator;
  if (generator == nullptr || !generator->is_for(target) || generator->is_worn()) {
    IGNIS_TRY_ASSIGN(generator, CodeGenerator::create(target, EmitKind::Object));
  }
  const std::string object = generator->generate(render, source);
  IGNIS_TRY(check_self_contained(object, name));
  const auto bytes = std::as_bytes(std::span(object));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const Target& target) {
  initialize_targets_once();
  const std::string triple =
      target.arch == Arch::X86_64 ? "x86_64-unknown-linux-gnu" : "aarch64-unknown-linux-gnu";
  std::string message;
  const llvm::Target* const llvm_target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (llvm_target == nullptr) {
    return Error(ErrorCode::Unsupported,
                 "LLVM has no code generator for " + triple + ": " + message);
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // only Mulacc is fused
  options.TrapUnreachable = false;
  std::unique_ptr<llvm::TargetMachine> machine(llvm_target->createTargetMachine(
      triple, cpu_name(target), feature_list(target), options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (machine == nullptr) {
    return Error(ErrorCode::Unsupported, "LLVM makes no target machine for " + target.name());
  }
  return machine;
}

void optimize_module(llvm::Module& module, llvm::TargetMachine& machine) {
  // The analyses of these passes only: setting up all of LLVM's costs more than running them.
  llvm::FunctionAnalysisManager analyses;
  llvm::TargetLibraryInfoImpl no_library(machine.getTargetTriple());
  no_library.disableAllFunctions();
  analyses.registerPass([] { return llvm::PassInstrumentationAnalysis(); });
  analyses.registerPass([] { return llvm::DominatorTreeAnalysis(); });
  analyses.registerPass([] { return llvm::PostDominatorTreeAnalysis(); });
  analyses.registerPass([] { return llvm::AssumptionAnalysis(); });
  analyses.registerPass([&] { return llvm::TargetLibraryAnalysis(no_library); });
  analyses.registerPass([&] { return machine.getTargetIRAnalysis(); });

  // No loop idioms (they would call memset), no unrolling and no vectorisers: those are scheduling actions. Code that
  // does not change in a loop stands before it already; moving it out here changed no kernel and took 5 ms of 28.
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::PromotePass());   // registers become values, accumulators loop phis
  passes.addPass(llvm::EarlyCSEPass());  // shares base addresses and broadcasts
  passes.addPass(llvm::ADCEPass());
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) passes.run(function, analyses);
  }
}

Result<std::string> emit_module(llvm::Module& module, llvm::TargetMachine& machine, EmitKind kind) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  IGNIS_TRY(add_emit_passes(passes, machine, out, kind));
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

Status check_self_contained(const std::string& object, const std::string& program_name) {
  auto file = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(object), program_name));
  if (!file) {
    return Error(ErrorCode::Internal, "The object of '" + program_name +
                                          "' is not readable: " + llvm::toString(file.takeError()));
  }
  std::string missing;
  for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) {
      llvm::consumeError(flags.takeError());
      llvm::consumeError(name.takeError());
      continue;
    }
    // The null entry of the symbol table is undefined and has no name.
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) != 0 && !name->empty()) {
      missing += missing.empty() ? "" : ", ";
      missing += name->str();
    }
  }
  if (missing.empty()) return Status::ok();
  return Error(ErrorCode::Internal,
               "The object of '" + program_name + "' refers to outside symbols: " + missing + ".");
}

std::string compiler_id() { return "llvm " LLVM_VERSION_STRING; }

Result<ProgramImage> compile_llvm(const Program& program, const Target& target, bool keep_source) {
  ProgramImage image;
  image.name = entry_symbol(program);
  image.buffer_count = program.buffer_count;
  IGNIS_TRY(verify_program(program));
  IGNIS_TRY_ASSIGN(image.object, generate_object(program.name, target, renderer_of(program, target),
                                                 keep_source ? &image.source : nullptr));
  return image;
}

Result<std::string> assemble_llvm(const Program& program, const Target& target) {
  IGNIS_TRY(verify_program(program));
  IGNIS_TRY_ASSIGN(const auto generator, CodeGenerator::create(target, EmitKind::Assembly));
  return generator->generate(renderer_of(program, target), nullptr);
}

}  // namespace ignis::codegen
