#include "ignis/runtime/queued_device.h"

#include <array>
#include <cstring>

namespace ignis::runtime {

Status QueuedDevice::upload(const MemoryRef& to, uint64_t offset_bytes,
                            std::span<const std::byte> bytes) {
  const uint64_t size_bytes = to->size_bytes();
  if (offset_bytes > size_bytes || bytes.size() > size_bytes - offset_bytes) {
    return Error(ErrorCode::InvalidArgument,
                 "An upload of " + std::to_string(bytes.size()) + " bytes at offset " +
                     std::to_string(offset_bytes) + " does not fit into memory of " +
                     std::to_string(size_bytes) + " bytes of device '" + name() + "'.");
  }
  if (to->host() == nullptr) {
    return Error(ErrorCode::Unsupported,
                 "The host cannot write to this memory of device '" + name() + "'.");
  }
  if (!bytes.empty()) std::memcpy(to->host() + offset_bytes, bytes.data(), bytes.size());
  return {};
}

Status QueuedDevice::store_word(const MemoryRef& to, uint64_t offset_bytes, uint64_t value,
                                uint32_t width_bytes) {
  std::array<std::byte, 8> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
  return upload(to, offset_bytes, std::span(bytes).first(width_bytes));
}

}  // namespace ignis::runtime
