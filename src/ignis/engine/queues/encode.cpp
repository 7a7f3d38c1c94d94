#include "ignis/engine/queues/encode.h"

#include "ignis/base/math.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ignis::engine {
namespace {

using exec::Batch;
using exec::BatchCall;
using exec::LinkAddress;
using exec::QueueStream;
using exec::QueueTemplate;
using exec::TableEntry;
using runtime::Command;
using runtime::Patch;
using runtime::QueuedDevice;

constexpr uint64_t kSlotBytes = 16;  // a signal or time slot: the signal, then the time
constexpr uint64_t kTimeInSlot = 8;

/// Gives each key a number, in the order of first use.
template <typename Key>
class Numbers {
 public:
  explicit Numbers(std::vector<Key>& keys) : keys_(keys) { keys_.clear(); }
  int of(const Key& key) {
    const auto [found, is_new] = numbers_.try_emplace(key, static_cast<int>(keys_.size()));
    if (is_new) keys_.push_back(key);
    return found->second;
  }

 private:
  std::vector<Key>& keys_;
  std::map<Key, int> numbers_;
};

class StreamEncoder {
 public:
  StreamEncoder(const QueueTemplate& made, Batch& batch, QueueStream& stream,
                Numbers<TableEntry>& table, const QueuedDevice& device)
      : made_(made),
        variables_(static_cast<size_t>(exec::count_variables(made))),
        batch_(batch),
        stream_(stream),
        table_(table),
        device_(device),
        addresses_(stream.addresses) {}

  Status encode() {
    stream_.encoded = {};
    IGNIS_TRY(describe_calls());
    describe_places();
    const QueuedDevice::Encoding encoding{calls_, signals_, slots_, timelines_};
    for (const Command& command : stream_.commands) {
      IGNIS_TRY(device_.encode(command, encoding, stream_.encoded));
    }
    const std::string where = device_.name() + "/" + stream_.queue.to_string();
    IGNIS_TRY(check(stream_.encoded.bytes, stream_.encoded.patches, where));
    for (const runtime::EncodedPart& part : stream_.encoded.parts) {
      IGNIS_TRY(check(part.bytes, part.patches, "a part of " + where));
    }
    const uint64_t ring_bytes = device_.ring_bytes(stream_.queue);
    if (stream_.encoded.bytes.size() > ring_bytes) {
      return Error(ErrorCode::InvalidArgument,
                   "A batch needs " + std::to_string(stream_.encoded.bytes.size()) +
                       " bytes of commands on queue " + where + ", whose ring holds " +
                       std::to_string(ring_bytes) + "; cut the schedule into smaller ones.",
                   "SubmitTooLarge");
    }
    return Status::ok();
  }

 private:
  int number(LinkAddress::Kind kind, int index, int lane = 0, uint64_t offset_bytes = 0) {
    return addresses_.of({kind, index, lane, offset_bytes});
  }

  Status describe_calls() {
    calls_.resize(batch_.calls.size());
    for (const Command& command : stream_.commands) {
      if (command.kind != Command::Kind::Exec && command.kind != Command::Kind::Copy) continue;
      const BatchCall& call = batch_.calls[static_cast<size_t>(command.tag)];
      runtime::EncodedCall& to = calls_[static_cast<size_t>(command.tag)];
      if (call.kind == exec::CallKind::Program) {
        to.program = number(LinkAddress::Kind::Program, call.program);
      } else if (!call.arguments.empty()) {
        to.size_bytes = call.arguments[0].size_bytes;
      }
      to.parts = call.parts;
      to.flops = call.flops;
      to.bytes = call.bytes;
      for (const exec::CallVariable& variable : call.variables) {
        to.variables.push_back({variable.run_time, variable.value});
      }
      for (const exec::BufferRange& range : call.arguments) {
        IGNIS_TRY_ASSIGN(const Patch argument, describe(call, range));
        to.arguments.push_back(argument);
      }
    }
    return Status::ok();
  }

  Result<Patch> describe(const BatchCall& call, const exec::BufferRange& range) {
    const exec::ScheduleBuffer& buffer = made_.buffers[static_cast<size_t>(range.buffer)];
    Patch patch;
    if (range.lane < 0) {
      return Error(
          ErrorCode::Internal,
          "Call '" + call.name + "' of a batch takes all lanes of buffer '" + buffer.name + "'.",
          "BadLane");
    }
    if (range.offset_bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Error(ErrorCode::InvalidArgument,
                   "Call '" + call.name + "' reaches byte " + std::to_string(range.offset_bytes) +
                       " of buffer '" + buffer.name + "'.",
                   "BadOffset");
    }
    patch.addend = static_cast<int64_t>(range.offset_bytes);
    if (buffer.variable >= 0) {
      patch.source = Patch::Source::Part;
      patch.index = cell_of(buffer.variable);
    } else if (buffer.input >= 0 && !made_.has_link_time_inputs) {
      patch.source = Patch::Source::Input;
      patch.index = table_.of({buffer.input, range.lane, stream_.device});
    } else {
      patch.index = number(LinkAddress::Kind::Buffer, range.buffer, range.lane);
    }
    return patch;
  }

