#include "ignis/drivers/cpu/loader.h"

#include "ignis/base/math.h"
#include "ignis/drivers/cpu/elf.h"
#include "ignis/drivers/cpu/relocate.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace ignis::cpu {
namespace {

// Code and constants of one kernel are some kilobytes; what exceeds this is no kernel of ours.
constexpr uint64_t kMaxImageBytes = uint64_t{256} << 20;

enum class Place : uint8_t { Nowhere, Text, Constants };

// Where each section of an object goes, as offsets from the mapping's start.
struct ImagePlan {
  std::vector<Place> places;
  std::vector<uint64_t> offsets;
  uint64_t text_bytes = 0;   // whole pages
  uint64_t total_bytes = 0;  // whole pages
};

Error malformed(const std::string& sentence) {
  return Error(ErrorCode::InvalidArgument, sentence, "MalformedObject");
}

uint64_t page_bytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

Result<Place> place_of(const ElfSection& section) {
  if ((section.flags & SHF_ALLOC) == 0 || section.size_bytes == 0) return Place::Nowhere;
  // Unwind tables and notes: nothing unwinds through a kernel.
  if (section.name.starts_with(".eh_frame") || section.type == SHT_NOTE) return Place::Nowhere;
#ifdef SHT_X86_64_UNWIND
  if (section.type == SHT_X86_64_UNWIND) return Place::Nowhere;
#endif
  const bool writable = (section.flags & (SHF_WRITE | SHF_TLS)) != 0;
  if (writable || section.type != SHT_PROGBITS) {
    return Error(ErrorCode::Unsupported,
                 "Section '" + std::string(section.name) + "' of " +
                     std::to_string(section.size_bytes) +
                     " bytes is writable or no plain data; a program has code and constants only.",
                 "UnknownSection");
  }
  return (section.flags & SHF_EXECINSTR) != 0 ? Place::Text : Place::Constants;
}

Result<ImagePlan> plan_image(const ElfObject& elf) {
  ImagePlan plan;
  plan.offsets.resize(elf.sections.size());
  for (const ElfSection& section : elf.sections) {
    IGNIS_TRY_ASSIGN(const Place place, place_of(section));
    plan.places.push_back(place);
  }
  uint64_t at = 0;
  for (const Place place : {Place::Text, Place::Constants}) {
    for (size_t i = 0; i < elf.sections.size(); ++i) {
      if (plan.places[i] != place) continue;
      at = align_up(at, elf.sections[i].alignment);
      plan.offsets[i] = at;
      at += elf.sections[i]
                .size_bytes;  // at most the object's size each: no overflow before the check
      if (at > kMaxImageBytes) {
        return malformed("The program takes more than " + std::to_string(kMaxImageBytes) +
                         " bytes.");
      }
    }
    at = align_up(at, page_bytes());
    if (place == Place::Text) plan.text_bytes = at;
  }
  plan.total_bytes = at;
  if (plan.text_bytes == 0) return malformed("The object has no code.");
  return plan;
}

// Applies the relocations of one section; collects undefined names instead of stopping at the first.
Status relocate_section(const ElfObject& elf, const ImagePlan& plan, std::byte* base,
                        const ElfSection& table, std::set<std::string>& undefined) {
  const size_t target = table.info;
  IGNIS_TRY_ASSIGN(const std::vector<ElfRelocation> relocations, read_relocations(elf, table));
  const uint64_t base_address = reinterpret_cast<uint64_t>(base);
  for (const ElfRelocation& relocation : relocations) {
    const ElfSymbol& symbol = elf.symbols[relocation.symbol];
    if (relocation.type == R_X86_64_NONE) continue;  // 0 on both machines
    if (symbol.section == SHN_UNDEF || symbol.section == SHN_COMMON) {
      undefined.insert(symbol.name.empty() ? "(no name)" : std::string(symbol.name));
      continue;
    }
    if (symbol.section == SHN_ABS || plan.places[symbol.section] == Place::Nowhere) {
      return malformed("A relocation refers to '" + std::string(symbol.name) +
                       "', which is not part of the loaded program.");
    }
    Patch patch;
    patch.section = {base + plan.offsets[target], elf.sections[target].size_bytes};
    patch.offset = relocation.offset;
    patch.place_address = base_address + plan.offsets[target] + relocation.offset;
    patch.symbol_address = base_address + plan.offsets[symbol.section] + symbol.value;
    patch.addend = relocation.addend;
    patch.type = relocation.type;
    IGNIS_TRY(apply(elf.arch, patch));
  }
  return {};
}

Status relocate(const ElfObject& elf, const ImagePlan& plan, std::byte* base) {
  std::set<std::string> undefined;
  for (const ElfSection& table : elf.sections) {
    if (table.type != SHT_RELA && table.type != SHT_REL) continue;
    if (table.info >= elf.sections.size()) {
      return malformed("Relocations '" + std::string(table.name) + "' are for section " +
                       std::to_string(table.info) + "; there are " +
                       std::to_string(elf.sections.size()) + ".");
    }
    if (plan.places[table.info] == Place::Nowhere) continue;
    if (table.type == SHT_REL) {
      return Error(ErrorCode::Unsupported, "The object has relocations without addends.",
                   "UnknownRelocation");
    }
    IGNIS_TRY(relocate_section(elf, plan, base, table, undefined));
  }
  if (undefined.empty()) return {};
  std::string names;
  for (const std::string& name : undefined) names += (names.empty() ? "'" : ", '") + name + "'";
  return Error(ErrorCode::Unsupported,
               "The program refers to " + names + ", which it does not define.", "UndefinedSymbol");
}

Result<uint64_t> find_entry(const ElfObject& elf, const ImagePlan& plan, std::string_view entry) {
  for (const ElfSymbol& symbol : elf.symbols) {
    if (symbol.name != entry || symbol.section == SHN_UNDEF || symbol.section >= SHN_LORESERVE) {
      continue;
    }
    if (symbol.type != STT_FUNC && symbol.type != STT_NOTYPE) continue;
    if (plan.places[symbol.section] != Place::Text ||
        symbol.value >= elf.sections[symbol.section].size_bytes) {
      return malformed("Entry '" + std::string(entry) + "' does not lie in the program's code.");
    }
    return plan.offsets[symbol.section] + symbol.value;
  }
  return malformed("The object does not define the entry '" + std::string(entry) + "'.");
}

}  // namespace

