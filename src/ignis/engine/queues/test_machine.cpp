#include "ignis/engine/queues/test_machine.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>

namespace ignis::engine {
namespace {

using exec::BatchCall;
using exec::BufferRange;
using runtime::Command;
using runtime::QueueId;

uint64_t mix(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x100000001b3u + 0x9e37u; }

/// What a call is about to write: by argument, its bytes.
using Writes = std::vector<std::pair<BufferRange, std::vector<uint8_t>>>;

std::vector<uint8_t> read(const TestMemory& memory, const BufferRange& unbound) {
  const BufferRange range = memory.bound(unbound);
  const auto& bytes = memory[static_cast<size_t>(range.buffer)][static_cast<size_t>(range.lane)];
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(range.offset_bytes);
  return {begin, begin + static_cast<std::ptrdiff_t>(range.size_bytes)};
}

void write(TestMemory& memory, const Writes& writes) {
  for (const auto& [unbound, bytes] : writes) {
    const BufferRange range = memory.bound(unbound);
    auto& to = memory[static_cast<size_t>(range.buffer)][static_cast<size_t>(range.lane)];
    std::copy(bytes.begin(), bytes.end(),
              to.begin() + static_cast<std::ptrdiff_t>(range.offset_bytes));
  }
}

/// Copies move bytes; a program's outputs depend on its name, its lane and everything that it reads.
Writes compute(const TestMemory& memory, bool is_copy, const std::string& name, int lane_variable,
               const std::vector<BufferRange>& arguments, const std::vector<int>& outs) {
  Writes writes;
  if (is_copy) {
    writes.emplace_back(arguments[0], read(memory, arguments[1]));
    return writes;
  }
  uint64_t hash = mix(0xcbf29ce484222325u, static_cast<uint64_t>(lane_variable + 1));
  for (const char c : name) hash = mix(hash, static_cast<uint8_t>(c));
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (std::find(outs.begin(), outs.end(), static_cast<int>(i)) != outs.end()) continue;
    for (const uint8_t byte : read(memory, arguments[i])) hash = mix(hash, byte);
  }
  for (const int out : outs) {
    const BufferRange& range = arguments[static_cast<size_t>(out)];
    std::vector<uint8_t> bytes(range.size_bytes);
    for (size_t k = 0; k < bytes.size(); ++k) {
      bytes[k] = static_cast<uint8_t>(mix(mix(hash, k), static_cast<uint64_t>(out)) >> 24);
    }
    writes.emplace_back(range, std::move(bytes));
  }
  return writes;
}

/// A template's batches on their way.
class Flight {
 public:
  Flight(const exec::QueueTemplate& made, const DeviceTable& table, TestMemory& memory,
         std::mt19937_64& rng)
      : made_(made), table_(table), memory_(memory), rng_(rng) {}

  std::optional<std::string> run() {
    for (;;) {
      // Choices: the host's next step, and each stream of each batch.
      std::vector<std::pair<int, int>> ready;  // batch (-1: the host), stream
      if (next_ < made_.steps.size() && host_can_go()) ready.emplace_back(-1, 0);
      for (size_t i = 0; i < flying_.size(); ++i) {
        for (size_t k = 0; k < flying_[i].streams.size(); ++k) {
          if (can_step(flying_[i], k)) ready.emplace_back(static_cast<int>(i), static_cast<int>(k));
        }
      }
      if (ready.empty()) break;
      const auto [batch, stream] = ready[rng_() % ready.size()];
      if (batch < 0) {
        take_step();
      } else {
        step(flying_[static_cast<size_t>(batch)], static_cast<size_t>(stream));
      }
    }
    if (next_ < made_.steps.size()) return "Step " + std::to_string(next_) + " never starts.";
    for (const Batch& batch : flying_) {
      if (!is_complete(batch)) return "Step " + std::to_string(batch.step) + " never ends.";
    }
    return std::nullopt;
  }

 private:
  struct Stream {
    size_t position = 0;
    uint64_t signal = 0;
    std::vector<std::pair<int, Writes>> flying;  // calls that started and are not complete
  };
  struct Batch {
    int step = 0;
    const exec::Batch* batch = nullptr;
    std::vector<uint64_t> n;  // by device
    std::vector<Stream> streams;
  };

