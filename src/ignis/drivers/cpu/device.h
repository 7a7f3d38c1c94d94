#pragma once

#include "ignis/runtime/device.h"

#include <memory>

namespace ignis::cpu {

/// Opens the CPU as a device: renderer "llvm" (default), "c" or "interp"; features an instruction set this machine
/// has ("sse2", "avx2", "avx512", "neon"; default the best). Devices of one thread count share a thread pool.
/// Errors: NotFound for another renderer or index, InvalidArgument for an unknown instruction set, Unsupported for
/// one that this machine lacks, OutOfMemory.
Result<std::shared_ptr<runtime::Device>> open(const runtime::DeviceSpec& spec,
                                              const runtime::DeviceOptions& options);

/// The CPU's rows of the device list.
std::vector<runtime::DeviceInfo> list();

}  // namespace ignis::cpu
