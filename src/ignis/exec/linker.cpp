#include "ignis/exec/linker.h"

#include "ignis/base/math.h"
#include "ignis/runtime/reasons.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace ignis::exec {
namespace {

using runtime::MemoryRef;
using runtime::Patch;
using runtime::Purpose;
using runtime::QueuedDevice;

/// Of parts of one block.
constexpr uint64_t kPlaceholderAlignment = 128;

Error unresolved(const ScheduleBuffer& buffer, const std::string& what) {
  return Error(ErrorCode::InvalidArgument, "Buffer '" + buffer.name + "' " + what + ".",
               "UnresolvedPatch");
}

}  // namespace

Linker::Linker(std::shared_ptr<Machine> machine, const QueueTemplate& queues,
               std::span<const BoundInput> inputs, LinkMode mode, std::span<const HeldMemory> held)
    : machine_(std::move(machine)), queues_(queues), inputs_(inputs), held_(held), mode_(mode) {}

Result<std::unique_ptr<LinkedSchedule>> Linker::link() {
  const int64_t begin_ns = machine_->clock().now_ns();
  made_ = std::make_unique<LinkedSchedule>();
  made_->machine_ = machine_;
  made_->queues_ = &queues_;
  made_->mode_ = mode_;
  made_->aliases_.emplace(queues_);
  made_->variables_.resize(static_cast<size_t>(count_variables(queues_)));
  if (mode_ == LinkMode::Ring) made_->ring_token_ = std::make_shared<RunToken>();
  IGNIS_TRY(collect_devices());
  IGNIS_TRY(place_buffers());
  IGNIS_TRY(open_wires());
  request_slots_and_parts();
  IGNIS_TRY(pack());
  for (LinkedStep& step : made_->steps_) {
    if (step.batch != nullptr) IGNIS_TRY(link_batch(*step.batch));
    if (step.other != nullptr) IGNIS_TRY(link_other(*step.other));
  }
  collect_owners();
  made_->link_ns_ = machine_->clock().now_ns() - begin_ns;
  return std::move(made_);
}

Status Linker::collect_devices() {
  std::set<std::string> names;
  for (const TemplateStep& step : queues_.steps) {
    LinkedStep linked;
    if (is_other(step)) {
      linked.other = std::make_unique<LinkedOther>();
      linked.other->batch = &step.batch;
      made_->steps_.push_back(std::move(linked));
      continue;
    }
    linked.batch = std::make_unique<LinkedBatch>();
    linked.batch->batch = &step.batch;
    linked.batch->is_host = step.is_host;
    for (const std::string& name : step.batch.devices) {
      QueuedDevice* device = machine_->find(name);
      if (device == nullptr) {
        return Error(ErrorCode::NotFound, "Device '" + name + "' is not open.",
                     step.is_host ? "NoHostDevice" : "NoSuchDevice");
      }
      if (!device->is_online()) return runtime::device_unavailable(name, device->state());
      linked.batch->devices.push_back(device);
      if (names.insert(name).second) made_->devices_.push_back({device, device->generation()});
    }
    made_->steps_.push_back(std::move(linked));
  }
  return Status::ok();
}

Status Linker::place_buffers() {
  for (const ScheduleBuffer& buffer : queues_.buffers) {
    is_used_.emplace_back(buffer.devices.size(), false);
    made_->buffers_.emplace_back(buffer.devices.size());
  }
  for (const TemplateStep& step : queues_.steps) {
    for (const BatchCall& call : step.batch.calls) {
      for (const BufferRange& range : call.arguments) {
        std::vector<bool>& used = is_used_[static_cast<size_t>(range.buffer)];
        for (size_t lane = 0; lane < used.size(); ++lane) {
          if (range.lane == kAllLanes || range.lane == static_cast<int>(lane)) used[lane] = true;
        }
      }
    }
  }
  for (size_t i = 0; i < queues_.buffers.size(); ++i) {
    for (size_t lane = 0; lane < is_used_[i].size(); ++lane) {
      if (is_used_[i][lane]) IGNIS_TRY(place_buffer(i, lane));
    }
  }
  // Baked inputs meet each other here, others at each run.
  if (queues_.has_link_time_inputs) return made_->aliases_->check(inputs_);
  return Status::ok();
}

