#pragma once

#include "ignis/base/program_image.h"
#include "ignis/base/result.h"
#include "ignis/engine/queues/device_table.h"
#include "ignis/exec/schedule.h"

#include <cstdint>
#include <functional>
#include <string>

namespace ignis::engine {

/// What the queue compiler asks the world.
struct QueueHooks {
  /// Whether `device` reaches lane `lane` of `buffer`, which another device owns: tried for real; a mapping that worked is
  /// kept. Without it devices reach the host's memory and that of their peers.
  std::function<Result<bool>(const std::string& device, const exec::ScheduleBuffer& buffer,
                             int lane)>
      can_map;
  /// A program with the slots destination, source that copies `size_bytes` bytes on `device`.
  std::function<Result<ProgramImage>(const std::string& device, uint64_t size_bytes)> copy_program;
};

struct StageOptions {
  uint64_t size_bytes = uint64_t{128} << 20;  ///< of one stage
  int slots = 2;
};

/// Whether `device` reaches the memory of `range`: its own and wires always, other memory as the hook says.
Result<bool> can_reach(const DeviceTable& table, const QueueHooks& hooks, const std::string& device,
                       const exec::ScheduleBuffer& buffer, int lane);

/// Whether calls `send` and `receive` are the two halves of one copy over the network.
bool is_network_pair(const exec::Schedule& schedule, const exec::ScheduleCall& send,
                     const exec::ScheduleCall& receive);

/// Appends what one copy between single lanes comes to (queue spec 4): nothing when it is empty, a pair over the network,
/// one copy, chunks through a stage, a kernel, or a copy of the host. Adds wires, stages and programs to `out`, whose buffers
/// the copy's views index. A stage belongs to one pair of host and device (or of host and two devices).
///
/// Errors: InvalidArgument for unlike sizes or item sizes; Unsupported with the reason StagingUnmappable when a device
/// cannot map its stage; what the hooks return. After an error `out` may hold a part of the copy.
Status decompose_copy(const DeviceTable& table, const StageOptions& stage, const QueueHooks& hooks,
                      const exec::ScheduleCall& copy, exec::Schedule& out);

}  // namespace ignis::engine
