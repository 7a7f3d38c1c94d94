#pragma once

#include "ignis/runtime/queued_device.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace ignis::exec {

/// Host memory that somebody else owns: a camera's frame, a mapped file, a caller's array. `lease` is what keeps it as it is,
/// and is let go with the last reference: a replay holds its inputs until it is complete, so a camera's slot that is leased is
/// not filled again before (capture spec 14).
class ExternalMemory final : public runtime::Memory {
 public:
  ExternalMemory(std::string owner, std::byte* bytes, uint64_t size_bytes,
                 std::shared_ptr<const void> lease = nullptr)
      : owner_(std::move(owner)),
        bytes_(bytes),
        size_bytes_(size_bytes),
        lease_(std::move(lease)) {}

  const std::string& owner() const override { return owner_; }
  uint64_t size_bytes() const override { return size_bytes_; }
  std::byte* host() const override { return bytes_; }

  /// Shows other bytes of the same size from here on. For memory that no device has mapped.
  void move_to(std::byte* bytes) { bytes_ = bytes; }

 private:
  std::string owner_;
  std::byte* bytes_;
  uint64_t size_bytes_;
  std::shared_ptr<const void> lease_;
};

}  // namespace ignis::exec