Status Linker::place_buffer(size_t index, size_t lane) {
  const ScheduleBuffer& buffer = queues_.buffers[index];
  Placement& to = made_->buffers_[index][lane];
  if (buffer.is_wire) return Status::ok();        // open_wires()
  if (buffer.variable >= 0) return Status::ok();  // cells are parts of streams
  if (buffer.input >= 0) {
    if (!queues_.has_link_time_inputs) return Status::ok();  // each run binds it
    const auto input = static_cast<size_t>(buffer.input);
    if (input >= inputs_.size() || lane >= inputs_[input].lanes.size() ||
        inputs_[input].lanes[lane].memory == nullptr) {
      return unresolved(buffer, "is input " + std::to_string(buffer.input) + ", lane " +
                                    std::to_string(lane) + ", and the link has no memory for it");
    }
    to = inputs_[input].lanes[lane];
  } else if (const HeldMemory* held = find_held(index);
             held != nullptr && lane < held->lanes.size()) {
    to = held->lanes[lane];
  } else if (lane < buffer.memory.size() && buffer.memory[lane] != nullptr) {
    to = {buffer.memory[lane], 0, buffer.memory[lane]->size_bytes()};
  } else if (!buffer.stage_for.empty()) {
    IGNIS_TRY_ASSIGN(const MemoryRef stage, machine_->stage(buffer));
    to = {stage, 0, stage->size_bytes()};
    made_->stages_.push_back(buffer.stage_for);
  } else {
    requests_.push_back({buffer.devices[lane], Purpose::Data, buffer.size_bytes, &to});
    return Status::ok();
  }
  if (!is_range_inside(to.offset_bytes, to.size_bytes, to.memory->size_bytes()) ||
      to.size_bytes < buffer.size_bytes) {
    return Error(ErrorCode::InvalidArgument,
                 "Buffer '" + buffer.name + "' has " + std::to_string(buffer.size_bytes) +
                     " bytes; the memory that it is bound to has " + std::to_string(to.size_bytes) +
                     ".",
                 "InputTooSmall");
  }
  return Status::ok();
}

const HeldMemory* Linker::find_held(size_t buffer) const {
  const auto found = std::lower_bound(
      held_.begin(), held_.end(), buffer,
      [](const HeldMemory& a, size_t b) { return static_cast<size_t>(a.buffer) < b; });
  return found != held_.end() && static_cast<size_t>(found->buffer) == buffer ? &*found : nullptr;
}

/// Wires come in pairs: the send's, then the receive's.
Status Linker::open_wires() {
  std::vector<size_t> wires;
  for (size_t i = 0; i < queues_.buffers.size(); ++i) {
    if (queues_.buffers[i].is_wire) wires.push_back(i);
  }
  for (size_t i = 0; i < wires.size(); ++i) {
    const ScheduleBuffer& wire = queues_.buffers[wires[i]];
    QueuedDevice* device = machine_->find(wire.devices.front());
    if (device == nullptr) return unresolved(wire, "is a wire of a device that is not open");
    const MemoryRef other = i % 2 == 0 ? nullptr : made_->buffers_[wires[i - 1]][0].memory;
    IGNIS_TRY_ASSIGN(const MemoryRef end, device->open_wire(wire.size_bytes, other));
    made_->buffers_[wires[i]][0] = {end, 0, end->size_bytes()};
  }
  return Status::ok();
}

void Linker::request_slots_and_parts() {
  for (LinkedStep& step : made_->steps_) {
    if (step.batch == nullptr) continue;
    LinkedBatch& linked = *step.batch;
    const Batch& batch = *linked.batch;
    linked.slots.resize(batch.devices.size());
    for (size_t i = 0; i < batch.devices.size(); ++i) {
      requests_.push_back({batch.devices[i], Purpose::Signals,
                           slot_bytes(batch, static_cast<int>(i), queues_.is_profiled),
                           &linked.slots[i]});
    }
    size_t parts = 0;
    for (const QueueStream& stream : batch.streams) parts += stream.encoded.parts.size();
    linked.parts.resize(parts);
    size_t next = 0;
    for (const QueueStream& stream : batch.streams) {
      for (const runtime::EncodedPart& part : stream.encoded.parts) {
        requests_.push_back({batch.devices[static_cast<size_t>(stream.device)], part.purpose,
                             part.bytes.size(), &linked.parts[next++]});
      }
    }
  }
}

