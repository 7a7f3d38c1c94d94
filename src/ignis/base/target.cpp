#include "ignis/base/target.h"

namespace ignis {
namespace {

const char* arch_name(Arch arch) { return arch == Arch::X86_64 ? "x86_64" : "aarch64"; }

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::Sse2: return "sse2";
    case Isa::Avx2: return "avx2";
    case Isa::Avx512: return "avx512";
    case Isa::Neon: return "neon";
  }
  return "unknown";
}

}  // namespace

std::string Target::name() const { return std::string(arch_name(arch)) + "-" + isa_name(isa); }

Target make_target(Isa isa) {
  Target t;
  t.isa = isa;
  switch (isa) {
    case Isa::Sse2: break;
    case Isa::Avx2:
      t.vector_bytes = 32;
      t.has_fma = true;
      break;
    case Isa::Avx512:
      t.vector_bytes = 64;
      t.vector_registers = 32;
      t.has_fma = true;
      break;
    case Isa::Neon:
      t.arch = Arch::AArch64;
      t.vector_registers = 32;
      t.has_fma = true;
      break;
  }
  return t;
}

}  // namespace ignis
