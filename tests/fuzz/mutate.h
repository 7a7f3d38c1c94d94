#pragma once

#include "tests/support/seed.h"

#include <cstddef>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace ignis::fuzz {

using ignis::testing::test_seed;

/// One damaged copy of `good`: a few of flipped bits, overwritten bytes and numbers, cut, doubled and moved pieces.
inline std::vector<std::byte> mutate(const std::vector<std::byte>& good, std::mt19937_64& rng) {
  std::vector<std::byte> out = good;
  const auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(rng() % n); };
  const size_t changes = 1 + below(4);
  for (size_t i = 0; i < changes; ++i) {
    if (out.empty()) out.push_back(std::byte{0});
    const size_t at = below(out.size());
    switch (below(7)) {
      case 0: out[at] ^= static_cast<std::byte>(1u << below(8)); break;
      case 1: out[at] = static_cast<std::byte>(rng()); break;
      case 2:  // a number of 1 to 8 bytes with all bits set or only the highest
        for (size_t j = 0, n = size_t{1} << below(4), high = below(2); j < n && at + j < out.size();
             ++j) {
          out[at + j] = high == 0 ? std::byte{0xff} : j + 1 == n ? std::byte{0x80} : std::byte{0};
        }
        break;
      case 3: out.resize(at); break;
      case 4:
        out.insert(out.begin() + static_cast<std::ptrdiff_t>(at), below(64),
                   static_cast<std::byte>(rng()));
        break;
      case 5: {
        const size_t n = below(std::min<size_t>(out.size() - at, 64));
        const std::vector<std::byte> piece(out.begin() + static_cast<std::ptrdiff_t>(at),
                                           out.begin() + static_cast<std::ptrdiff_t>(at + n));
        out.insert(out.begin() + static_cast<std::ptrdiff_t>(below(out.size())), piece.begin(),
                   piece.end());
        break;
      }
      default: {
        const size_t n = below(std::min<size_t>(out.size() - at, 64));
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(at),
                  out.begin() + static_cast<std::ptrdiff_t>(at + n));
      }
    }
  }
  return out;
}

}  // namespace ignis::fuzz

/// The entry that libFuzzer calls, and that the bounded tests call too. One for each fuzz target.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size);