/// Placeholders of one purpose and owner become parts of one block.
Status Linker::pack() {
  std::map<std::pair<std::string, Purpose>, std::vector<const Request*>> groups;
  for (const Request& request : requests_) {
    groups[{request.owner, request.purpose}].push_back(&request);
  }
  for (const auto& [key, group] : groups) {
    uint64_t total = 0;
    std::vector<uint64_t> offsets;
    for (const Request* request : group) {
      const auto padded = checked_add(total, kPlaceholderAlignment - 1);
      const uint64_t offset = padded.value_or(0) / kPlaceholderAlignment * kPlaceholderAlignment;
      const auto end = checked_add(offset, request->size_bytes);
      if (!padded || !end) {
        return Error(ErrorCode::OutOfMemory,
                     "The placeholders on '" + key.first + "' take more than 64 bits of bytes.");
      }
      offsets.push_back(offset);
      total = *end;
    }
    Placement block;
    if (mode_ == LinkMode::Ring) {
      IGNIS_TRY_ASSIGN(block, machine_->reserve(key.first, total, key.second, made_->ring_token_));
    } else {
      IGNIS_TRY_ASSIGN(block, machine_->allocate(key.first, total, key.second));
    }
    if (key.second == Purpose::Signals && block.memory->host() != nullptr) {
      std::memset(block.memory->host() + block.offset_bytes, 0, total);
    }
    for (size_t i = 0; i < group.size(); ++i) {
      *group[i]->to = {block.memory, block.offset_bytes + offsets[i], group[i]->size_bytes};
    }
  }
  return Status::ok();
}

Result<uint64_t> Linker::address_of(const LinkedBatch& batch, QueuedDevice& accessor,
                                    const LinkAddress& address) {
  const auto index = static_cast<size_t>(address.index);
  MemoryRef memory;
  uint64_t offset_bytes = address.offset_bytes;
  switch (address.kind) {
    case LinkAddress::Kind::Buffer: {
      const ScheduleBuffer& buffer = queues_.buffers[index];
      const Placement& at = made_->buffers_[index][static_cast<size_t>(address.lane)];
      if (at.memory == nullptr) {
        return unresolved(buffer, "has no memory and stands in the words of a batch");
      }
      memory = at.memory;
      offset_bytes += at.offset_bytes;
      break;
    }
    case LinkAddress::Kind::Program: {
      const ProgramImage& image = queues_.programs[index];
      IGNIS_TRY_ASSIGN(memory, machine_->image(accessor, image));
      break;
    }
    case LinkAddress::Kind::Signals:
      memory = batch.slots[index].memory;
      offset_bytes += batch.slots[index].offset_bytes;
      break;
    case LinkAddress::Kind::Timeline: {
      const runtime::Timeline& timeline = batch.devices[index]->timeline();
      memory = timeline.memory;
      offset_bytes += timeline.offset_bytes;
      if (memory == nullptr) {
        return Error(ErrorCode::Unsupported,
                     "Device '" + batch.devices[index]->name() + "' shows nobody its timeline.",
                     std::string(runtime::reason::kNotMappable));
      }
      break;
    }
  }
  IGNIS_TRY_ASSIGN(const uint64_t base, accessor.map(memory));
  made_->kept_.push_back(std::move(memory));
  return base + offset_bytes;
}