  bool is_complete(const Batch& batch) const {
    for (size_t i = 0; i < batch.n.size(); ++i) {
      const auto found = reached_.find(batch.batch->devices[i]);
      if (found == reached_.end() || found->second < batch.n[i] + 1) return false;
    }
    return true;
  }

  bool host_can_go() const {
    const exec::TemplateStep& step = made_.steps[next_];
    return std::all_of(step.after.begin(), step.after.end(), [&](int earlier) {
      return std::all_of(flying_.begin(), flying_.end(), [&](const Batch& batch) {
        return batch.step != earlier || is_complete(batch);
      });
    });
  }

  void take_step() {
    const exec::TemplateStep& step = made_.steps[next_];
    if (step.is_host) {
      for (const BatchCall& call : step.batch.calls) write(memory_, start(call));
    } else {
      Batch batch;
      batch.step = static_cast<int>(next_);
      batch.batch = &step.batch;
      for (const std::string& device : step.batch.devices) batch.n.push_back(announced_[device]++);
      batch.streams.resize(step.batch.streams.size());
      for (const exec::QueueStream& stream : step.batch.streams) {
        const std::string& device = step.batch.devices[static_cast<size_t>(stream.device)];
        hardware_[{device, stream.queue}].push_back(batch.step);
      }
      flying_.push_back(std::move(batch));
    }
    ++next_;
  }

  Writes start(const BatchCall& call) {
    const bool is_copy =
        call.kind == exec::CallKind::Copy ||
        (call.program >= 0 &&
         made_.programs[static_cast<size_t>(call.program)].name.starts_with("copy_"));
    int lane = -1;
    for (const exec::CallVariable& variable : call.variables) {
      if (variable.name == "lane") lane = static_cast<int>(variable.value);
    }
    return compute(memory_, is_copy, call.name, lane, call.arguments, call.outs);
  }

  bool is_wire(const BufferRange& range) const {
    return made_.buffers[static_cast<size_t>(range.buffer)].is_wire;
  }

  int other_end(const BufferRange& range) const {
    return made_.buffers[static_cast<size_t>(range.buffer)].other_end;
  }

  const Command* next_command(const Batch& batch, size_t index) const {
    const std::vector<Command>& commands = batch.batch->streams[index].commands;
    const size_t position = batch.streams[index].position;
    return position < commands.size() ? &commands[position] : nullptr;
  }
  bool is_in_order(const Batch& batch, size_t index) const {
    const int device = batch.batch->streams[index].device;
    return table_.find(batch.batch->devices[static_cast<size_t>(device)])->is_in_order;
  }

  bool can_step(const Batch& batch, size_t index) const {
    const Stream& stream = batch.streams[index];
    if (!stream.flying.empty()) return true;  // something may complete
    const Command* command = next_command(batch, index);
    if (command == nullptr) return false;
    const exec::QueueStream& of = batch.batch->streams[index];
    const std::string& device = batch.batch->devices[static_cast<size_t>(of.device)];
    if (hardware_.at({device, of.queue}).front() != batch.step) return false;
    return can_run(batch, *command);
  }
  bool can_run(const Batch& batch, const Command& command) const {
    if (command.kind == Command::Kind::WaitReached) {
      const auto device = static_cast<size_t>(command.device);
      const auto found = reached_.find(batch.batch->devices[device]);
      return (found == reached_.end() ? 0 : found->second) >= batch.n[device];
    }
    if (command.kind == Command::Kind::WaitSignal) {
      return batch.streams[static_cast<size_t>(command.signal)].signal >= command.value;
    }
    if (command.kind == Command::Kind::Copy) {
      // A receive waits for its send.
      const BufferRange& source = batch.batch->calls[static_cast<size_t>(command.tag)].arguments[1];
      return !is_wire(source) || sent_.contains(other_end(source));
    }
    return true;
  }

