#include "ignis/engine/queues/plan_schedule.h"

#include "ignis/base/math.h"
#include "ignis/exec/check_plan.h"
#include "ignis/exec/host_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ignis::engine {
namespace {

/// Bytes that one upload writes.
constexpr size_t kUploadChunkBytes = size_t{32} << 20;

/// Builds the schedule of a plan that was checked.
class Builder {
 public:
  Builder(exec::Plan plan, const PlanScheduleOptions& options)
      : plan_(std::move(plan)),
        options_(options),
        devices_(split_devices(options.device)),
        views_(plan_.buffers.size()) {}

  Result<PlanSchedule> build() {
    for (const exec::BufferPlan& buffer : plan_.buffers) {
      made_.arena_reads_zeros |= buffer.role == exec::BufferRole::Arena && buffer.reads_zeros;
    }
    for (size_t i = 0; i < plan_.buffers.size(); ++i) IGNIS_TRY(add_buffer(i));
    number_ports();
    add_calls();
    made_.schedule.programs = std::move(plan_.programs);
    return std::move(made_);
  }

 private:
  int add(const std::string& name, int64_t size_bytes) {
    exec::ScheduleBuffer buffer;
    buffer.name = name;
    buffer.devices = devices_;
    buffer.size_bytes = static_cast<uint64_t>(size_bytes);
    made_.schedule.buffers.push_back(std::move(buffer));
    return static_cast<int>(made_.schedule.buffers.size()) - 1;
  }
  Status add_buffer(size_t index);
  void number_ports();
  void add_calls();

  exec::Plan plan_;
  const PlanScheduleOptions& options_;
  std::vector<std::string> devices_;
  PlanSchedule made_;
  std::vector<exec::BufferView> views_;  // by buffer of the plan
};

Status Builder::add_buffer(size_t index) {
  const exec::BufferPlan& from = plan_.buffers[index];
  exec::BufferView& view = views_[index];
  if (from.role == exec::BufferRole::Arena && (made_.arena_reads_zeros || !options_.splits_arena)) {
    if (made_.arena < 0) made_.arena = add("arena", plan_.arena_bytes);
    view.buffer = made_.arena;
    view.steps = {{.begin = from.arena_offset, .end = from.arena_offset + from.size_bytes}};
    return {};
  }
  view.buffer = add(from.name, from.size_bytes);
  if (from.role != exec::BufferRole::Constant) return {};
  made_.constants.push_back(view.buffer);
  if (!options_.constant_memory) return {};
  std::vector<runtime::MemoryRef> lanes;
  for (const std::string& device : devices_) {
    IGNIS_TRY_ASSIGN(runtime::MemoryRef memory, options_.constant_memory(device, from));
    if (memory == nullptr) return {};
    lanes.push_back(std::move(memory));
  }
  made_.schedule.buffers[static_cast<size_t>(view.buffer)].memory = std::move(lanes);
  return {};
}

void Builder::number_ports() {
  int number = 0;
  for (const exec::Port& port : plan_.inputs) {
    made_.inputs.push_back(views_[static_cast<size_t>(port.buffer)].buffer);
    made_.schedule.buffers[static_cast<size_t>(made_.inputs.back())].input = number++;
  }
  for (const exec::Port& port : plan_.outputs) {
    made_.outputs.push_back(views_[static_cast<size_t>(port.buffer)].buffer);
    if (!options_.binds_outputs) continue;
    made_.schedule.buffers[static_cast<size_t>(made_.outputs.back())].input = number++;
  }
}

void Builder::add_calls() {
  for (const exec::Call& from : plan_.calls) {
    exec::ScheduleCall call;
    call.name = from.name;
    call.program = from.program;
    for (const int buffer : from.buffers) {
      call.arguments.push_back(views_[static_cast<size_t>(buffer)]);
    }
    call.outs = from.written;
    call.knows_writes = !from.written.empty();
    for (int slot = 0; slot < static_cast<int>(from.buffers.size()); ++slot) {
      if (std::find(from.written.begin(), from.written.end(), slot) == from.written.end()) {
        call.ins.push_back(slot);
      }
    }
    call.parts = from.max_parts;
    call.flops = from.flops;
    call.bytes = from.bytes;
    made_.schedule.calls.push_back(std::move(call));
    made_.layers.push_back(from.layer);
  }
}

}  // namespace

Result<PlanSchedule> plan_schedule(exec::Plan plan, const PlanScheduleOptions& options) {
  IGNIS_TRY(exec::check_plan(plan));
  return Builder(std::move(plan), options).build();
}

