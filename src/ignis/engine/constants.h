#pragma once

#include "ignis/engine/compile_kernels.h"
#include "ignis/runtime/device.h"
#include "ignis/schedule/schedule.h"

#include <memory>
#include <vector>

namespace ignis::engine {

/// Where a constant buffer's bytes lie and who keeps them.
struct ConstantBytes {
  const std::byte* bytes = nullptr;
  std::shared_ptr<const void> owner;
};

struct Constants {
  std::vector<ConstantBytes>
      buffers;        ///< one for each buffer of the schedule; null unless Constant
  double pack_s = 0;  ///< wall time
};

/// Gives every constant its final bytes: the model's own where they lie (a mapped file stays mapped), packed copies,
/// and the results of kernels that depend on constants only, which are run here.
/// Errors: OutOfMemory, Internal for a Pack step or kernel that does not fit, as Device::load and Device::run.
Result<Constants> make_constants(const schedule::Schedule& schedule, const CompiledKernels& kernels,
                                 const std::shared_ptr<runtime::Device>& device,
                                 runtime::Deadline deadline);

}  // namespace ignis::engine
