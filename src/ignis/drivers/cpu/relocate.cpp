#include "ignis/drivers/cpu/relocate.h"

#include "ignis/base/math.h"

#include <elf.h>

#include <cstring>
#include <string>

namespace ignis::cpu {
namespace {

Error does_not_fit(const Patch& patch, int64_t value) {
  return Error(ErrorCode::InvalidArgument,
               "Relocation of kind " + std::to_string(patch.type) + " at offset " +
                   std::to_string(patch.offset) + " has the value " + std::to_string(value) +
                   ", which does not fit.",
               "MalformedObject");
}

template <typename T>
T load(const Patch& patch) {
  T value;
  std::memcpy(&value, patch.section.data() + patch.offset, sizeof(T));
  return value;
}

template <typename T>
void store(const Patch& patch, T value) {
  std::memcpy(patch.section.data() + patch.offset, &value, sizeof(T));
}

Status check_place(const Patch& patch, uint64_t size_bytes) {
  if (!is_range_inside(patch.offset, size_bytes, patch.section.size())) {
    return Error(ErrorCode::InvalidArgument,
                 "Relocation at offset " + std::to_string(patch.offset) + " of " +
                     std::to_string(size_bytes) + " bytes lies outside its section of " +
                     std::to_string(patch.section.size()) + " bytes.",
                 "MalformedObject");
  }
  return {};
}

// S + A and S + A - P wrap in 64 bits, as the ELF supplements define them.
uint64_t absolute(const Patch& patch) {
  return patch.symbol_address + static_cast<uint64_t>(patch.addend);
}
int64_t relative(const Patch& patch) {
  return static_cast<int64_t>(absolute(patch) - patch.place_address);
}

Status store_relative32(const Patch& patch) {
  IGNIS_TRY(check_place(patch, 4));
  const int64_t value = relative(patch);
  if (value != static_cast<int32_t>(value)) return does_not_fit(patch, value);
  store(patch, static_cast<int32_t>(value));
  return {};
}

Status store_absolute64(const Patch& patch) {
  IGNIS_TRY(check_place(patch, 8));
  store(patch, absolute(patch));
  return {};
}

Error unsupported(Arch arch, uint32_t type) {
  return Error(ErrorCode::Unsupported,
               "Relocation kind " + std::to_string(type) + " of " +
                   (arch == Arch::X86_64 ? "x86-64" : "AArch64") + " is not handled.",
               "UnknownRelocation");
}

// Source: System V ABI, AMD64 supplement, section 4.4 "Relocation".
Status apply_x86_64(const Patch& patch) {
  switch (patch.type) {
    case R_X86_64_NONE: return {};
    case R_X86_64_PC32:
    case R_X86_64_PLT32: return store_relative32(patch);  // every function is local: no table
    case R_X86_64_64: return store_absolute64(patch);
    case R_X86_64_PC64:
      IGNIS_TRY(check_place(patch, 8));
      store(patch, relative(patch));
      return {};
    default: return unsupported(Arch::X86_64, patch.type);
  }
}

// A load or store whose 12-bit offset counts elements of 2^scale bytes.
Status store_lo12(const Patch& patch, int scale) {
  IGNIS_TRY(check_place(patch, 4));
  const uint64_t low = absolute(patch) & 0xfff;
  if ((low & ((uint64_t{1} << scale) - 1)) != 0)
    return does_not_fit(patch, static_cast<int64_t>(low));
  const auto field = static_cast<uint32_t>(low >> scale);
  store(patch, (load<uint32_t>(patch) & ~(uint32_t{0xfff} << 10)) | field << 10);
  return {};
}

Status store_branch26(const Patch& patch) {
  IGNIS_TRY(check_place(patch, 4));
  const int64_t value = relative(patch);
  if (value % 4 != 0 || value < -(int64_t{1} << 27) || value >= int64_t{1} << 27) {
    return does_not_fit(patch, value);
  }
  const auto field = static_cast<uint32_t>(static_cast<uint64_t>(value) >> 2) & 0x3ffffff;
  store(patch, (load<uint32_t>(patch) & ~uint32_t{0x3ffffff}) | field);
  return {};
}

Status store_adr_page(const Patch& patch) {
  IGNIS_TRY(check_place(patch, 4));
  const uint64_t page_mask = ~uint64_t{0xfff};
  const auto distance =
      static_cast<int64_t>((absolute(patch) & page_mask) - (patch.place_address & page_mask));
  const int64_t pages = distance / 4096;
  if (pages < -(int64_t{1} << 20) || pages >= int64_t{1} << 20)
    return does_not_fit(patch, distance);
  const auto field = static_cast<uint32_t>(pages);
  const uint32_t keep = load<uint32_t>(patch) & ~(uint32_t{3} << 29 | uint32_t{0x7ffff} << 5);
  store(patch, keep | (field & 3) << 29 | (field >> 2 & 0x7ffff) << 5);
  return {};
}

// Source: ELF for the Arm 64-bit Architecture, section 5.7 "Relocation".
Status apply_aarch64(const Patch& patch) {
  switch (patch.type) {
    case R_AARCH64_NONE: return {};
    case R_AARCH64_ABS64: return store_absolute64(patch);
    case R_AARCH64_PREL32: return store_relative32(patch);
    case R_AARCH64_ADR_PREL_PG_HI21: return store_adr_page(patch);
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: return store_lo12(patch, 0);
    case R_AARCH64_LDST16_ABS_LO12_NC: return store_lo12(patch, 1);
    case R_AARCH64_LDST32_ABS_LO12_NC: return store_lo12(patch, 2);
    case R_AARCH64_LDST64_ABS_LO12_NC: return store_lo12(patch, 3);
    case R_AARCH64_LDST128_ABS_LO12_NC: return store_lo12(patch, 4);
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26: return store_branch26(patch);
    default: return unsupported(Arch::AArch64, patch.type);
  }
}

}  // namespace

Status apply(Arch arch, const Patch& patch) {
  return arch == Arch::X86_64 ? apply_x86_64(patch) : apply_aarch64(patch);
}

}  // namespace ignis::cpu
