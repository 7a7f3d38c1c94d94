#pragma once

#include "ignis/base/result.h"
#include "ignis/runtime/queued_device.h"

#include <cstddef>
#include <cstdint>

namespace ignis::cpu {

/// Zeroed memory of the host, aligned to 256 bytes; a large one lies in pages of its own, zeroed on first touch and huge where
/// the kernel allows. Null when it is not to be had.
std::byte* map_bytes(uint64_t size_bytes);
void unmap_bytes(std::byte* bytes, uint64_t size_bytes);

/// The same as runtime memory of the CPU. Errors: OutOfMemory.
Result<runtime::MemoryRef> make_memory(uint64_t size_bytes);

}  // namespace ignis::cpu
