#pragma once

#include "ignis/base/byte_io.h"
#include "ignis/base/result.h"
#include "ignis/exec/captured.h"
#include "ignis/exec/machine.h"
#include "ignis/runtime/clock.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace ignis::exec {

/// Puts bytes of a held buffer into the artifact's weights and says where: a multiple of kHeldAlignmentBytes. Equal bytes may come
/// to one place.
using PlaceWeights = std::function<uint64_t(std::span<const std::byte> bytes)>;

/// Writes a capture: equal captures give equal bytes. Held buffers are places in the weights; memory, generations and what is
/// linked are not part of it.
/// Errors: InvalidArgument with the reason NoHostCopy for weights or one-time results whose bytes nobody on the host has; see
/// copy_held_to_host().
Status write_captured(ByteWriter& to, const Captured& captured, const PlaceWeights& place,
                      bool is_retargetable = false);

/// Reads one from bytes that may hold anything. Its held buffers point into `weights`, which `owner` keeps.
/// Errors: InvalidArgument with the reason Truncated, TrailingBytes, VersionMismatch, BadTemplate or BadCaptured.
Result<CapturedRef> read_captured(std::span<const std::byte> bytes,
                                  std::span<const std::byte> weights,
                                  const std::shared_ptr<const void>& owner);

/// The same capture with the bytes of what it holds on the host, as a file has it: one-time results become weights, and state
/// begins with what it is now. Nothing may be under way that writes it.
/// Errors: Unsupported with the reason NotHostVisible; as make_readable().
Result<CapturedRef> copy_held_to_host(const Captured& captured, Machine& machine,
                                      const runtime::WaitLimits& limits);

}  // namespace ignis::exec