Status Linker::link_words(LinkedBatch& batch, const QueueStream& stream,
                          std::span<const Patch> patches, std::span<const uint64_t> parts,
                          std::span<std::byte> bytes, std::vector<PatchRecord>& run_time) {
  QueuedDevice& device = *batch.devices[static_cast<size_t>(stream.device)];
  for (const Patch& patch : patches) {
    const auto index = static_cast<size_t>(patch.index);
    PatchRecord record{patch.offset_bytes, patch.width_bytes, 0, patch.addend};
    uint64_t value = 0;
    switch (patch.source) {
      case Patch::Source::Address: {
        IGNIS_TRY_ASSIGN(value, address_of(batch, device, stream.addresses[index]));
        break;
      }
      case Patch::Source::Part: value = parts[index]; break;
      case Patch::Source::Input:
        record.value = static_cast<uint32_t>(index);
        run_time.push_back(record);
        continue;
      case Patch::Source::Timeline:
        record.value = static_cast<uint32_t>(batch.batch->table.size() + index);
        run_time.push_back(record);
        continue;
      case Patch::Source::Variable:
        record.value =
            static_cast<uint32_t>(batch.batch->table.size() + batch.devices.size() + index);
        run_time.push_back(record);
        continue;
    }
    store_word(bytes.data() + patch.offset_bytes, patch.width_bytes,
               value + static_cast<uint64_t>(patch.addend));
  }
  return Status::ok();
}

Status Linker::link_batch(LinkedBatch& linked) {
  const Batch& batch = *linked.batch;
  if (linked.is_host) IGNIS_TRY(check_host_calls(batch));
  linked.values.resize(batch.table.size() + batch.devices.size() + made_->variables_.size());
  linked.stream_words.resize(batch.streams.size());
  size_t next_part = 0;
  for (size_t i = 0; i < batch.streams.size(); ++i) {
    const QueueStream& stream = batch.streams[i];
    QueuedDevice& device = *linked.devices[static_cast<size_t>(stream.device)];
    const size_t first_part = next_part;
    std::vector<uint64_t> parts;
    for (size_t k = 0; k < stream.encoded.parts.size(); ++k) {
      const Placement& at = linked.parts[next_part++];
      IGNIS_TRY_ASSIGN(const uint64_t base, device.map(at.memory));
      parts.push_back(base + at.offset_bytes);
    }
    for (size_t k = 0; k < stream.encoded.parts.size(); ++k) {
      const runtime::EncodedPart& part = stream.encoded.parts[k];
      const Placement& at = linked.parts[first_part + k];
      std::vector<std::byte> bytes = part.bytes;
      LinkedWords words;
      IGNIS_TRY(link_words(linked, stream, part.patches, parts, bytes, words.patches));
      IGNIS_TRY(device.upload(at.memory, at.offset_bytes, bytes));
      if (words.patches.empty()) continue;
      if (device.capabilities().crosses_host_memory) {
        words.window = &device;
        words.memory = at.memory;
        words.offset_bytes = at.offset_bytes;
        linked.words.add(std::move(words));
        continue;
      }
      if (at.memory->host() == nullptr) {
        return Error(ErrorCode::Unsupported,
                     "Device '" + device.name() +
                         "' places words that change with each run where the host cannot write.",
                     std::string(runtime::reason::kNotMappable));
      }
      words.words = {at.memory->host() + at.offset_bytes, bytes.size()};
      linked.words.add(std::move(words));
    }
    std::vector<std::byte>& bytes = linked.stream_words[i];
    bytes = stream.encoded.bytes;
    LinkedWords words;
    IGNIS_TRY(link_words(linked, stream, stream.encoded.patches, parts, bytes, words.patches));
    words.words = bytes;
    linked.submits.push_back({stream.device, stream.queue, bytes});
    if (!words.patches.empty()) linked.words.add(std::move(words));
  }
  IGNIS_TRY(load_submit_program(linked));

  std::vector<std::atomic<uint64_t>*> signals;
  for (size_t i = 0; i < batch.streams.size(); ++i) {
    const Placement& at = linked.slots[static_cast<size_t>(batch.streams[i].device)];
    if (at.memory->host() == nullptr) {
      return Error(ErrorCode::Unsupported,
                   "The host does not reach the signals of device '" + at.memory->owner() + "'.",
                   std::string(runtime::reason::kNotMappable));
    }
    signals.push_back(reinterpret_cast<std::atomic<uint64_t>*>(
        at.memory->host() + at.offset_bytes +
        kSlotBytes * signal_slot(batch, static_cast<int>(i))));
  }
  linked.fence.emplace(linked.devices, std::move(signals));
  linked.patch = [to = &linked](std::span<const uint64_t> announced_before) {
    std::copy(announced_before.begin(), announced_before.end(),
              to->values.begin() + static_cast<std::ptrdiff_t>(to->batch->table.size()));
    return to->words.fill(to->values);
  };
  return Status::ok();
}

