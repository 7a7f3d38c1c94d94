#include "ignis/engine/digest.h"

#include <sodium.h>

namespace ignis::engine {

Digest digest_of(std::span<const std::byte> bytes) {
  static const int kReady = sodium_init();  // picks the fast code for this processor
  IGNIS_CHECK(kReady >= 0);
  Digest digest;
  crypto_generichash(reinterpret_cast<unsigned char*>(digest.data()), digest.size(),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr,
                     0);
  return digest;
}

std::string to_hex(const Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : digest) {
    text += kDigits[static_cast<size_t>(byte >> 4)];
    text += kDigits[static_cast<size_t>(byte & std::byte{15})];
  }
  return text;
}

}  // namespace ignis::engine