Arch host_arch() {
#if defined(__aarch64__)
  return Arch::AArch64;
#else
  return Arch::X86_64;
#endif
}

Result<LoadedObject> LoadedObject::load(std::span<const std::byte> object, std::string_view entry) {
  IGNIS_TRY_ASSIGN(const ElfObject elf, parse_elf(object));
  IGNIS_TRY_ASSIGN(const ImagePlan plan, plan_image(elf));
  LoadedObject loaded;
  loaded.arch_ = elf.arch;
  loaded.text_bytes_ = plan.text_bytes;
  loaded.total_bytes_ = plan.total_bytes;
  IGNIS_TRY_ASSIGN(loaded.entry_, find_entry(elf, plan, entry));

  void* memory =
      mmap(nullptr, plan.total_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return Error(ErrorCode::OutOfMemory,
                 "The program's " + std::to_string(plan.total_bytes) + " bytes cannot be mapped.");
  }
  loaded.base_ = static_cast<std::byte*>(memory);  // from here on the destructor unmaps
  for (size_t i = 0; i < elf.sections.size(); ++i) {
    if (plan.places[i] == Place::Nowhere) continue;
    std::memcpy(loaded.base_ + plan.offsets[i], elf.sections[i].bytes.data(),
                elf.sections[i].bytes.size());
  }
  IGNIS_TRY(relocate(elf, plan, loaded.base_));

  // One protection change each: the pages go from writable to their final right and never back.
  const int text_rights = loaded.is_executable() ? PROT_READ | PROT_EXEC : PROT_READ;
  const uint64_t constant_bytes = plan.total_bytes - plan.text_bytes;
  if (mprotect(loaded.base_, plan.text_bytes, text_rights) != 0 ||
      (constant_bytes != 0 &&
       mprotect(loaded.base_ + plan.text_bytes, constant_bytes, PROT_READ) != 0)) {
    return Error(ErrorCode::OutOfMemory, "The program's memory cannot be made executable.");
  }
  __builtin___clear_cache(reinterpret_cast<char*>(loaded.base_),
                          reinterpret_cast<char*>(loaded.base_ + plan.text_bytes));
  return loaded;
}

LoadedObject& LoadedObject::operator=(LoadedObject other) noexcept {
  std::swap(base_, other.base_);
  std::swap(text_bytes_, other.text_bytes_);
  std::swap(total_bytes_, other.total_bytes_);
  std::swap(entry_, other.entry_);
  std::swap(arch_, other.arch_);
  return *this;
}

LoadedObject::~LoadedObject() {
  if (base_ != nullptr) munmap(base_, total_bytes_);
}

Entry LoadedObject::entry() const {
  IGNIS_CHECK(base_ != nullptr && is_executable());
  return reinterpret_cast<Entry>(base_ + entry_);
}

}  // namespace ignis::cpu
