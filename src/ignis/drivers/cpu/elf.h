#pragma once

#include "ignis/base/result.h"
#include "ignis/base/target.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::cpu {

/// A section of a relocatable object. `bytes` lies inside the object's bytes.
struct ElfSection {
  std::string_view name;
  uint32_t type = 0;
  uint64_t flags = 0;
  uint64_t size_bytes = 0;
  uint64_t alignment = 1;  ///< power of two, at most 4096
  uint32_t link = 0, info = 0;
  std::span<const std::byte> bytes;  ///< empty for SHT_NOBITS
};

struct ElfSymbol {
  std::string_view name;
  uint8_t type = 0;
  uint16_t section = 0;  ///< SHN_UNDEF, SHN_ABS, SHN_COMMON or an index of ElfObject::sections
  uint64_t value = 0;    ///< offset in the section; checked to lie inside it (its end included)
};

struct ElfRelocation {
  uint64_t offset = 0;
  uint32_t type = 0;
  uint32_t symbol = 0;  ///< index of ElfObject::symbols, checked
  int64_t addend = 0;
};

/// What an ELF64 little-endian relocatable object says, checked: every offset, size, count, index and name lies
/// inside the object. A view: the object's bytes outlive it.
struct ElfObject {
  Arch arch = Arch::X86_64;
  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;
};

/// Reads the headers of `object`, which may hold anything.
/// Errors: InvalidArgument saying what does not fit; Unsupported for another class, byte order, kind or machine.
Result<ElfObject> parse_elf(std::span<const std::byte> object);

/// Reads the entries of a SHT_RELA section of `elf`. Errors: InvalidArgument.
Result<std::vector<ElfRelocation>> read_relocations(const ElfObject& elf,
                                                    const ElfSection& section);

}  // namespace ignis::cpu
