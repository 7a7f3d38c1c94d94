#include "ignis/exec/content_hash.h"

#include <sodium.h>

#include <cstdint>
#include <string>

namespace ignis::exec {

ContentHash hash_content(std::span<const std::byte> bytes) {
  ContentHash hash{};
  crypto_generichash(reinterpret_cast<unsigned char*>(hash.data()), hash.size(),
                     reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr,
                     0);
  return hash;
}

ContentHash hash_image(const ProgramImage& image) {
  // The lengths stand between the parts: no two images run into the same bytes.
  const std::string head = image.name + '\0' + std::to_string(image.buffer_count) + '\0' +
                           std::to_string(image.object.size()) + '\0';
  crypto_generichash_state state;
  ContentHash hash{};
  crypto_generichash_init(&state, nullptr, 0, hash.size());
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(head.data()),
                            head.size());
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(image.object.data()),
                            image.object.size());
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(hash.data()), hash.size());
  return hash;
}

}  // namespace ignis::exec
