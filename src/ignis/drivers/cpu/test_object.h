#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::cpu::test {

/// Writes small relocatable objects byte by byte, for the tests of the loader and the device.
class ObjectWriter {
 public:
  explicit ObjectWriter(uint16_t machine = EM_X86_64) : machine_(machine) {
    sections_.push_back({});
    symbols_.push_back({});
    names_.push_back('\0');
  }

  /// Returns the section's index.
  uint16_t section(std::string_view name, uint32_t type, uint64_t flags, std::vector<uint8_t> bytes,
                   uint64_t alignment = 16) {
    Section s;
    s.header.sh_name = name_at(name);
    s.header.sh_type = type;
    s.header.sh_flags = flags;
    s.header.sh_addralign = alignment;
    s.header.sh_size = bytes.size();
    s.bytes = std::move(bytes);
    sections_.push_back(std::move(s));
    return static_cast<uint16_t>(sections_.size() - 1);
  }
  uint16_t text(std::vector<uint8_t> bytes) {
    return section(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, std::move(bytes));
  }
  uint16_t constants(std::vector<uint8_t> bytes) {
    return section(".rodata", SHT_PROGBITS, SHF_ALLOC, std::move(bytes), 64);
  }
  /// Returns the symbol's index.
  uint32_t symbol(std::string_view name, uint16_t section, uint64_t value,
                  uint8_t type = STT_FUNC) {
    Elf64_Sym s = {};
    s.st_name = name_at(name);
    s.st_info = ELF64_ST_INFO(STB_GLOBAL, type);
    s.st_shndx = section;
    s.st_value = value;
    symbols_.push_back(s);
    return static_cast<uint32_t>(symbols_.size() - 1);
  }
  void relocation(uint16_t section, uint64_t offset, uint32_t type, uint32_t symbol,
                  int64_t addend) {
    relocations_.push_back(
        {section, {offset, ELF64_R_INFO(static_cast<uint64_t>(symbol), type), addend}});
  }

  std::vector<std::byte> write() const {
    ObjectWriter all = *this;
    for (uint16_t target = 1; target < sections_.size(); ++target) {
      std::vector<uint8_t> bytes;
      for (const auto& [section, entry] : relocations_) {
        if (section == target) append(bytes, &entry, sizeof(entry));
      }
      if (bytes.empty()) continue;
      const uint16_t index = all.section(".rela", SHT_RELA, 0, std::move(bytes), 8);
      all.sections_[index].header.sh_info = target;
    }
    std::vector<uint8_t> symbols;
    for (const Elf64_Sym& s : all.symbols_) append(symbols, &s, sizeof(s));
    const uint16_t table = all.section(".symtab", SHT_SYMTAB, 0, std::move(symbols), 8);
    const uint16_t strings = all.section(".strtab", SHT_STRTAB, 0, {}, 1);
    all.sections_[strings].bytes.assign(all.names_.begin(), all.names_.end());
    all.sections_[strings].header.sh_size = all.names_.size();
    all.sections_[table].header.sh_link = strings;
    return all.lay_out(strings);
  }

 private:
  struct Section {
    Elf64_Shdr header = {};
    std::vector<uint8_t> bytes;
  };
  struct Relocation {
    uint16_t section;
    Elf64_Rela entry;
  };

  uint32_t name_at(std::string_view name) {
    const size_t at = names_.size();
    names_.append(name).push_back('\0');
    return static_cast<uint32_t>(at);
  }
  static void append(std::vector<uint8_t>& to, const void* bytes, size_t count) {
    const auto* begin = static_cast<const uint8_t*>(bytes);
    to.insert(to.end(), begin, begin + count);
  }
  std::vector<std::byte> lay_out(uint16_t strings) const {
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_REL;
    header.e_machine = machine_;
    header.e_version = EV_CURRENT;
    header.e_ehsize = sizeof(Elf64_Ehdr);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(sections_.size());
    header.e_shstrndx = strings;
    header.e_shoff = sizeof(Elf64_Ehdr);
    std::vector<uint8_t> bytes, data;
    const size_t data_begin = sizeof(Elf64_Ehdr) + sections_.size() * sizeof(Elf64_Shdr);
    append(bytes, &header, sizeof(header));
    for (Section s : sections_) {
      s.header.sh_offset = data_begin + data.size();
      append(bytes, &s.header, sizeof(s.header));
      if (s.header.sh_type != SHT_NOBITS) append(data, s.bytes.data(), s.bytes.size());
    }
    append(bytes, data.data(), data.size());
    std::vector<std::byte> object(bytes.size());
    std::memcpy(object.data(), bytes.data(), bytes.size());
    return object;
  }

  uint16_t machine_;
  std::vector<Section> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::vector<Relocation> relocations_;
  std::string names_;
};

/// x86-64: entry(buffers, part, parts) stores part + 7 as a 64-bit word at buffers[0][part]; 7 is a constant that
/// the code reads through a relocation.
inline ObjectWriter x86_64_add_constant(std::string_view entry = "kernel") {
  ObjectWriter writer;
  const uint16_t text = writer.text({
      0x48, 0x8b, 0x07,                          // mov rax, [rdi]
      0x48, 0x8b, 0x0d, 0x00, 0x00, 0x00, 0x00,  // mov rcx, [rip + constant]
      0x48, 0x01, 0xf1,                          // add rcx, rsi
      0x48, 0x89, 0x0c, 0xf0,                    // mov [rax + 8 * rsi], rcx
      0xc3,                                      // ret
  });
  const uint16_t constants = writer.constants({9, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0});
  const uint32_t table = writer.symbol("table", constants, 0, STT_OBJECT);
  writer.symbol(entry, text, 0);
  writer.relocation(text, 6, R_X86_64_PC32, table, 8 - 4);
  return writer;
}

/// The same for AArch64.
inline ObjectWriter aarch64_add_constant(std::string_view entry = "kernel") {
  ObjectWriter writer(EM_AARCH64);
  const uint16_t text = writer.text({
      0x03, 0x00, 0x40, 0xf9,  // ldr x3, [x0]
      0x04, 0x00, 0x00, 0x90,  // adrp x4, constant
      0x84, 0x00, 0x00, 0x91,  // add x4, x4, :lo12:constant
      0x84, 0x00, 0x40, 0xf9,  // ldr x4, [x4]
      0x84, 0x00, 0x01, 0x8b,  // add x4, x4, x1
      0x64, 0x78, 0x21, 0xf8,  // str x4, [x3, x1, lsl #3]
      0xc0, 0x03, 0x5f, 0xd6,  // ret
  });
  const uint16_t constants = writer.constants({9, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0});
  const uint32_t table = writer.symbol("table", constants, 0, STT_OBJECT);
  writer.symbol(entry, text, 0);
  writer.relocation(text, 4, R_AARCH64_ADR_PREL_PG_HI21, table, 8);
  writer.relocation(text, 8, R_AARCH64_ADD_ABS_LO12_NC, table, 8);
  return writer;
}

/// The same for the machine that runs the test.
inline ObjectWriter host_add_constant(std::string_view entry = "kernel") {
#if defined(__aarch64__)
  return aarch64_add_constant(entry);
#else
  return x86_64_add_constant(entry);
#endif
}

}  // namespace ignis::cpu::test
