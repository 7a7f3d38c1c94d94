#pragma once

#include "ignis/engine/queues/device_table.h"
#include "ignis/exec/schedule.h"

#include <optional>
#include <span>
#include <string>

namespace ignis::engine {

/// The device that a call is enqueued on, or nothing: then the host path runs it (queue spec, section 2). `arguments` are
/// the call's, resolved; a copy's are destination, source.
std::optional<std::string> choose_device(const DeviceTable& table,
                                         std::span<const exec::ScheduleBuffer> buffers,
                                         exec::CallKind kind,
                                         std::span<const exec::BufferRange> arguments);

}  // namespace ignis::engine
