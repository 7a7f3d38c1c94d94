#include "ignis/engine/queues/enqueue.h"

#include "ignis/engine/queues/view.h"

#include <algorithm>

namespace ignis::engine {
namespace {

/// The first device of an argument that lies in enqueued devices only.
std::optional<std::string> device_of(const DeviceTable& table,
                                     std::span<const exec::ScheduleBuffer> buffers,
                                     const exec::BufferRange& range) {
  const std::span<const std::string> owners = owners_of(buffers, range);
  const bool all = std::all_of(owners.begin(), owners.end(),
                               [&](const std::string& owner) { return table.is_enqueued(owner); });
  if (owners.empty() || !all) return std::nullopt;
  return owners.front();
}

}  // namespace

std::optional<std::string> choose_device(const DeviceTable& table,
                                         std::span<const exec::ScheduleBuffer> buffers,
                                         exec::CallKind kind,
                                         std::span<const exec::BufferRange> arguments) {
  if (kind == exec::CallKind::Other) return std::nullopt;
  if (kind == exec::CallKind::Program) {
    for (const exec::BufferRange& argument : arguments) {
      if (auto device = device_of(table, buffers, argument)) return device;
    }
    return std::nullopt;
  }
  // The source is asked before the destination: writing to a peer is faster than reading from it.
  for (auto argument = arguments.rbegin(); argument != arguments.rend(); ++argument) {
    if (auto device = device_of(table, buffers, *argument)) {
      // In unified memory the host copies as well as the device does.
      if (table.find(*device)->has_unified_memory) return std::nullopt;
      return device;
    }
  }
  return std::nullopt;
}

}  // namespace ignis::engine
