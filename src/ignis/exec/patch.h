#pragma once

#include "ignis/runtime/queued_device.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace ignis::exec {

/// A hole in words and where its value stands in a table of values.
struct PatchRecord {
  uint32_t offset_bytes = 0;
  uint32_t width_bytes = 8;  ///< 1, 2, 4 or 8
  uint32_t value = 0;        ///< index into the table
  int64_t addend = 0;
  bool operator==(const PatchRecord&) const = default;
};

/// Stores the low `width_bytes` of `value`, little-endian; touches no other byte.
void store_word(std::byte* at, uint32_t width_bytes, uint64_t value);

/// Stores values[record.value] + record.addend at each record's place: all that a submit program does at a run. Records were
/// checked when they were made; it allocates nothing and calls nothing.
void apply_patches(std::span<const PatchRecord> records, std::span<const uint64_t> values,
                   std::span<std::byte> words);

}  // namespace ignis::exec
