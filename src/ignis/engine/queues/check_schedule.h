#pragma once

#include "ignis/base/result.h"
#include "ignis/engine/queues/device_table.h"
#include "ignis/exec/schedule.h"

namespace ignis::engine {

/// Whether everything a schedule says of itself fits together: devices known and spelled canonically, numbers in range, copies
/// with two arguments, views within their buffers. Errors: InvalidArgument naming the call or buffer.
Status check_schedule(const exec::Schedule& schedule, const DeviceTable& table);

}  // namespace ignis::engine