  void step(Batch& batch, size_t index) {
    Stream& stream = batch.streams[index];
    const Command* command = next_command(batch, index);
    const bool must_complete =
        !stream.flying.empty() &&
        (is_in_order(batch, index) || command == nullptr ||
         command->kind == Command::Kind::Barrier || !can_run(batch, *command) || rng_() % 4 == 0);
    if (must_complete) {
      complete(stream, rng_() % stream.flying.size());
      return;
    }
    ++stream.position;
    switch (command->kind) {
      case Command::Kind::Exec:
      case Command::Kind::Copy: {
        const BatchCall& call = batch.batch->calls[static_cast<size_t>(command->tag)];
        stream.flying.emplace_back(command->tag, start_on_device(call));
        break;
      }
      case Command::Kind::StoreSignal: stream.signal = command->value; break;
      case Command::Kind::StoreReached: {
        const auto device = static_cast<size_t>(command->device);
        reached_[batch.batch->devices[device]] = batch.n[device] + 1;
        break;
      }
      default: break;
    }
    if (next_command(batch, index) == nullptr) {
      const exec::QueueStream& of = batch.batch->streams[index];
      // The hardware queue goes on to the next batch, whose start waits for this one's timeline.
      hardware_[{batch.batch->devices[static_cast<size_t>(of.device)], of.queue}].pop_front();
    }
  }

  Writes start_on_device(const BatchCall& call) {
    if (call.kind != exec::CallKind::Copy) return start(call);
    if (is_wire(call.arguments[0])) {
      Writes writes = start(call);
      sent_[call.arguments[0].buffer] = writes[0].second;
      return writes;
    }
    if (is_wire(call.arguments[1])) {
      return {{call.arguments[0], sent_.at(other_end(call.arguments[1]))}};
    }
    return start(call);
  }

  void complete(Stream& stream, size_t which) {
    write(memory_, stream.flying[which].second);
    stream.flying.erase(stream.flying.begin() + static_cast<std::ptrdiff_t>(which));
  }

  const exec::QueueTemplate& made_;
  const DeviceTable& table_;
  TestMemory& memory_;
  std::mt19937_64& rng_;
  size_t next_ = 0;
  std::deque<Batch> flying_;
  std::map<std::string, uint64_t> reached_, announced_;
  std::map<std::pair<std::string, QueueId>, std::deque<int>>
      hardware_;                              // steps, first in first out
  std::map<int, std::vector<uint8_t>> sent_;  // by the wire of the sender
};

}  // namespace

BufferRange TestMemory::bound(BufferRange range) const {
  if (bindings.empty() || static_cast<size_t>(range.buffer) >= bindings.size()) return range;
  const auto [buffer, shift_bytes] = bindings[static_cast<size_t>(range.buffer)];
  range.buffer = buffer;
  range.offset_bytes += shift_bytes;
  return range;
}

TestMemory filled_memory(const std::vector<exec::ScheduleBuffer>& buffers) {
  TestMemory memory;
  uint64_t next = 1;
  for (const exec::ScheduleBuffer& buffer : buffers) {
    memory.buffers.emplace_back();
    for (size_t lane = 0; lane < buffer.devices.size(); ++lane) {
      std::vector<uint8_t> bytes(buffer.size_bytes);
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(mix(0, next++) >> 24);
      memory.buffers.back().push_back(std::move(bytes));
    }
  }
  return memory;
}

void run_in_order(const exec::Schedule& schedule, TestMemory& memory) {
  for (const exec::ScheduleCall& call : schedule.calls) {
    std::vector<BufferRange> arguments;
    int lanes = 1;
    for (const exec::BufferView& view : call.arguments) {
      arguments.push_back(resolve_view(schedule.buffers, view).value());
      if (arguments.back().lane != exec::kAllLanes) continue;
      lanes = static_cast<int>(schedule.buffers[static_cast<size_t>(view.buffer)].devices.size());
    }
    for (int lane = 0; lane < lanes; ++lane) {
      std::vector<BufferRange> of_lane = arguments;
      for (BufferRange& range : of_lane) {
        if (range.lane == exec::kAllLanes) range.lane = lane;
      }
      write(memory, compute(memory, call.kind == exec::CallKind::Copy, call.name,
                            lanes > 1 ? lane : -1, of_lane, call.outs));
    }
  }
}

std::optional<std::string> run_in_flight(const exec::QueueTemplate& made, const DeviceTable& table,
                                         TestMemory& memory, std::mt19937_64& rng) {
  return Flight(made, table, memory, rng).run();
}

}  // namespace ignis::engine
