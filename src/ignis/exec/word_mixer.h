#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ignis::exec {

/// A quick 64-bit hash, the same in every process of one byte order. Against accidents only: who needs proof compares values.
/// Multiplication and shift; the constants are odd numbers without a pattern (digits of pi).
class WordMixer {
 public:
  void add(uint64_t word) {
    state_ = (state_ ^ word) * 0x243F6A8885A308D3U;
    state_ ^= state_ >> 32U;
  }
  void add(std::string_view text) {
    add(uint64_t{text.size()});
    while (!text.empty()) {
      const size_t count = std::min<size_t>(8, text.size());
      uint64_t word = 0;
      std::memcpy(&word, text.data(), count);
      add(word);
      text.remove_prefix(count);
    }
  }
  uint64_t result() const { return state_; }

 private:
  uint64_t state_ = 0xA4093822299F31D1U;
};

}  // namespace ignis::exec
