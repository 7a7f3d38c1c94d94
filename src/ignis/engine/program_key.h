#pragma once

#include "ignis/codegen/codegen.h"
#include "ignis/engine/digest.h"
#include "ignis/ir/graph.h"

#include <string>

namespace ignis::engine {

/// Everything besides the kernel that changes the code made of it, as texts that say what differs.
struct CodeIdentity {
  std::string target;     ///< every field of Target: "arch=x86_64 isa=avx2 renderer=llvm …"
  std::string options;    ///< the rest of codegen::Config: "float=finite optimize=1 actions="
  std::string generator;  ///< Ignis' version and a digest of the sources that make code
  std::string compiler;   ///< what turns a program into an object: "llvm 19.1.7"
  bool operator==(const CodeIdentity&) const = default;
};

/// Errors: NotFound when `config` wants a C compiler and there is none.
Result<CodeIdentity> code_identity(const codegen::Config& config);

/// What a program is kept under. Two kernels have equal keys when the code made of them is equal: names, paths and
/// times are no part of it.
struct ProgramKey {
  Digest digest{};  ///< over the cache's format, `kernel` and `code`: the whole key
  Digest kernel{};  ///< over the kernel's nodes
  CodeIdentity code;
};

/// Bumped when the key, a record or the symbols of programs change their form.
inline constexpr uint32_t kProgramFormat = 2;

/// BLAKE2b-256 over the nodes of a kernel in an order that the kernel alone decides.
Digest kernel_digest(const ir::Node& sink);
ProgramKey make_program_key(const Digest& kernel, CodeIdentity code);

/// The entry's symbol before the renderer's prefix: equal kernels of two models have one, different kernels of one
/// model do not.
std::string program_symbol(const Digest& kernel);

/// "0.1.0 3f29…": made at build time from the version and the sources below base, ir and codegen.
const char* generator_id();

}  // namespace ignis::engine
