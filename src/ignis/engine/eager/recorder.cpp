#include "ignis/engine/eager/recorder.h"

#include "ignis/engine/eager/state.h"

#include <algorithm>
#include <utility>

namespace ignis::engine {
namespace {

/// Adds a program unless the schedule has it; its number.
int add_program(exec::Schedule& to, const ProgramImage& image) {
  for (size_t i = 0; i < to.programs.size(); ++i) {
    const ProgramImage& known = to.programs[i];
    if (known.name == image.name && known.object == image.object) return static_cast<int>(i);
  }
  to.programs.push_back(image);
  return static_cast<int>(to.programs.size()) - 1;
}

std::vector<int> numbers_where(size_t count, const auto& is_so) {
  std::vector<int> numbers;
  for (size_t i = 0; i < count; ++i) {
    if (is_so(i)) numbers.push_back(static_cast<int>(i));
  }
  return numbers;
}

}  // namespace

int Recording::find(uint64_t base) const {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (base != 0 && buffers[i].base == base) return static_cast<int>(i);
  }
  return -1;
}

void Recording::note_replayed() const {
  for (const WrittenStorage& each : written) {
    const StorageRef storage = each.storage.lock();
    if (storage == nullptr) continue;
    if (each.existed_before) storage->leaves->outdate(*storage);
    else storage->leaves->note_replayed(*storage);
  }
}

void Recording::place_parts() {
  for (size_t i = 0; i < buffers.size(); ++i) {
    exec::Placement& part = buffers[i].part;
    if (part.memory == nullptr || schedule.buffers[i].input >= 0) continue;
    place_buffer(schedule, static_cast<int>(i), part);
    part = {};
  }
}

std::vector<int> Recording::constant_buffers() const {
  return numbers_where(buffers.size(), [&](size_t i) { return buffers[i].is_constant; });
}

std::vector<int> Recording::random_calls() const {
  return numbers_where(calls.size(), [&](size_t i) { return calls[i].draws_random; });
}

Recorder::~Recorder() {
  if (!is_finished_) poison();
}

int Recorder::add(const StorageRef& storage, bool is_written) {
  const auto [entry, is_new] = touched_.try_emplace(storage->id);
  Touched& touched = entry->second;
  if (is_new) {
    touched.buffer = static_cast<int>(recording_.buffers.size());
    touched.storage = storage;
    exec::ScheduleBuffer buffer;
    RecordedBuffer made;
    buffer.name = storage->name.empty() ? "t" + std::to_string(touched.buffer) : storage->name;
    buffer.devices = split_devices(storage->device);
    buffer.size_bytes = storage->size_bytes;
    if (!storage->variable.empty()) {
      buffer.devices = {machine_->options().host_name};
      buffer.variable = static_cast<int>(recording_.variables.size());
      recording_.variables.push_back(storage->variable);
    } else if (storage->offset_bytes != 0) {
      made.part = storage->placement();
    } else if (storage->has_memory()) {
      for (const StorageLane& lane : storage->lanes) buffer.memory.push_back(lane.memory);
    }
    recording_.schedule.buffers.push_back(std::move(buffer));
    made.base = storage->id;
    made.existed_before = storage->contents == Contents::Known && storage->has_memory();
    made.is_constant = storage->is_constant;
    made.is_generator_state = storage->is_generator_state;
    made.variable = storage->variable;
    recording_.buffers.push_back(std::move(made));
  }
  if (is_written) {
    if (!touched.is_written) {
      recording_.written.push_back(
          {storage, recording_.buffers[static_cast<size_t>(touched.buffer)].existed_before});
    }
    touched.is_written = true;
    recording_.buffers[static_cast<size_t>(touched.buffer)].is_constant = false;
    storage->contents = Contents::Recorded;
  }
  return touched.buffer;
}