std::vector<std::string> split_devices(const std::string& devices) {
  std::vector<std::string> made;
  for (size_t begin = 0; begin < devices.size();) {
    const size_t end = std::min(devices.find(',', begin), devices.size());
    made.push_back(devices.substr(begin, end - begin));
    begin = end + 1;
  }
  return made;
}

void place_buffer(exec::Schedule& schedule, int buffer, const exec::Placement& at) {
  exec::ScheduleBuffer& to = schedule.buffers[static_cast<size_t>(buffer)];
  to.input = -1;
  to.devices = {at.memory->owner()};
  to.memory = {at.memory};
  if (at.offset_bytes == 0) return;
  exec::ViewStep part;
  part.begin = static_cast<int64_t>(at.offset_bytes);
  part.end = static_cast<int64_t>(at.offset_bytes + to.size_bytes);
  to.size_bytes = at.memory->size_bytes();
  for (exec::ScheduleCall& call : schedule.calls) {
    for (exec::BufferView& view : call.arguments) {
      if (view.buffer == buffer) view.steps.insert(view.steps.begin(), part);
    }
  }
}

Result<runtime::MemoryRef> ConstantStore::place(const std::string& device,
                                                const exec::BufferPlan& constant) {
  const auto size_bytes = static_cast<uint64_t>(constant.size_bytes);
  if (device == machine_->options().host_name) {
    // Programs take all memory as one kind of pointer; constants are only read.
    return exec::wrap_host_memory(device, const_cast<std::byte*>(constant.constant), size_bytes,
                                  constant.owner);
  }
  const runtime::QueuedDevice* open = machine_->find(device);
  const Key key(device, open == nullptr ? 0 : open->generation(), constant.constant,
                constant.size_bytes);
  const std::lock_guard lock(mutex_);
  if (const auto found = placed_.find(key); found != placed_.end()) {
    runtime::MemoryRef memory = found->second.memory.lock();
    if (memory != nullptr && !found->second.owner.expired()) return memory;
  }
  IGNIS_TRY_ASSIGN(const exec::Placement made,
                   machine_->allocate(device, size_bytes, runtime::Purpose::Data));
  IGNIS_TRY(write_memory(*machine_, made.memory, 0, {constant.constant, size_bytes}));
  std::erase_if(placed_, [](const auto& entry) { return entry.second.memory.expired(); });
  // Without an owner nobody says for how long the address means these bytes.
  if (constant.owner != nullptr) placed_[key] = {constant.owner, made.memory};
  return made.memory;
}

ConstantMemory ConstantStore::hook() {
  return [this](const std::string& device, const exec::BufferPlan& constant) {
    return place(device, constant);
  };
}

Result<runtime::MemoryRef> allocate_zeroed(exec::Machine& machine, const std::string& device,
                                           uint64_t size_bytes) {
  IGNIS_TRY_ASSIGN(const exec::Placement made,
                   machine.allocate(device, size_bytes, runtime::Purpose::Data));
  if (device == machine.options().host_name) return made.memory;  // made of zeros
  const std::vector<std::byte> zeros(
      std::min<size_t>(kUploadChunkBytes, static_cast<size_t>(size_bytes)));
  for (uint64_t at = 0; at < size_bytes; at += zeros.size()) {
    const auto count = std::min<size_t>(zeros.size(), static_cast<size_t>(size_bytes - at));
    IGNIS_TRY(write_memory(machine, made.memory, at, {zeros.data(), count}));
  }
  return made.memory;
}

Status write_memory(exec::Machine& machine, const runtime::MemoryRef& to, uint64_t offset_bytes,
                    std::span<const std::byte> bytes) {
  if (!is_range_inside(offset_bytes, bytes.size(), to->size_bytes())) {
    return Error(ErrorCode::InvalidArgument,
                 std::to_string(bytes.size()) + " bytes at " + std::to_string(offset_bytes) +
                     " do not lie in memory of " + std::to_string(to->size_bytes()) + " bytes.");
  }
  if (bytes.empty()) return {};
  if (to->owner() == machine.options().host_name) {
    std::memcpy(to->host() + offset_bytes, bytes.data(), bytes.size());
    return {};
  }
  runtime::QueuedDevice* device = machine.find(to->owner());
  if (device == nullptr) {
    return Error(ErrorCode::NotFound, "Device '" + to->owner() + "' is not open.", "NoSuchDevice");
  }
  for (size_t at = 0; at < bytes.size(); at += kUploadChunkBytes) {
    const size_t count = std::min(kUploadChunkBytes, bytes.size() - at);
    IGNIS_TRY(device->upload(to, offset_bytes + at, bytes.subspan(at, count)));
  }
  return {};
}

}  // namespace ignis::engine
