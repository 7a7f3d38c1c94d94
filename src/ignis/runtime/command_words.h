#pragma once

#include "ignis/runtime/queued_device.h"

#include <cstdint>

namespace ignis::runtime {

/// Appends little-endian words to a queue's commands; words that are not known leave zeros and a patch.
class CommandWords {
 public:
  explicit CommandWords(EncodedQueue& to) : to_(to) {}

  void u32(uint32_t value) { constant(value, 4); }
  void u64(uint64_t value) { constant(value, 8); }
  /// The low `width_bytes` (4 or 8) of a value.
  void constant(uint64_t value, int width_bytes) {
    for (int i = 0; i < width_bytes; ++i) {
      to_.bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
    }
  }
  /// A hole of `width_bytes` for what `patch` says; its offset and width are filled in here.
  void hole(Patch patch, int width_bytes) {
    patch.offset_bytes = static_cast<uint32_t>(to_.bytes.size());
    patch.width_bytes = static_cast<uint8_t>(width_bytes);
    to_.patches.push_back(patch);
    to_.bytes.resize(to_.bytes.size() + static_cast<size_t>(width_bytes));
  }
  void address(int index, int64_t addend = 0) {
    hole({.source = Patch::Source::Address, .index = index, .addend = addend}, 8);
  }

 private:
  EncodedQueue& to_;
};

}  // namespace ignis::runtime
