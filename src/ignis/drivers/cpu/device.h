#pragma once

#include "ignis/runtime/device.h"

#include <memory>

namespace ignis::cpu {

/// What programs for `spec` are compiled for: renderer "llvm" (default), "c" or "interp"; features an instruction set with
/// or without its architecture ("avx2", "aarch64-neon"), with typical cache sizes; without features this machine itself.
/// Errors: NotFound for another renderer, interface or index, InvalidArgument for unknown features.
Result<Target> find_target(const runtime::DeviceSpec& spec);

/// Opens the CPU as a device for programs of find_target(spec), with the cache sizes of this machine. Devices of one thread count share a thread pool.
/// Errors: as find_target(); Unsupported with the reason TargetMismatch for code that this machine cannot run,
/// OutOfMemory.
Result<std::shared_ptr<runtime::Device>> open(const runtime::DeviceSpec& spec,
                                              const runtime::DeviceOptions& options);

/// The CPU's rows of the device list.
std::vector<runtime::DeviceInfo> list();

}  // namespace ignis::cpu