Status Recorder::add(const PlanSchedule& plan, const std::string& key,
                     const std::vector<StorageRef>& ports, const std::string& device,
                     bool draws_random) {
  const std::vector<exec::ScheduleBuffer>& from = plan.schedule.buffers;
  std::vector<int> number(from.size(), -1);
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    number[static_cast<size_t>(plan.inputs[i])] = add(ports[i], false);
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    number[static_cast<size_t>(plan.outputs[i])] = add(ports[plan.inputs.size() + i], true);
  }
  for (size_t i = 0; i < from.size(); ++i) {
    if (number[i] >= 0) continue;
    const bool is_zeroed_arena = static_cast<int>(i) == plan.arena && plan.arena_reads_zeros;
    if (is_zeroed_arena) {
      const auto known = arenas_.find(key);
      if (known != arenas_.end()) {
        number[i] = known->second;
        continue;
      }
    }
    number[i] = static_cast<int>(recording_.buffers.size());
    exec::ScheduleBuffer buffer = from[i];
    RecordedBuffer made;
    made.is_constant = std::find(plan.constants.begin(), plan.constants.end(),
                                 static_cast<int>(i)) != plan.constants.end();
    if (is_zeroed_arena) {
      IGNIS_TRY_ASSIGN(buffer.memory, allocate_zeroed_lanes(*machine_, device, buffer.size_bytes));
      made.reads_zeros = true;
      arenas_[key] = number[i];
    }
    recording_.schedule.buffers.push_back(std::move(buffer));
    recording_.buffers.push_back(std::move(made));
  }
  for (const exec::ScheduleCall& call : plan.schedule.calls) {
    exec::ScheduleCall made = call;
    made.program =
        add_program(recording_.schedule, plan.schedule.programs[static_cast<size_t>(call.program)]);
    for (exec::BufferView& view : made.arguments) {
      view.buffer = number[static_cast<size_t>(view.buffer)];
    }
    recording_.schedule.calls.push_back(std::move(made));
    recording_.calls.push_back({draws_random});
  }
  return {};
}

void Recorder::add_copy(const StorageRef& to, const StorageRef& from) {
  const int from_buffer = add(from, false), to_buffer = add(to, true);
  for (exec::ScheduleCall& call : make_copies(*to, to_buffer, *from, from_buffer)) {
    recording_.schedule.calls.push_back(std::move(call));
    recording_.calls.emplace_back();
  }
}

Result<Recording> Recorder::finish() {
  is_finished_ = true;
  recording_.note_replayed();  // nothing that was computed while recording is there before a run
  for (auto& [id, touched] : touched_) {
    const StorageRef storage = touched.storage.lock();
    exec::ScheduleBuffer& buffer = recording_.schedule.buffers[static_cast<size_t>(touched.buffer)];
    RecordedBuffer& made = recording_.buffers[static_cast<size_t>(touched.buffer)];
    if (storage == nullptr) {
      // Nobody is left who could write it.
      made.is_constant |= made.existed_before && !touched.is_written;
      continue;
    }
    made.is_live = true;
    if (storage->has_memory() || !storage->variable.empty()) continue;
    Result<std::vector<runtime::MemoryRef>> memory =
        allocate_zeroed_lanes(*machine_, storage->device, storage->size_bytes);
    if (!memory) {
      poison();
      return memory.error();
    }
    storage->set_memory(*machine_, *memory);
    buffer.memory = *std::move(memory);
  }
  return recording_;
}

void Recorder::mark_computed() {
  for (auto& [id, touched] : touched_) {
    const StorageRef storage = touched.storage.lock();
    if (storage != nullptr && touched.is_written) storage->contents = Contents::Known;
  }
}

void Recorder::poison() {
  is_finished_ = true;
  recording_.note_replayed();
  for (auto& [id, touched] : touched_) {
    const StorageRef storage = touched.storage.lock();
    if (storage != nullptr && touched.is_written) storage->contents = Contents::Poisoned;
  }
}

}  // namespace ignis::engine
