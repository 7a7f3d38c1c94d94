#pragma once

#include "ignis/base/result.h"
#include "ignis/runtime/queued_device.h"

#include <cstdint>
#include <string>

namespace ignis::exec {

/// Zeroed memory of the host, aligned to a page so that devices can map it. `owner` is the host's canonical name.
/// Errors: OutOfMemory.
Result<runtime::MemoryRef> allocate_host_memory(const std::string& owner, uint64_t size_bytes);

}  // namespace ignis::exec
