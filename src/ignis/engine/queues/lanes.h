#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/schedule.h"

#include <span>
#include <string_view>
#include <vector>

namespace ignis::engine {

/// The variable that tells a lane's call which lane it is.
inline constexpr std::string_view kLaneVariable = "lane";

/// Splits a call whose arguments lie on several devices into one call for each lane, in lane order (queue spec 3.2). An
/// argument on one device is shared by all. A call on single devices comes back as it is.
/// Errors: InvalidArgument when two arguments have different lane counts.
Result<std::vector<exec::ScheduleCall>> split_lanes(std::span<const exec::ScheduleBuffer> buffers,
                                                    const exec::ScheduleCall& call);

}  // namespace ignis::engine
