#pragma once

#include "ignis/base/result.h"
#include "ignis/runtime/queued_device.h"

namespace ignis::cpu {

/// QueuedDevice::encode() of the CPU. Errors: InvalidArgument for a command that names what is not there, Unsupported for a
/// call that binds a run-time variable otherwise than by its cell.
Status encode_command(const runtime::Command& command,
                      const runtime::QueuedDevice::Encoding& encoding, runtime::EncodedQueue& to);

}  // namespace ignis::cpu
