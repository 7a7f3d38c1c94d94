#pragma once

#include "ignis/base/byte_io.h"
#include "ignis/base/result.h"
#include "ignis/exec/queue_template.h"

#include <cstddef>
#include <span>

namespace ignis::exec {

/// Writes an encoded template: equal templates give equal bytes. Memory is not part of it, and neither is the source text of
/// programs. `is_retargetable` leaves out what only one architecture of host runs: the submit programs.
void write_template(ByteWriter& to, const QueueTemplate& queues, bool is_retargetable = false);

/// Reads what write_template() wrote from bytes that may hold anything. What comes back passed check_template(), and writes the
/// same bytes again. Errors: InvalidArgument with the reason Truncated, TrailingBytes, VersionMismatch or BadTemplate.
Result<QueueTemplate> read_template(std::span<const std::byte> bytes);

}  // namespace ignis::exec
