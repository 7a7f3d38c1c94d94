// What a simulated device does with its words.

#include "ignis/runtime/reasons.h"
#include "ignis/vdev/queue/device.h"
#include "ignis/vdev/queue/world.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

namespace ignis::vdev {

namespace {

constexpr uint64_t kSlotBytes = 16;

Error fault(const std::string& what) { return Error(ErrorCode::InvalidArgument, what); }

}  // namespace

Result<std::optional<Instruction>> SimulatedDevice::head(const Queue& queue) const {
  const uint64_t ready_bytes = queue.doorbell - queue.read;
  if (ready_bytes == 0) return std::optional<Instruction>();
  const auto copy_out = [&](uint64_t size_bytes) {
    std::vector<std::byte> bytes(size_bytes);
    for (uint64_t i = 0; i < size_bytes; ++i) {
      bytes[i] = queue.ring[(queue.read + i) % queue.ring.size()];
    }
    return bytes;
  };
  if (ready_bytes < 4) return fault("a command is cut off");
  const std::vector<std::byte> first = copy_out(4);
  uint32_t header = 0;
  for (size_t i = 4; i-- > 0;) header = header << 8 | std::to_integer<uint32_t>(first[i]);
  IGNIS_TRY_ASSIGN(const uint64_t size_bytes, command_bytes(header));
  if (size_bytes > ready_bytes) return fault("a command is cut off");
  IGNIS_TRY_ASSIGN(Instruction instruction,
                   decode_command(copy_out(size_bytes), capabilities().signal_bits));
  if (instruction.opcode != Opcode::Indirect) {
    return std::optional<Instruction>(std::move(instruction));
  }
  IGNIS_TRY_ASSIGN(const Reached body, reach(instruction.address, instruction.size_bytes));
  if (body.bytes == nullptr) return fault("an indirect leads to a wire");
  IGNIS_TRY_ASSIGN(Instruction inner, decode_command({body.bytes, instruction.size_bytes},
                                                     capabilities().signal_bits));
  if (inner.opcode == Opcode::Indirect) return fault("an indirect leads to another");
  inner.command_bytes = instruction.command_bytes;
  return std::optional<Instruction>(std::move(inner));
}

Step SimulatedDevice::fail(const Queue& queue, const Instruction& instruction,
                           const std::string& why) {
  life_.lose(queue.id.to_string() + ", " + instruction.to_string() + ": " + why);
  return Step::Halted;
}

void SimulatedDevice::advance(Queue& queue, uint64_t size_bytes, int64_t now_ns) {
  queue.read += size_bytes;
  // A device that was not served in time has worked all the same, unless it waited.
  if (queue.was_blocked) queue.local_ns = std::max(queue.local_ns, now_ns);
  queue.was_blocked = queue.has_posted = false;
}

void SimulatedDevice::trace(const Queue& queue, const Instruction& instruction, int64_t begin_ns,
                            int64_t end_ns) {
  if (!world_.is_tracing_) return;
  world_.trace_.push_back({name(), queue.id, instruction, begin_ns, end_ns});
}

Step SimulatedDevice::step(Queue& queue, int64_t now_ns) {
  if (!is_online() || faults_.stands_still) return Step::Halted;
  // Where no order is promised, the newest call that is done completes first.
  for (size_t i = queue.flights.size(); i-- > 0;) {
    if (queue.flights[i].end_ns <= now_ns) return complete(queue, i);
  }
  const Step waiting = queue.flights.empty() ? Step::Blocked : Step::Busy;
  if (capabilities().is_in_order && !queue.flights.empty()) return Step::Busy;
  Result<std::optional<Instruction>> next = head(queue);
  if (!next) {
    life_.lose(queue.id.to_string() + ": " + next.error().message());
    return Step::Halted;
  }
  if (!next->has_value()) return queue.flights.empty() ? Step::Empty : Step::Busy;
  Instruction& instruction = **next;
  switch (instruction.opcode) {
    case Opcode::Barrier:
      if (!queue.flights.empty()) return Step::Busy;
      break;
    case Opcode::Wait: {
      const Result<bool> reached = is_reached(instruction);
      if (!reached) return fail(queue, instruction, reached.error().message());
      if (*reached) break;
      queue.was_blocked = true;
      return waiting;
    }
    case Opcode::Copy: {
      const bool had_posted = queue.has_posted;
      const Result<bool> can = can_transfer(queue, instruction);
      if (!can) return fail(queue, instruction, can.error().message());
      if (!*can) {
        queue.was_blocked = true;
        // A receive that was posted lets its sender go on.
        return queue.has_posted && !had_posted ? Step::Ran : waiting;
      }
      break;
    }
    case Opcode::Store:
    case Opcode::Timestamp:
    case Opcode::Exec:
    case Opcode::Indirect: break;  // head() gives the command it leads to
  }
  advance(queue, instruction.command_bytes, now_ns);
  return begin(queue, std::move(instruction), now_ns);
}

Step SimulatedDevice::begin(Queue& queue, Instruction instruction, int64_t now_ns) {
  int64_t time_ns = 0;
  switch (instruction.opcode) {
    case Opcode::Copy: time_ns = spec_.copy_ns; break;
    case Opcode::Exec: time_ns = spec_.kernel_ns; break;
    case Opcode::Store: time_ns = faults_.late_ns; break;
    case Opcode::Barrier:
    case Opcode::Wait:
    case Opcode::Indirect:
    case Opcode::Timestamp: break;
  }
  const int64_t end_ns = runtime::add_ns(queue.local_ns, time_ns);
  queue.flights.push_back({std::move(instruction), queue.local_ns, end_ns});
  if (time_ns > 0 && end_ns > now_ns) return Step::Ran;
  // Calls take a step for their beginning and one for their end; all else is done at once.
  return time_ns > 0 ? Step::Ran : complete(queue, queue.flights.size() - 1);
}

Step SimulatedDevice::complete(Queue& queue, size_t index) {
  const Flight flight = std::move(queue.flights[index]);
  queue.flights.erase(queue.flights.begin() + static_cast<std::ptrdiff_t>(index));
  queue.local_ns = std::max(queue.local_ns, flight.end_ns);
  Status status;
  switch (flight.instruction.opcode) {
    case Opcode::Store: status = store(flight.instruction); break;
    case Opcode::Timestamp: status = stamp(flight.instruction, flight.end_ns); break;
    case Opcode::Copy: status = run_copy(flight.instruction); break;
    case Opcode::Exec: status = run_exec(flight.instruction); break;
    case Opcode::Barrier:
    case Opcode::Indirect:
    case Opcode::Wait: break;
  }
  if (!status) return fail(queue, flight.instruction, status.error().message());
  trace(queue, flight.instruction, flight.begin_ns, flight.end_ns);
  return Step::Ran;
}

Result<Reached> SimulatedDevice::reach(uint64_t address, uint64_t size_bytes) const {
  IGNIS_TRY_ASSIGN(Reached reached, addresses_.reach(address, size_bytes));
  const std::string& owner = reached.keep->owner();
  if (owner != name()) {
    const SimulatedDevice* peer = world_.find_simulated(owner);
    if (peer != nullptr && peer->faults_.is_removed) {
      return fault("the memory is that of device '" + owner + "', which was removed");
    }
  }
  return reached;
}

Result<bool> SimulatedDevice::is_reached(const Instruction& wait) const {
  IGNIS_TRY_ASSIGN(const Reached word, addresses_.reach(wait.address, sizeof(uint64_t)));
  if (word.bytes == nullptr || wait.address % sizeof(uint64_t) != 0) {
    return fault("there is no word at this address");
  }
  const uint64_t value = std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(word.bytes)).load();
  if (capabilities().signal_bits == 32) {
    return static_cast<uint32_t>(value) >= static_cast<uint32_t>(wait.value);
  }
  return value >= wait.value;
}

