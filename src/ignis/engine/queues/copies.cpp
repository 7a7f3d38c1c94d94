#include "ignis/engine/queues/copies.h"

#include "ignis/engine/queues/enqueue.h"
#include "ignis/engine/queues/view.h"

#include <algorithm>
#include <optional>

namespace ignis::engine {
namespace {

using exec::BufferRange;
using exec::BufferView;
using exec::CallKind;
using exec::Schedule;
using exec::ScheduleBuffer;
using exec::ScheduleCall;

/// One copy on its way into calls.
class CopySplitter {
 public:
  CopySplitter(const DeviceTable& table, const StageOptions& stage, const QueueHooks& hooks,
               const ScheduleCall& copy, Schedule& out)
      : table_(table), stage_(stage), hooks_(hooks), copy_(copy), out_(out) {}

  Status split() {
    IGNIS_TRY(resolve());
    if (source_.size_bytes == 0) return Status::ok();
    if (crosses_network()) return split_over_network();
    const std::optional<std::string> device = device_of(copy_);
    if (!device) return append(copy_);
    IGNIS_TRY_ASSIGN(const bool maps_destination, reaches(*device, destination_));
    IGNIS_TRY_ASSIGN(const bool maps_source, reaches(*device, source_));
    if (!maps_destination || !maps_source) return split_through_stage(*device);
    return append(copy_);
  }

 private:
  Status resolve() {
    IGNIS_TRY_ASSIGN(destination_, resolve_view(out_.buffers, copy_.arguments[0]));
    IGNIS_TRY_ASSIGN(source_, resolve_view(out_.buffers, copy_.arguments[1]));
    if (destination_.item_bytes != source_.item_bytes) {
      return Error(ErrorCode::InvalidArgument,
                   "Copy '" + copy_.name + "' goes from items of " +
                       std::to_string(source_.item_bytes) + " bytes to items of " +
                       std::to_string(destination_.item_bytes) + " bytes.",
                   "ItemSize");
    }
    if (destination_.size_bytes != source_.size_bytes) {
      return Error(ErrorCode::InvalidArgument,
                   "Copy '" + copy_.name + "' goes from " + std::to_string(source_.size_bytes) +
                       " to " + std::to_string(destination_.size_bytes) + " bytes.",
                   "CopySize");
    }
    return Status::ok();
  }

  const ScheduleBuffer& buffer_of(const BufferRange& range) const {
    return out_.buffers[static_cast<size_t>(range.buffer)];
  }
  const std::string& owner_of(const BufferRange& range) const {
    return owners_of(out_.buffers, range).front();
  }
  Result<bool> reaches(const std::string& device, const BufferRange& range) const {
    return can_reach(table_, hooks_, device, buffer_of(range), range.lane);
  }
  std::optional<std::string> device_of(const ScheduleCall& call) const {
    BufferRange arguments[2];
    for (size_t i = 0; i < 2; ++i) arguments[i] = *resolve_view(out_.buffers, call.arguments[i]);
    return choose_device(table_, out_.buffers, CallKind::Copy, arguments);
  }

  /// A card without a copy queue has nothing that feeds it; nor has one of a device whose copies are the host's.
  bool has_card(const std::string& device) const {
    if (table_.copy_queues(device) == 0) return false;
    const runtime::Capabilities& capabilities = *table_.find(device);
    return capabilities.has_network_card && !capabilities.has_unified_memory;
  }
  bool crosses_network() const {
    const std::string& to = owner_of(destination_);
    const std::string& from = owner_of(source_);
    return has_card(to) && has_card(from) && table_.peer_group(to) != table_.peer_group(from);
  }