  /// The part that holds a run-time variable for this stream's device.
  int cell_of(int variable) {
    std::vector<runtime::EncodedPart>& parts = stream_.encoded.parts;
    const auto [found, is_new] = cells_.try_emplace(variable, static_cast<int>(parts.size()));
    if (is_new) {
      runtime::EncodedPart cell;
      cell.bytes.resize(exec::kVariableBytes);
      cell.patches.push_back({.source = Patch::Source::Variable, .index = variable});
      parts.push_back(std::move(cell));
    }
    return found->second;
  }

  /// Numbers only what the stream names: each number costs the link a mapping.
  void describe_places() {
    signals_.assign(batch_.streams.size(), -1);
    timelines_.assign(batch_.devices.size(), -1);
    for (const Command& command : stream_.commands) {
      switch (command.kind) {
        case Command::Kind::WaitSignal:
        case Command::Kind::StoreSignal: {
          const QueueStream& other = batch_.streams[static_cast<size_t>(command.signal)];
          signals_[static_cast<size_t>(command.signal)] =
              number(LinkAddress::Kind::Signals, other.device, 0,
                     exec::kSlotBytes * exec::signal_slot(batch_, command.signal));
          break;
        }
        case Command::Kind::WaitReached:
        case Command::Kind::StoreReached:
          timelines_[static_cast<size_t>(command.device)] =
              number(LinkAddress::Kind::Timeline, command.device);
          break;
        case Command::Kind::Timestamp: {
          const auto slot = static_cast<size_t>(command.slot);
          if (slots_.size() <= slot) slots_.resize(slot + 1, -1);
          slots_[slot] =
              number(LinkAddress::Kind::Signals, stream_.device, 0, exec::kSlotBytes * slot);
          break;
        }
        case Command::Kind::Barrier:
        case Command::Kind::Exec:
        case Command::Kind::Copy: break;
      }
    }
  }

  static Error bad_patch(const std::string& where, const Patch& patch, const std::string& what) {
    return Error(ErrorCode::Internal,
                 "The words of " + where + " have a patch at byte " +
                     std::to_string(patch.offset_bytes) + " that " + what + ".",
                 "BadPatch");
  }

  Status check(const std::vector<std::byte>& bytes, const std::vector<Patch>& patches,
               const std::string& where) const {
    if (bytes.size() > std::numeric_limits<uint32_t>::max()) {
      return Error(ErrorCode::InvalidArgument,
                   "The words of " + where + " take " + std::to_string(bytes.size()) +
                       " bytes; offsets have 32 bits.",
                   "SubmitTooLarge");
    }
    uint64_t free_from = 0;
    for (const Patch& patch : patches) {
      const uint64_t width = patch.width_bytes;
      if (width != 1 && width != 2 && width != 4 && width != 8) {
        return bad_patch(where, patch, "is " + std::to_string(width) + " bytes wide");
      }
      if (patch.offset_bytes < free_from) return bad_patch(where, patch, "lies over another");
      if (!is_range_inside(patch.offset_bytes, width, bytes.size())) {
        return bad_patch(where, patch,
                         "ends behind their " + std::to_string(bytes.size()) + " bytes");
      }
      free_from = patch.offset_bytes + width;
      const size_t count = count_of(patch.source);
      if (patch.index < 0 || static_cast<size_t>(patch.index) >= count) {
        return bad_patch(
            where, patch,
            "names number " + std::to_string(patch.index) + " of " + std::to_string(count));
      }
      const bool is_address = patch.source == Patch::Source::Address ||
                              patch.source == Patch::Source::Part ||
                              patch.source == Patch::Source::Input;
      if (is_address && width != 8) return bad_patch(where, patch, "is too narrow for an address");
    }
    return Status::ok();
  }

  size_t count_of(Patch::Source source) const {
    switch (source) {
      case Patch::Source::Address: return stream_.addresses.size();
      case Patch::Source::Part: return stream_.encoded.parts.size();
      case Patch::Source::Timeline: return batch_.devices.size();
      case Patch::Source::Input: return batch_.table.size();
      case Patch::Source::Variable: return variables_;
    }
    return 0;
  }

  const QueueTemplate& made_;
  size_t variables_;
  Batch& batch_;
  QueueStream& stream_;
  Numbers<TableEntry>& table_;
  const QueuedDevice& device_;
  Numbers<LinkAddress> addresses_;
  std::map<int, int> cells_;  ///< part of each run-time variable
  std::vector<runtime::EncodedCall> calls_;
  std::vector<int> signals_, slots_, timelines_;
};

}  // namespace

Status encode_template(QueueTemplate& made, const DeviceFinder& find_device) {
  for (exec::TemplateStep& step : made.steps) {
    Batch& batch = step.batch;
    Numbers<TableEntry> table(batch.table);
    for (QueueStream& stream : batch.streams) {
      const std::string& name = batch.devices[static_cast<size_t>(stream.device)];
      const QueuedDevice* device = find_device(name);
      if (device == nullptr) {
        return Error(ErrorCode::NotFound, "Device '" + name + "' is not open.", "NoSuchDevice");
      }
      IGNIS_TRY(StreamEncoder(made, batch, stream, table, *device).encode());
    }
  }
  return Status::ok();
}

}  // namespace ignis::engine
