#include "ignis/engine/queues/view.h"

#include <utility>

namespace ignis::engine {
namespace {

using exec::BufferRange;
using exec::BufferView;
using exec::ScheduleBuffer;
using exec::ViewStep;

Error refuse(const ScheduleBuffer& buffer, const std::string& what) {
  return Error(ErrorCode::InvalidArgument, "A view of buffer '" + buffer.name + "' " + what + ".",
               "BadView");
}

/// Sets the item size. Offsets are held to it because a device reads no element that lies across two places.
Status set_item(const ScheduleBuffer& buffer, int item_bytes, BufferRange& range) {
  if (item_bytes <= 0) {
    return refuse(buffer, "has an item of " + std::to_string(item_bytes) + " bytes");
  }
  const auto item = static_cast<uint64_t>(item_bytes);
  if (range.size_bytes % item != 0 || range.offset_bytes % item != 0) {
    return refuse(buffer, "reads " + std::to_string(range.size_bytes) + " bytes at byte " +
                              std::to_string(range.offset_bytes) + " as items of " +
                              std::to_string(item_bytes) + " bytes");
  }
  range.item_bytes = item_bytes;
  return Status::ok();
}

Status apply_step(const ScheduleBuffer& buffer, const ViewStep& step, BufferRange& range) {
  switch (step.kind) {
    case ViewStep::Kind::Slice: {
      const auto item = static_cast<uint64_t>(range.item_bytes);
      const uint64_t count = range.size_bytes / item;
      if (step.begin < 0 || step.end < step.begin || static_cast<uint64_t>(step.end) > count) {
        return refuse(buffer, "takes the elements [" + std::to_string(step.begin) + ", " +
                                  std::to_string(step.end) + ") of " + std::to_string(count));
      }
      range.offset_bytes += static_cast<uint64_t>(step.begin) * item;
      range.size_bytes = static_cast<uint64_t>(step.end - step.begin) * item;
      return Status::ok();
    }
    case ViewStep::Kind::Lane: {
      const auto lanes = static_cast<int>(buffer.devices.size());
      if (step.lane < 0 || step.lane >= lanes) {
        return refuse(buffer,
                      "selects lane " + std::to_string(step.lane) + " of " + std::to_string(lanes));
      }
      if (range.lane != exec::kAllLanes && range.lane != step.lane) {
        return refuse(buffer, "selects lane " + std::to_string(step.lane) + " of lane " +
                                  std::to_string(range.lane));
      }
      range.lane = step.lane;
      return Status::ok();
    }
    case ViewStep::Kind::Reinterpret: return set_item(buffer, step.item_bytes, range);
  }
  return refuse(buffer, "has a step of no known kind");
}

}  // namespace

Result<BufferRange> resolve_view(std::span<const ScheduleBuffer> buffers, const BufferView& view) {
  if (view.buffer < 0 || static_cast<size_t>(view.buffer) >= buffers.size()) {
    return Error(ErrorCode::InvalidArgument,
                 "A view names buffer " + std::to_string(view.buffer) + " of " +
                     std::to_string(buffers.size()) + ".",
                 "BadView");
  }
  const ScheduleBuffer& buffer = buffers[static_cast<size_t>(view.buffer)];
  if (buffer.devices.empty()) return refuse(buffer, "has no device");
  BufferRange range;
  range.buffer = view.buffer;
  range.lane = buffer.devices.size() == 1 ? 0 : exec::kAllLanes;
  range.size_bytes = buffer.size_bytes;
  IGNIS_TRY(set_item(buffer, view.item_bytes, range));
  for (const ViewStep& step : view.steps) IGNIS_TRY(apply_step(buffer, step, range));
  return range;
}

std::span<const std::string> owners_of(std::span<const ScheduleBuffer> buffers,
                                       const BufferRange& range) {
  const ScheduleBuffer& buffer = buffers[static_cast<size_t>(range.buffer)];
  if (range.lane == exec::kAllLanes) return buffer.devices;
  return std::span(buffer.devices).subspan(static_cast<size_t>(range.lane), 1);
}

int count_lanes(std::span<const ScheduleBuffer> buffers, const BufferView& view) {
  for (const ViewStep& step : view.steps) {
    if (step.kind == ViewStep::Kind::Lane) return 1;
  }
  return static_cast<int>(buffers[static_cast<size_t>(view.buffer)].devices.size());
}

BufferView slice(BufferView view, int64_t begin, int64_t end) {
  ViewStep step;
  step.kind = ViewStep::Kind::Slice;
  step.begin = begin;
  step.end = end;
  view.steps.push_back(step);
  return view;
}

BufferView select_lane(BufferView view, int lane) {
  ViewStep step;
  step.kind = ViewStep::Kind::Lane;
  step.lane = lane;
  view.steps.push_back(step);
  return view;
}

}  // namespace ignis::engine
