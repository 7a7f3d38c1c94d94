#include "ignis/drivers/cpu/memory.h"

#include "ignis/base/math.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

namespace ignis::cpu {
namespace {

// The best alignment class that a signature tells apart (capture spec 6): a replay never meets a worse one in fresh memory.
constexpr uint64_t kAlignment = 256;
// From here on memory comes from the kernel, zeroed on first touch, in huge pages where it allows.
constexpr uint64_t kMapBytes = uint64_t{64} << 10;
constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
constexpr uint64_t kMaxBytes = uint64_t{1} << 47;

uint64_t mapped_bytes(uint64_t size_bytes) {
  return align_up(size_bytes, size_bytes >= kHugePageBytes ? kHugePageBytes : uint64_t{4096});
}

class CpuMemory final : public runtime::Memory {
 public:
  CpuMemory(std::byte* bytes, uint64_t size_bytes) : bytes_(bytes), size_bytes_(size_bytes) {}
  CpuMemory(const CpuMemory&) = delete;
  CpuMemory& operator=(const CpuMemory&) = delete;
  ~CpuMemory() override { unmap_bytes(bytes_, size_bytes_); }

  const std::string& owner() const override {
    static const std::string name = "CPU";
    return name;
  }
  uint64_t size_bytes() const override { return size_bytes_; }
  std::byte* host() const override { return bytes_; }

 private:
  std::byte* bytes_;
  uint64_t size_bytes_;
};

}  // namespace

std::byte* map_bytes(uint64_t size_bytes) {
  if (size_bytes > kMaxBytes) return nullptr;
  if (size_bytes < kMapBytes) {
    const uint64_t rounded = align_up(std::max<uint64_t>(size_bytes, 1), kAlignment);
    void* bytes = std::aligned_alloc(kAlignment, rounded);
    if (bytes != nullptr) std::memset(bytes, 0, rounded);
    return static_cast<std::byte*>(bytes);
  }
  const uint64_t mapped = mapped_bytes(size_bytes);
  void* bytes = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED) return nullptr;
  if (mapped >= kHugePageBytes) madvise(bytes, mapped, MADV_HUGEPAGE);  // a wish: may fail
  return static_cast<std::byte*>(bytes);
}

void unmap_bytes(std::byte* bytes, uint64_t size_bytes) {
  if (size_bytes < kMapBytes) std::free(bytes);
  else munmap(bytes, mapped_bytes(size_bytes));
}

Result<runtime::MemoryRef> make_memory(uint64_t size_bytes) {
  std::byte* bytes = map_bytes(size_bytes);
  if (bytes == nullptr) {
    return Error(ErrorCode::OutOfMemory,
                 "The host has no room for " + std::to_string(size_bytes) + " bytes.");
  }
  return runtime::MemoryRef(std::make_shared<CpuMemory>(bytes, size_bytes));
}

}  // namespace ignis::cpu
