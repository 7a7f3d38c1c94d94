#include "ignis/exec/patch.h"

#include <cstring>

namespace ignis::exec {

void store_word(std::byte* at, uint32_t width_bytes, uint64_t value) {
  // Sizes that the compiler knows become single stores.
  switch (width_bytes) {
    case 8: std::memcpy(at, &value, 8); return;
    case 4: std::memcpy(at, &value, 4); return;
    default: std::memcpy(at, &value, width_bytes); return;
  }
}

void apply_patches(std::span<const PatchRecord> records, std::span<const uint64_t> values,
                   std::span<std::byte> words) {
  for (const PatchRecord& record : records) {
    store_word(words.data() + record.offset_bytes, record.width_bytes,
               values[record.value] + static_cast<uint64_t>(record.addend));
  }
}

}  // namespace ignis::exec
