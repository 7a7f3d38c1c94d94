#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/schedule.h"

#include <span>
#include <string>
#include <vector>

namespace ignis::engine {

/// What a view comes to, in bytes of its base buffer. Slices, lane selects and reinterpretations are looked through in any
/// order; offsets add up. A buffer of one device has the lane 0; a view of several lanes without a select has kAllLanes.
///
/// Errors: InvalidArgument naming the buffer and both values: no such buffer or lane, a second select, a slice beyond the
/// end, an item size that does not divide the range or its offset.
Result<exec::BufferRange> resolve_view(std::span<const exec::ScheduleBuffer> buffers,
                                       const exec::BufferView& view);

/// The devices whose memory a range lies in: one, or all lanes'.
std::span<const std::string> owners_of(std::span<const exec::ScheduleBuffer> buffers,
                                       const exec::BufferRange& range);

/// How many lanes a view still spans: 1 after a select.
int count_lanes(std::span<const exec::ScheduleBuffer> buffers, const exec::BufferView& view);

/// Elements [begin, end) of what `view` shows.
exec::BufferView slice(exec::BufferView view, int64_t begin, int64_t end);
/// One lane of what `view` shows.
exec::BufferView select_lane(exec::BufferView view, int lane);

}  // namespace ignis::engine
