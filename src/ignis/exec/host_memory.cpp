#include "ignis/exec/host_memory.h"

#include "ignis/base/math.h"
#include "ignis/exec/external_memory.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace ignis::exec {
namespace {

constexpr uint64_t kPageBytes = 4096;

class HostMemory final : public runtime::Memory {
 public:
  HostMemory(std::string owner, std::byte* bytes, uint64_t size_bytes)
      : owner_(std::move(owner)), bytes_(bytes), size_bytes_(size_bytes) {}
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory() override { std::free(bytes_); }

  const std::string& owner() const override { return owner_; }
  uint64_t size_bytes() const override { return size_bytes_; }
  std::byte* host() const override { return bytes_; }

 private:
  std::string owner_;
  std::byte* bytes_;
  uint64_t size_bytes_;
};

}  // namespace

runtime::MemoryRef wrap_host_memory(const std::string& owner, std::byte* bytes, uint64_t size_bytes,
                                    std::shared_ptr<const void> keeps) {
  return std::make_shared<ExternalMemory>(owner, bytes, size_bytes, std::move(keeps));
}

Result<runtime::MemoryRef> allocate_host_memory(const std::string& owner, uint64_t size_bytes) {
  // An empty block has an address of its own too.
  const auto padded = checked_add(size_bytes == 0 ? 1 : size_bytes, kPageBytes - 1);
  void* bytes =
      padded ? std::aligned_alloc(kPageBytes, *padded / kPageBytes * kPageBytes) : nullptr;
  if (bytes == nullptr) {
    return Error(ErrorCode::OutOfMemory,
                 "The host has no room for " + std::to_string(size_bytes) + " bytes.");
  }
  std::memset(bytes, 0, *padded / kPageBytes * kPageBytes);
  return runtime::MemoryRef(
      std::make_shared<HostMemory>(owner, static_cast<std::byte*>(bytes), size_bytes));
}

}  // namespace ignis::exec