Status Linker::load_submit_program(LinkedBatch& linked) {
  const int number = linked.batch->submit_program;
  // A machine that runs nothing on the host loads nothing for it.
  if (number < 0 || machine_->options().host == nullptr) return Status::ok();
  const SubmitProgram& made = queues_.submit_programs[static_cast<size_t>(number)];
  IGNIS_TRY_ASSIGN(std::shared_ptr<const runtime::Program> program,
                   machine_->host_program(made.image));
  return linked.words.use(made, std::move(program));
}

Status Linker::check_host_calls(const Batch& batch) const {
  for (const BatchCall& call : batch.calls) {
    if (call.kind != CallKind::Program) continue;
    const ProgramImage& image = queues_.programs[static_cast<size_t>(call.program)];
    if (image.buffer_count < 0 || image.buffer_count > static_cast<int>(call.arguments.size())) {
      return Error(ErrorCode::InvalidArgument,
                   "Call '" + call.name + "' has " + std::to_string(call.arguments.size()) +
                       " buffers; its program takes " + std::to_string(image.buffer_count) + ".",
                   "BadCall");
    }
  }
  return Status::ok();
}

Status Linker::link_other(LinkedOther& run) {
  for (const BatchCall& call : run.batch->calls) IGNIS_TRY(link_other_call(run, call));
  return Status::ok();
}

Status Linker::link_other_call(LinkedOther& run, const BatchCall& call) {
  run.first_pointer.push_back(run.pointers.size());
  for (const BufferRange& range : call.arguments) {
    const auto index = static_cast<size_t>(range.buffer);
    const ScheduleBuffer& buffer = queues_.buffers[index];
    if (range.lane < 0) return unresolved(buffer, "is used on the host with all of its lanes");
    const Placement& at = made_->buffers_[index][static_cast<size_t>(range.lane)];
    void* pointer = nullptr;
    if (buffer.variable >= 0) {
      auto* cell = reinterpret_cast<std::byte*>(made_->variables_.data() +
                                                static_cast<size_t>(buffer.variable));
      pointer = cell + range.offset_bytes;
    } else if (buffer.input >= 0 && !queues_.has_link_time_inputs) {
      run.inputs.push_back({run.pointers.size(), buffer.input, range.lane, range.offset_bytes});
    } else if (at.memory == nullptr || at.memory->host() == nullptr) {
      return unresolved(
          buffer, "is not within the host's reach, and call '" + call.name + "' uses it there");
    } else {
      pointer = at.memory->host() + at.offset_bytes + range.offset_bytes;
    }
    run.pointers.push_back(pointer);
  }
  if (!machine_->options().other_call) {
    return Error(ErrorCode::Unsupported, "Nobody runs call '" + call.name + "'.", "NoOtherCall");
  }
  return Status::ok();
}

/// Owners whose memory a run touches without an order by timelines: each run looks who is at work there.
void Linker::collect_owners() {
  std::set<std::string> owners;
  for (const TemplateStep& step : queues_.steps) {
    for (const TouchedOwner& touched : step.batch.touched) owners.insert(touched.owner);
    // No timeline of theirs tells that a host run is at work on their memory.
    if (!step.is_host) owners.insert(step.batch.devices.begin(), step.batch.devices.end());
  }
  made_->owners_.assign(owners.begin(), owners.end());
  made_->before_.resize(owners.size());
  std::vector<std::string>& stages = made_->stages_;
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  std::sort(made_->kept_.begin(), made_->kept_.end());
  made_->kept_.erase(std::unique(made_->kept_.begin(), made_->kept_.end()), made_->kept_.end());
}

}  // namespace ignis::exec
