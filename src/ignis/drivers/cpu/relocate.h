#pragma once

#include "ignis/base/result.h"
#include "ignis/base/target.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace ignis::cpu {

/// One place to patch. Addresses are those the code will run at.
struct Patch {
  std::span<std::byte> section;  ///< writable bytes of the section that holds the place
  uint64_t offset = 0;           ///< of the place in `section`; may lie outside: apply() checks it
  uint64_t place_address = 0;    ///< address of the place
  uint64_t symbol_address = 0;
  int64_t addend = 0;
  uint32_t type = 0;  ///< R_X86_64_* or R_AARCH64_*
};

/// Applies one relocation. Errors: Unsupported for a kind that position-independent code without external
/// references does not need, InvalidArgument when the place lies outside its section or the value does not fit.
Status apply(Arch arch, const Patch& patch);

}  // namespace ignis::cpu
