#pragma once

#include <cstdint>
#include <string>

namespace ignis::exec {

/// When one call of one run ran.
struct CallRecord {
  uint64_t run = 0;  ///< of its linked schedule, from 1
  int step = 0;      ///< of the template
  int tag = 0;       ///< of the batch or host run
  std::string name, device;
  uint64_t start_ticks = 0,
           end_ticks = 0;  ///< of the device's clock; the host's counts nanoseconds
  double seconds = 0;
};

/// What the parts of one run took on the host, measured apart.
struct RunTimes {
  uint64_t run = 0;
  int64_t before_ns = 0;      ///< waits for others that were at work on the same memory
  int64_t submit_ns = 0;      ///< fence, patches, announce, submit
  int64_t host_ns = 0;        ///< host runs
  int64_t completion_ns = 0;  ///< waits for what was submitted
  int64_t read_back_ns = 0;   ///< reading time slots
};

/// Seconds between two stamps of a device that counts `ticks_per_us` ticks in a microsecond.
inline double seconds_between(uint64_t start_ticks, uint64_t end_ticks, uint32_t ticks_per_us) {
  return static_cast<double>(end_ticks - start_ticks) / ticks_per_us / 1e6;
}

}  // namespace ignis::exec
