#include "ignis/engine/queues/lanes.h"

#include "ignis/engine/queues/view.h"

#include <algorithm>
#include <string>

namespace ignis::engine {

Result<std::vector<exec::ScheduleCall>> split_lanes(std::span<const exec::ScheduleBuffer> buffers,
                                                    const exec::ScheduleCall& call) {
  int lanes = 1;
  for (const exec::BufferView& argument : call.arguments) {
    const int count = count_lanes(buffers, argument);
    if (count > 1 && lanes > 1 && count != lanes) {
      return Error(ErrorCode::InvalidArgument,
                   "Call '" + call.name + "' has arguments on " + std::to_string(lanes) + " and " +
                       std::to_string(count) + " devices.",
                   "LaneCount");
    }
    lanes = std::max(lanes, count);
  }
  if (lanes == 1) return std::vector<exec::ScheduleCall>{call};

  std::vector<exec::ScheduleCall> calls(static_cast<size_t>(lanes), call);
  for (int lane = 0; lane < lanes; ++lane) {
    exec::ScheduleCall& one = calls[static_cast<size_t>(lane)];
    for (exec::BufferView& argument : one.arguments) {
      if (count_lanes(buffers, argument) > 1) argument = select_lane(std::move(argument), lane);
    }
    one.variables.push_back({std::string(kLaneVariable), lane});
  }
  return calls;
}

}  // namespace ignis::engine