  Status split_over_network() {
    ScheduleCall send = copy_, receive = copy_;
    send.arguments[0] = add_wire(owner_of(source_), "to " + owner_of(destination_));
    receive.arguments[1] = add_wire(owner_of(destination_), "from " + owner_of(source_));
    const int near_end = send.arguments[0].buffer, far_end = receive.arguments[1].buffer;
    out_.buffers[static_cast<size_t>(near_end)].other_end = far_end;
    out_.buffers[static_cast<size_t>(far_end)].other_end = near_end;
    out_.calls.push_back(std::move(send));
    out_.calls.push_back(std::move(receive));
    return Status::ok();
  }

  BufferView add_wire(std::string device, const std::string& where) {
    ScheduleBuffer wire;
    wire.name = "wire " + where;
    wire.devices = {std::move(device)};
    wire.size_bytes = source_.size_bytes;
    wire.is_wire = true;
    return add_buffer(std::move(wire), source_.item_bytes);
  }
  BufferView add_buffer(ScheduleBuffer buffer, int item_bytes) {
    BufferView view;
    view.buffer = static_cast<int>(out_.buffers.size());
    view.item_bytes = item_bytes;
    out_.buffers.push_back(std::move(buffer));
    return view;
  }

  Status split_through_stage(const std::string& device) {
    const auto item = static_cast<uint64_t>(source_.item_bytes);
    const auto slots = static_cast<uint64_t>(std::max(1, stage_.slots));
    const uint64_t chunk = stage_.size_bytes / slots / item;
    if (chunk == 0) {
      return Error(ErrorCode::InvalidArgument,
                   "A stage of " + std::to_string(stage_.size_bytes) + " bytes in " +
                       std::to_string(slots) + " slots holds no item of " + std::to_string(item) +
                       " bytes.",
                   "StageTooSmall");
    }
    const int stage = find_or_add_stage(device);
    const uint64_t total = source_.size_bytes / item;
    for (uint64_t i = 0; i * chunk < total; ++i) {
      const uint64_t begin = i * chunk, end = std::min(begin + chunk, total);
      const uint64_t at_byte = (i % slots) * chunk * item;
      const BufferView slot = stage_slot(stage, at_byte, (end - begin) * item);
      ScheduleCall in = copy_, out = copy_;
      in.arguments[0] = slot;
      out.arguments[1] = slot;
      in.arguments[1] = part(copy_.arguments[1], begin, end);
      out.arguments[0] = part(copy_.arguments[0], begin, end);
      in.bytes = out.bytes =
          copy_.bytes * static_cast<double>(end - begin) / static_cast<double>(total);
      // The copy is done when its last part is.
      in.wants_signal = false;
      out.wants_signal = copy_.wants_signal && end == total;
      if (i == 0) {
        IGNIS_TRY(check_stage(in, stage));
        IGNIS_TRY(check_stage(out, stage));
      }
      IGNIS_TRY(append(std::move(in)));
      IGNIS_TRY(append(std::move(out)));
    }
    return Status::ok();
  }

  static BufferView part(const BufferView& view, uint64_t begin, uint64_t end) {
    return slice(view, static_cast<int64_t>(begin), static_cast<int64_t>(end));
  }

  BufferView stage_slot(int stage, uint64_t at_byte, uint64_t size_bytes) const {
    BufferView view;
    view.buffer = stage;
    view = part(view, at_byte, at_byte + size_bytes);
    exec::ViewStep as_items;
    as_items.kind = exec::ViewStep::Kind::Reinterpret;
    as_items.item_bytes = source_.item_bytes;
    view.steps.push_back(as_items);
    return view;
  }

  /// Devices that bounce among each other have a stage of their own, whichever of them is asked first.
  int find_or_add_stage(const std::string& device) {
    const std::string& to = owner_of(destination_);
    const std::string& from = owner_of(source_);
    const bool is_between_devices =
        to != from && table_.is_enqueued(to) && table_.is_enqueued(from);
    const std::string user = is_between_devices ? from + ">" + to : device;
    for (size_t i = 0; i < out_.buffers.size(); ++i) {
      const ScheduleBuffer& buffer = out_.buffers[i];
      // Another size would be another memory; one template has one.
      if (buffer.stage_for == user) return static_cast<int>(i);
    }
    ScheduleBuffer stage;
    stage.name = "stage " + user;
    stage.devices = {table_.host};
    stage.size_bytes = stage_.size_bytes;
    stage.stage_for = user;
    return add_buffer(std::move(stage), 1).buffer;
  }

