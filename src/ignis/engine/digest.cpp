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

}  // namespace ignis::engine
