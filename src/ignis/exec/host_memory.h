#pragma once

#include "ignis/base/result.h"
#include "ignis/runtime/queued_device.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace ignis::exec {

/// Zeroed memory of the host, aligned to a page so that devices can map it. `owner` is the host's canonical name.
/// Errors: OutOfMemory.
Result<runtime::MemoryRef> allocate_host_memory(const std::string& owner, uint64_t size_bytes);

/// Memory of the host that somebody else allocated, `size_bytes` at `bytes`; `keeps` lives as long as it. What it is used
/// for decides whether it is written.
runtime::MemoryRef wrap_host_memory(const std::string& owner, std::byte* bytes, uint64_t size_bytes,
                                    std::shared_ptr<const void> keeps);

}  // namespace ignis::exec