  Status check_stage(const ScheduleCall& call, int stage) const {
    const std::optional<std::string> device = device_of(call);
    if (!device) return Status::ok();
    const ScheduleBuffer& buffer = out_.buffers[static_cast<size_t>(stage)];
    IGNIS_TRY_ASSIGN(const bool maps, can_reach(table_, hooks_, *device, buffer, 0));
    if (maps) return Status::ok();
    return Error(ErrorCode::Unsupported,
                 "Device '" + *device + "' cannot map its stage of " +
                     std::to_string(buffer.size_bytes) + " bytes, which copy '" + copy_.name +
                     "' needs.",
                 "StagingUnmappable");
  }

  /// A copy that needs no more splitting: the host's, a copy queue's, or a kernel where the device has none.
  Status append(ScheduleCall call) {
    const std::optional<std::string> device = device_of(call);
    call.outs = {0};
    call.ins = {1};
    call.knows_writes = true;
    if (device && table_.copy_queues(*device) == 0) {
      const uint64_t size_bytes = resolve_view(out_.buffers, call.arguments[0])->size_bytes;
      call.kind = CallKind::Program;
      IGNIS_TRY_ASSIGN(call.program, add_program(*device, size_bytes));
    }
    out_.calls.push_back(std::move(call));
    return Status::ok();
  }

  Result<int> add_program(const std::string& device, uint64_t size_bytes) {
    if (!hooks_.copy_program) {
      return Error(ErrorCode::Unsupported,
                   "Device '" + device + "' has no copy queue, and no program that copies " +
                       std::to_string(size_bytes) + " bytes is at hand.",
                   "NoCopyProgram");
    }
    IGNIS_TRY_ASSIGN(ProgramImage image, hooks_.copy_program(device, size_bytes));
    for (size_t i = 0; i < out_.programs.size(); ++i) {
      if (out_.programs[i].name == image.name && out_.programs[i].object == image.object) {
        return static_cast<int>(i);
      }
    }
    out_.programs.push_back(std::move(image));
    return static_cast<int>(out_.programs.size()) - 1;
  }

  const DeviceTable& table_;
  const StageOptions& stage_;
  const QueueHooks& hooks_;
  const ScheduleCall& copy_;
  Schedule& out_;
  BufferRange destination_, source_;
};

}  // namespace

Result<bool> can_reach(const DeviceTable& table, const QueueHooks& hooks, const std::string& device,
                       const ScheduleBuffer& buffer, int lane) {
  const std::string& owner = buffer.devices[static_cast<size_t>(std::max(0, lane))];
  if (owner == device || buffer.is_wire || buffer.variable >= 0) return true;
  if (hooks.can_map) return hooks.can_map(device, buffer, std::max(0, lane));
  return owner == table.host || table.peer_group(owner) == table.peer_group(device);
}

bool is_network_pair(const Schedule& schedule, const ScheduleCall& send,
                     const ScheduleCall& receive) {
  if (send.kind != CallKind::Copy || receive.kind != CallKind::Copy) return false;
  const auto is_wire = [&](const BufferView& view) {
    return schedule.buffers[static_cast<size_t>(view.buffer)].is_wire;
  };
  return is_wire(send.arguments[0]) && is_wire(receive.arguments[1]);
}

Status decompose_copy(const DeviceTable& table, const StageOptions& stage, const QueueHooks& hooks,
                      const ScheduleCall& copy, Schedule& out) {
  return CopySplitter(table, stage, hooks, copy, out).split();
}

}  // namespace ignis::engine
