#pragma once

#include "ignis/base/program_image.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ignis {

/// One store of a submit program: the low `width_bytes` of values[value] + addend, little-endian.
struct WordStore {
  uint32_t words = 0;         ///< number of the block of words it goes to
  uint32_t offset_bytes = 0;  ///< in that block
  uint32_t value = 0;         ///< index into the values
  uint8_t width_bytes = 8;    ///< 1, 2, 4 or 8
  bool is_remote = false;     ///< the block lies behind a window: stored by RemoteStores only
  int64_t addend = 0;
  auto operator<=>(const WordStore&) const = default;
};

/// A kind of store, 0 … 7: its width, and whether it is remote.
inline constexpr int kStoreKinds = 8;
constexpr int store_kind(uint32_t width_bytes, bool is_remote) {
  const int width = width_bytes == 1 ? 0 : width_bytes == 2 ? 1 : width_bytes == 4 ? 2 : 3;
  return width + (is_remote ? 4 : 0);
}

/// What a submit program's code is made of. Short lists of stores stand in the code one after the other; for long ones the
/// code is a loop for each kind over a table that it is handed, so that neither the code nor the time to compile it grows with
/// the list.
struct SubmitCode {
  std::vector<WordStore> stores;  ///< in the order of the code; empty when it is rolled
  uint8_t kinds = 0;              ///< rolled: bit k for kind k
  bool operator==(const SubmitCode&) const = default;
};

/// How a submit program stores into memory that the host reaches through a window only. Generated code calls it: C layout.
struct RemoteStores {
  void (*store)(void* context, uint64_t words, uint64_t offset_bytes, uint64_t value,
                uint64_t width_bytes) = nullptr;
  void* context = nullptr;
};

/// A row of a rolled program's table. C layout.
struct StoreRow {
  uint64_t place = 0;  ///< an address, or for a remote store words << 32 | offset_bytes
  uint64_t value = 0;
  int64_t addend = 0;
};

/// A rolled program's table: the rows of kind k are [end[k - 1], end[k]), of kind 0 from 0. C layout.
struct StoreTable {
  const StoreRow* rows = nullptr;
  uint64_t end[kStoreKinds] = {};
};

/// A submit program is a ProgramImage with four buffers, whatever the batch holds; it calls nothing but RemoteStores.
enum class SubmitBuffer : uint8_t {
  Values,  ///< const uint64_t*: input addresses, what was announced on each device, variables
  Words,   ///< std::byte* const*: where each block lies; null for a remote one
  Remote,  ///< const RemoteStores*
  Table,   ///< const StoreTable*; not read unless the program is rolled
};
inline constexpr int kSubmitBuffers = 4;

}  // namespace ignis