Status SimulatedDevice::store(const Instruction& instruction) const {
  IGNIS_TRY_ASSIGN(const Reached word, addresses_.reach(instruction.address, sizeof(uint64_t)));
  if (word.bytes == nullptr || instruction.address % sizeof(uint64_t) != 0) {
    return fault("there is no word at this address");
  }
  if (faults_.stuck_signal) return {};
  if (capabilities().signal_bits == 32) {
    // Little-endian hosts only, as all of this simulation: the upper half stays as it is.
    std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(word.bytes))
        .store(static_cast<uint32_t>(instruction.value));
  } else {
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(word.bytes)).store(instruction.value);
  }
  return {};
}

Status SimulatedDevice::stamp(const Instruction& instruction, int64_t at_ns) const {
  IGNIS_TRY_ASSIGN(const Reached slot, addresses_.reach(instruction.address, kSlotBytes));
  if (slot.bytes == nullptr || instruction.address % sizeof(uint64_t) != 0) {
    return fault("there is no time slot at this address");
  }
  // Split so that days of nanoseconds times the divider do not overflow.
  const auto ns = static_cast<uint64_t>(at_ns);
  const uint64_t per_us = capabilities().ticks_per_us;
  const uint64_t ticks = ns / 1000 * per_us + ns % 1000 * per_us / 1000;
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(slot.bytes + 8)).store(ticks);
  return {};
}

Result<bool> SimulatedDevice::can_transfer(Queue& queue, const Instruction& copy) {
  IGNIS_TRY_ASSIGN(const Reached to, reach(copy.address, copy.size_bytes));
  IGNIS_TRY_ASSIGN(const Reached from, reach(copy.source, copy.size_bytes));
  if (to.wire == nullptr && from.wire == nullptr) return true;
  if (faults_.card_lost) return fault("the network card is lost");
  if (to.wire != nullptr && from.wire != nullptr) return fault("both ends are wires");
  if (to.wire != nullptr) return to.wire->posted > to.wire->sent;
  if (!queue.has_posted) {
    queue.has_posted = true;
    ++from.wire->posted;
  }
  return from.wire->sent > from.wire->received;
}

