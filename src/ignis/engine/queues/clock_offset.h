#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/link.h"
#include "ignis/exec/profile.h"
#include "ignis/runtime/queued_device.h"

#include <cstdint>
#include <memory>

namespace ignis::engine {

/// How a device's clock stands to the machine's: host time = device time + offset.
struct ClockOffset {
  int64_t offset_ns = 0;
  /// Half of the shortest round trip that was seen: how far the offset may be off.
  int64_t uncertainty_ns = 0;
  /// Host nanoseconds of a stamp of that device.
  int64_t to_host_ns(uint64_t ticks, uint32_t ticks_per_us) const;
};

/// Lets the device stamp its time in a batch of its own, five times, and takes the median of the differences to the middle of
/// each round trip (queue spec 12). Errors: as encode_template(), link() and run().
Result<ClockOffset> measure_clock_offset(const std::shared_ptr<exec::Machine>& machine,
                                         runtime::QueuedDevice& device);

}  // namespace ignis::engine
