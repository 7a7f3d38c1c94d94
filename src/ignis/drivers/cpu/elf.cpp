#include "ignis/drivers/cpu/elf.h"

#include "ignis/base/math.h"

#include <elf.h>

#include <cstring>
#include <type_traits>

namespace ignis::cpu {
namespace {

// Far above what one kernel needs; keeps a hostile count from taking memory before it is compared with the file.
constexpr uint64_t kMaxObjectBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxAlignment = 4096;

Error malformed(const std::string& sentence) {
  return Error(ErrorCode::InvalidArgument, sentence, "MalformedObject");
}

// Objects are not aligned in memory: each record is copied out.
template <typename T>
T read_at(std::span<const std::byte> bytes, uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// The NUL-terminated text at `offset` of a string table.
Result<std::string_view> read_name(std::span<const std::byte> strings, uint64_t offset) {
  if (offset >= strings.size()) {
    return malformed("Name offset " + std::to_string(offset) + " lies outside a string table of " +
                     std::to_string(strings.size()) + " bytes.");
  }
  const char* begin = reinterpret_cast<const char*>(strings.data()) + offset;
  const void* end = std::memchr(begin, 0, strings.size() - offset);
  if (end == nullptr) return malformed("A name of a string table has no end.");
  return std::string_view(begin, static_cast<size_t>(static_cast<const char*>(end) - begin));
}

Result<Elf64_Ehdr> read_header(std::span<const std::byte> object) {
  if (object.size() < sizeof(Elf64_Ehdr)) {
    return malformed("An object of " + std::to_string(object.size()) +
                     " bytes is shorter than the ELF header of " +
                     std::to_string(sizeof(Elf64_Ehdr)) + ".");
  }
  if (object.size() > kMaxObjectBytes) {
    return malformed("The object has " + std::to_string(object.size()) + " bytes; the limit is " +
                     std::to_string(kMaxObjectBytes) + ".");
  }
  const auto header = read_at<Elf64_Ehdr>(object, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return malformed("The object does not begin with the ELF magic number.");
  }
  const auto unsupported = [](const std::string& what, int have) {
    return Error(ErrorCode::Unsupported,
                 "The object's " + what + " is " + std::to_string(have) + ", which is not handled.",
                 "MalformedObject");
  };
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return unsupported("class", header.e_ident[EI_CLASS]);
  if (header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return unsupported("byte order", header.e_ident[EI_DATA]);
  }
  if (header.e_type != ET_REL) return unsupported("file type", header.e_type);
  if (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64) {
    return unsupported("machine", header.e_machine);
  }
  if (header.e_shentsize != sizeof(Elf64_Shdr)) {
    return malformed("A section header has " + std::to_string(header.e_shentsize) +
                     " bytes instead of " + std::to_string(sizeof(Elf64_Shdr)) + ".");
  }
  // Section counts of 0xff00 and more are written elsewhere; a kernel has a few dozen.
  if (header.e_shnum == 0 || header.e_shnum >= SHN_LORESERVE) {
    return malformed("The object has " + std::to_string(header.e_shnum) + " sections.");
  }
  if (!is_range_inside(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr),
                       object.size())) {
    return malformed("The section table at " + std::to_string(header.e_shoff) + " with " +
                     std::to_string(header.e_shnum) + " entries lies outside the object of " +
                     std::to_string(object.size()) + " bytes.");
  }
  if (header.e_shstrndx >= header.e_shnum) {
    return malformed("Section " + std::to_string(header.e_shstrndx) +
                     " is to hold the names; there are " + std::to_string(header.e_shnum) + ".");
  }
  return header;
}

Result<ElfSection> read_section(std::span<const std::byte> object, const Elf64_Shdr& raw) {
  ElfSection section;
  section.type = raw.sh_type;
  section.flags = raw.sh_flags;
  section.size_bytes = raw.sh_size;
  section.alignment = raw.sh_addralign == 0 ? 1 : raw.sh_addralign;
  section.link = raw.sh_link;
  section.info = raw.sh_info;
  if (!is_power_of_two(section.alignment) || section.alignment > kMaxAlignment) {
    return malformed("A section asks for an alignment of " + std::to_string(section.alignment) +
                     " bytes.");
  }
  if (raw.sh_type == SHT_NULL) {
    section.size_bytes = 0;
    return section;
  }
  if (raw.sh_type == SHT_NOBITS) return section;
  if (!is_range_inside(raw.sh_offset, raw.sh_size, object.size())) {
    return malformed("A section of " + std::to_string(raw.sh_size) + " bytes at " +
                     std::to_string(raw.sh_offset) + " lies outside the object of " +
                     std::to_string(object.size()) + " bytes.");
  }
  section.bytes = object.subspan(raw.sh_offset, raw.sh_size);
  return section;
}

Status read_symbols(ElfObject& elf) {
  const ElfSection* table = nullptr;
  for (const ElfSection& section : elf.sections) {
    if (section.type != SHT_SYMTAB) continue;
    if (table != nullptr) return malformed("The object has two symbol tables.");
    table = &section;
  }
  if (table == nullptr) return malformed("The object has no symbol table.");
  if (table->bytes.size() % sizeof(Elf64_Sym) != 0) {
    return malformed("The symbol table has " + std::to_string(table->bytes.size()) +
                     " bytes, no multiple of " + std::to_string(sizeof(Elf64_Sym)) + ".");
  }
  if (table->link >= elf.sections.size() || elf.sections[table->link].type != SHT_STRTAB) {
    return malformed("The symbol table's names lie in section " + std::to_string(table->link) +
                     ", which is no string table.");
  }
  const std::span<const std::byte> strings = elf.sections[table->link].bytes;
  const size_t count = table->bytes.size() / sizeof(Elf64_Sym);
  elf.symbols.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const auto raw = read_at<Elf64_Sym>(table->bytes, i * sizeof(Elf64_Sym));
    ElfSymbol symbol;
    IGNIS_TRY_ASSIGN(symbol.name, read_name(strings, raw.st_name));
    symbol.type = ELF64_ST_TYPE(raw.st_info);
    symbol.section = raw.st_shndx;
    symbol.value = raw.st_value;
    if (raw.st_shndx < SHN_LORESERVE) {
      if (raw.st_shndx >= elf.sections.size()) {
        return malformed("Symbol '" + std::string(symbol.name) + "' lies in section " +
                         std::to_string(raw.st_shndx) + "; there are " +
                         std::to_string(elf.sections.size()) + ".");
      }
      if (raw.st_shndx != SHN_UNDEF &&
          !is_range_inside(raw.st_value, 0, elf.sections[raw.st_shndx].size_bytes)) {
        return malformed("Symbol '" + std::string(symbol.name) + "' at " +
                         std::to_string(raw.st_value) + " lies outside its section of " +
                         std::to_string(elf.sections[raw.st_shndx].size_bytes) + " bytes.");
      }
    } else if (raw.st_shndx != SHN_ABS && raw.st_shndx != SHN_COMMON) {
      return malformed("Symbol '" + std::string(symbol.name) + "' has the section index " +
                       std::to_string(raw.st_shndx) + ".");
    }
    elf.symbols.push_back(symbol);
  }
  return {};
}

}  // namespace