Status SimulatedDevice::run_copy(const Instruction& copy) {
  IGNIS_TRY_ASSIGN(const Reached to, reach(copy.address, copy.size_bytes));
  IGNIS_TRY_ASSIGN(const Reached from, reach(copy.source, copy.size_bytes));
  if (to.wire != nullptr) {
    std::memcpy(to.wire->data.get(), from.bytes, copy.size_bytes);
    ++to.wire->sent;
  } else if (from.wire != nullptr) {
    std::memcpy(to.bytes, from.wire->data.get(), copy.size_bytes);
    ++from.wire->received;
  } else {
    std::memmove(to.bytes, from.bytes, copy.size_bytes);
  }
  return {};
}

Status SimulatedDevice::run_exec(const Instruction& exec) {
  IGNIS_TRY_ASSIGN(const Reached program, reach(exec.address, kImageHeaderBytes));
  if (program.bytes == nullptr) return fault("a wire holds no program");
  IGNIS_TRY_ASSIGN(const DecodedImage image,
                   decode_image({program.bytes, static_cast<size_t>(program.room_bytes)}));
  if (image.buffer_count != static_cast<int>(exec.arguments.size())) {
    return fault("program '" + image.name + "' takes " + std::to_string(image.buffer_count) +
                 " buffers and is called with " + std::to_string(exec.arguments.size()));
  }
  if (exec.parts < 1) return fault("program '" + image.name + "' is called with no parts");
  std::vector<Reached> reached;
  std::vector<std::byte*> buffers;
  std::vector<uint64_t> room_bytes;
  for (const uint64_t address : exec.arguments) {
    IGNIS_TRY_ASSIGN(Reached argument, reach(address, 0));
    if (argument.bytes == nullptr) return fault("a program cannot touch a wire");
    buffers.push_back(argument.bytes);
    room_bytes.push_back(argument.room_bytes);
    reached.push_back(std::move(argument));  // keeps the memory
  }
  if (image.kind == ImageKind::Function) {
    if (image.function >= world_.functions_.size()) {
      return fault("there is no function " + std::to_string(image.function));
    }
    for (int64_t part = 0; part < exec.parts; ++part) {
      world_.functions_[image.function]({.buffers = buffers,
                                         .room_bytes = room_bytes,
                                         .variables = exec.variables,
                                         .part = part,
                                         .parts = exec.parts});
    }
    return {};
  }
  if (world_.options_.cpu == nullptr) return fault("this world runs no objects");
  std::shared_ptr<const runtime::Program>& loaded = world_.programs_[image.checksum];
  if (loaded == nullptr) {
    ProgramImage object;
    object.name = image.name;
    object.buffer_count = image.buffer_count;
    object.object.assign(image.object.begin(), image.object.end());
    IGNIS_TRY_ASSIGN(loaded, world_.options_.cpu->load(object));
  }
  const std::vector<void*> pointers(buffers.begin(), buffers.end());
  const runtime::Launch launch{loaded.get(), pointers.data(), exec.parts};
  constexpr std::chrono::seconds kLongest(60);
  return world_.options_.cpu->run({&launch, 1}, runtime::deadline_after(kLongest));
}

bool SimulatedDevice::only_waits() const {
  const std::lock_guard lock(world_.mutex_);
  if (!is_online() || faults_.stands_still) return false;
  bool has_work = false;
  for (const Queue& queue : queues_) {
    if (!queue.flights.empty() || queue.write != queue.doorbell) return false;
    if (queue.read == queue.write) continue;
    const Result<std::optional<Instruction>> next = head(queue);
    if (!next || !next->has_value()) return false;
    const Instruction& instruction = **next;
    if (instruction.opcode == Opcode::Wait) {
      const Result<bool> reached = is_reached(instruction);
      if (!reached || *reached) return false;
    } else if (!queue.was_blocked) {  // else: the other end of a wire
      return false;
    }
    has_work = true;
  }
  return has_work;
}

std::string SimulatedDevice::describe_queues() const {
  std::string text;
  for (const Queue& queue : queues_) {
    if (!queue.flights.empty()) {
      text += "; " + queue.id.to_string() + " is in '" +
              queue.flights.front().instruction.to_string() + "'";
    } else if (queue.read != queue.doorbell) {
      const Result<std::optional<Instruction>> next = head(queue);
      if (next && next->has_value()) {
        text += "; " + queue.id.to_string() + " stands at '" + (**next).to_string() + "'";
      }
    } else if (queue.write != queue.doorbell) {
      text += "; " + queue.id.to_string() + " has " + std::to_string(queue.write - queue.doorbell) +
              " bytes without a doorbell";
    }
  }
  return text.empty() ? "; its queues are empty" : text;
}

}  // namespace ignis::vdev