Result<ElfObject> parse_elf(std::span<const std::byte> object) {
  IGNIS_TRY_ASSIGN(const Elf64_Ehdr header, read_header(object));
  ElfObject elf;
  elf.arch = header.e_machine == EM_X86_64 ? Arch::X86_64 : Arch::AArch64;
  std::vector<uint32_t> names;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const auto raw = read_at<Elf64_Shdr>(object, header.e_shoff + i * sizeof(Elf64_Shdr));
    IGNIS_TRY_ASSIGN(ElfSection section, read_section(object, raw));
    elf.sections.push_back(section);
    names.push_back(raw.sh_name);
  }
  const ElfSection& strings = elf.sections[header.e_shstrndx];
  if (strings.type != SHT_STRTAB) return malformed("The section names are in no string table.");
  for (size_t i = 1; i < elf.sections.size(); ++i) {
    IGNIS_TRY_ASSIGN(elf.sections[i].name, read_name(strings.bytes, names[i]));
  }
  IGNIS_TRY(read_symbols(elf));
  return elf;
}

Result<std::vector<ElfRelocation>> read_relocations(const ElfObject& elf,
                                                    const ElfSection& section) {
  if (section.bytes.size() % sizeof(Elf64_Rela) != 0) {
    return malformed("Relocations '" + std::string(section.name) + "' have " +
                     std::to_string(section.bytes.size()) + " bytes, no multiple of " +
                     std::to_string(sizeof(Elf64_Rela)) + ".");
  }
  const size_t count = section.bytes.size() / sizeof(Elf64_Rela);
  std::vector<ElfRelocation> relocations;
  relocations.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const auto raw = read_at<Elf64_Rela>(section.bytes, i * sizeof(Elf64_Rela));
    ElfRelocation relocation;
    relocation.offset = raw.r_offset;
    relocation.type = static_cast<uint32_t>(ELF64_R_TYPE(raw.r_info));
    relocation.symbol = static_cast<uint32_t>(ELF64_R_SYM(raw.r_info));
    relocation.addend = raw.r_addend;
    if (relocation.symbol >= elf.symbols.size()) {
      return malformed("Relocation " + std::to_string(i) + " names symbol " +
                       std::to_string(relocation.symbol) + "; there are " +
                       std::to_string(elf.symbols.size()) + ".");
    }
    relocations.push_back(relocation);
  }
  return relocations;
}

}  // namespace ignis::cpu
