#include "ignis/exec/check_template.h"

#include "ignis/base/math.h"

#include <algorithm>
#include <limits>
#include <string>

namespace ignis::exec {
namespace {

using runtime::Command;
using runtime::Patch;

template <typename T>
bool is_index(int64_t index, const std::vector<T>& of) {
  return index >= 0 && static_cast<uint64_t>(index) < of.size();
}

class TemplateCheck {
 public:
  explicit TemplateCheck(const QueueTemplate& queues) : queues_(queues) {}

  Status check() {
    IGNIS_TRY(check_buffers());
    variables_ = static_cast<size_t>(count_variables(queues_));
    for (const ProgramImage& program : queues_.programs) {
      if (program.buffer_count < 0) return bad("has program '" + program.name + "' of no buffers");
    }
    for (size_t i = 0; i < queues_.steps.size(); ++i) {
      Status status = check_step(i);
      if (!status) return std::move(status).error().with_context("step " + std::to_string(i));
    }
    return check_uses();
  }

 private:
  static Error bad(const std::string& what) {
    return Error(ErrorCode::InvalidArgument, "The queue template " + what + ".", "BadTemplate");
  }

  Status check_buffers() {
    if (queues_.input_count < 0) return bad("has a negative number of inputs");
    // Each of them costs a run something, and a used one has a buffer.
    if (static_cast<uint64_t>(queues_.input_count) > queues_.buffers.size() + kMostUnusedInputs) {
      return bad("has " + std::to_string(queues_.input_count) + " inputs and " +
                 std::to_string(queues_.buffers.size()) + " buffers");
    }
    lanes_of_input_.resize(static_cast<size_t>(queues_.input_count), 0);
    for (const ScheduleBuffer& buffer : queues_.buffers) {
      const auto bad_buffer = [&](const std::string& what) {
        return bad("has buffer '" + buffer.name + "' " + what);
      };
      if (buffer.devices.empty()) return bad_buffer("on no device");
      if (buffer.size_bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return bad_buffer("of more than 2^63 bytes");
      }
      if (buffer.input < -1 || buffer.input >= queues_.input_count) {
        return bad_buffer("that is input " + std::to_string(buffer.input) + " of " +
                          std::to_string(queues_.input_count));
      }
      if (buffer.memory.size() > buffer.devices.size()) {
        return bad_buffer("with more memory than lanes");
      }
      if (buffer.other_end != -1 && !is_index(buffer.other_end, queues_.buffers)) {
        return bad_buffer("whose other end is no buffer");
      }
      if (buffer.is_wire && (buffer.input >= 0 || !buffer.memory.empty())) {
        return bad_buffer("that is a wire and has memory");
      }
      if (buffer.variable < -1 || buffer.variable >= kMostVariables ||
          (buffer.variable >= 0 && (buffer.input >= 0 || buffer.is_wire || !buffer.memory.empty() ||
                                    buffer.size_bytes != kVariableBytes))) {
        return bad_buffer("that is no cell of run-time variable " +
                          std::to_string(buffer.variable));
      }
      if (buffer.input < 0) continue;
      // The run asks of an input as many lanes as its widest buffer has; every use is checked against the narrowest.
      size_t& lanes = lanes_of_input_[static_cast<size_t>(buffer.input)];
      lanes = lanes == 0 ? buffer.devices.size() : std::min(lanes, buffer.devices.size());
    }
    return Status::ok();
  }

  Status check_step(size_t index) {
    const TemplateStep& step = queues_.steps[index];
    int last = -1;
    for (const int earlier : step.after) {
      if (earlier <= last || static_cast<size_t>(earlier) >= index) {
        return bad("has a step that starts after step " + std::to_string(earlier));
      }
      last = earlier;
    }
    if (step.is_host) IGNIS_TRY(check_host_run(step.batch));
    return check_batch(step.batch);
  }

  Status check_host_run(const Batch& run) {
    if (run.devices.size() != 1) return bad("has a host run on other than the host");
    for (const BatchCall& call : run.calls) {
      if ((call.kind == CallKind::Other) != (run.calls.front().kind == CallKind::Other)) {
        return bad("has call '" + call.name + "' of another kind than its host run");
      }
      IGNIS_TRY(check_call(call));
      for (const BufferRange& range : call.arguments) {
        if (range.lane < 0 || buffer_of(range).is_wire) {
          return bad("has call '" + call.name + "' of the host on all lanes or on a wire");
        }
      }
    }
    return Status::ok();
  }

  const ScheduleBuffer& buffer_of(const BufferRange& range) const {
    return queues_.buffers[static_cast<size_t>(range.buffer)];
  }

  Status check_call(const BatchCall& call) {
    const auto bad_call = [&](const std::string& what) {
      return bad("has call '" + call.name + "' " + what);
    };
    if (call.kind > CallKind::Other) return bad_call("of no kind");
    if (call.program != -1 && !is_index(call.program, queues_.programs)) {
      return bad_call("of program " + std::to_string(call.program) + " of " +
                      std::to_string(queues_.programs.size()));
    }
    if (call.kind == CallKind::Program && call.program < 0) return bad_call("without a program");
    if (call.parts > kMostParts) return bad_call("in " + std::to_string(call.parts) + " parts");
    for (const BufferRange& range : call.arguments) {
      if (!is_index(range.buffer, queues_.buffers)) return bad_call("of no buffer");
      const ScheduleBuffer& buffer = buffer_of(range);
      if (range.lane != kAllLanes && !is_index(range.lane, buffer.devices)) {
        return bad_call("of lane " + std::to_string(range.lane) + " of buffer '" + buffer.name +
                        "'");
      }
      if (!is_range_inside(range.offset_bytes, range.size_bytes, buffer.size_bytes)) {
        return bad_call("of bytes behind the end of buffer '" + buffer.name + "'");
      }
      if (range.item_bytes < 1) return bad_call("of items without bytes");
    }
    for (const CallVariable& variable : call.variables) {
      if (variable.run_time < -1 || variable.run_time >= kMostVariables) {
        return bad_call("of run-time variable " + std::to_string(variable.run_time));
      }
    }
    for (const std::vector<int>* numbers : {&call.outs, &call.ins}) {
      for (const int number : *numbers) {
        if (!is_index(number, call.arguments)) return bad_call("whose argument is missing");
      }
    }
    if (call.kind == CallKind::Copy &&
        (call.arguments.size() != 2 ||
         call.arguments[0].size_bytes != call.arguments[1].size_bytes)) {
      return bad_call("that copies between other than two ranges of one size");
    }
    return Status::ok();
  }

  Status check_batch(const Batch& batch) {
    for (size_t i = 0; i < batch.devices.size(); ++i) {
      if (i > 0 && batch.devices[i - 1] >= batch.devices[i]) {
        return bad("has a batch whose devices are not in the order of their names");
      }
    }
    if (batch.devices.empty()) return bad("has a batch of no device");
    if (batch.submit_program != -1 && !is_index(batch.submit_program, queues_.submit_programs)) {
      return bad("has a batch of submit program " + std::to_string(batch.submit_program) + " of " +
                 std::to_string(queues_.submit_programs.size()));
    }
    for (const BatchCall& call : batch.calls) {
      IGNIS_TRY(check_call(call));
      if (!is_index(call.device, batch.devices) || call.queue.index < 0) {
        return bad("has call '" + call.name + "' on no device or queue");
      }
      const uint64_t slots = slot_bytes(batch, call.device, queues_.is_profiled) / kSlotBytes;
      for (const int slot : {call.start_slot, call.end_slot}) {
        if (slot < -1 || (slot >= 0 && static_cast<uint64_t>(slot) >= slots)) {
          return bad("has call '" + call.name + "' with time slot " + std::to_string(slot) +
                     " of " + std::to_string(slots));
        }
      }
      if ((call.start_slot < 0) != (call.end_slot < 0)) {
        return bad("has call '" + call.name + "' with one time slot");
      }
    }
    for (const TouchedOwner& touched : batch.touched) {
      if (!is_index(touched.accessor, batch.devices)) {
        return bad("has memory of '" + touched.owner + "' touched by nobody");
      }
    }
    for (const TableEntry& entry : batch.table) {
      if (!is_lane_of_input(entry.input, entry.lane) || !is_index(entry.device, batch.devices)) {
        return bad("has an address table with input " + std::to_string(entry.input) + ", lane " +
                   std::to_string(entry.lane));
      }
    }
    for (const QueueStream& stream : batch.streams) IGNIS_TRY(check_stream(batch, stream));
    return Status::ok();
  }

  bool is_lane_of_input(int input, int lane) const {
    return is_index(input, lanes_of_input_) && lane >= 0 &&
           static_cast<size_t>(lane) < lanes_of_input_[static_cast<size_t>(input)];
  }

  Status check_stream(const Batch& batch, const QueueStream& stream) {
    if (!is_index(stream.device, batch.devices) || stream.queue.index < 0) {
      return bad("has a stream on no device or queue");
    }
    if (stream.signal < -1 || stream.signal >= static_cast<int>(batch.streams.size())) {
      return bad("has a stream with signal " + std::to_string(stream.signal));
    }
    for (const Command& command : stream.commands) IGNIS_TRY(check_command(batch, command));
    for (const LinkAddress& address : stream.addresses) IGNIS_TRY(check_address(batch, address));
    const size_t parts = stream.encoded.parts.size();
    IGNIS_TRY(
        check_patches(batch, stream, stream.encoded.bytes.size(), stream.encoded.patches, parts));
    for (const runtime::EncodedPart& part : stream.encoded.parts) {
      if (part.purpose > runtime::Purpose::Wire) return bad("has words for no purpose");
      IGNIS_TRY(check_patches(batch, stream, part.bytes.size(), part.patches, parts));
    }
    return Status::ok();
  }

  static Status check_command(const Batch& batch, const Command& command) {
    const auto is_number = [](int number, size_t count) {
      return number == -1 || (number >= 0 && static_cast<size_t>(number) < count);
    };
    if (command.kind <= Command::Kind::Timestamp &&
        is_number(command.device, batch.devices.size()) &&
        is_number(command.signal, batch.streams.size()) &&
        is_number(command.tag, batch.calls.size()) && command.slot >= -1) {
      return Status::ok();
    }
    return bad("has a command that names what is not there");
  }

  Status check_address(const Batch& batch, const LinkAddress& address) const {
    switch (address.kind) {
      case LinkAddress::Kind::Buffer: {
        if (!is_index(address.index, queues_.buffers)) break;
        const ScheduleBuffer& buffer = queues_.buffers[static_cast<size_t>(address.index)];
        if (is_index(address.lane, buffer.devices) && address.offset_bytes <= buffer.size_bytes) {
          return Status::ok();
        }
        break;
      }
      case LinkAddress::Kind::Program:
        if (is_index(address.index, queues_.programs) && address.offset_bytes == 0) {
          return Status::ok();
        }
        break;
      case LinkAddress::Kind::Signals:
        if (is_index(address.index, batch.devices) && address.offset_bytes % kSlotBytes == 0 &&
            is_range_inside(address.offset_bytes, kSlotBytes,
                            slot_bytes(batch, address.index, queues_.is_profiled))) {
          return Status::ok();
        }
        break;
      case LinkAddress::Kind::Timeline:
        if (is_index(address.index, batch.devices) && address.offset_bytes == 0) {
          return Status::ok();
        }
        break;
    }
    return bad("has an address of kind " + std::to_string(static_cast<int>(address.kind)) +
               " and number " + std::to_string(address.index) + " of what is not there");
  }

  Status check_patches(const Batch& batch, const QueueStream& stream, uint64_t size_bytes,
                       const std::vector<Patch>& patches, size_t parts) const {
    if (size_bytes > std::numeric_limits<uint32_t>::max()) return bad("has words of 4 GiB");
    uint64_t free_from = 0;
    for (const Patch& patch : patches) {
      const uint64_t width = patch.width_bytes;
      size_t count = 0;
      switch (patch.source) {
        case Patch::Source::Address: count = stream.addresses.size(); break;
        case Patch::Source::Input: count = batch.table.size(); break;
        case Patch::Source::Timeline: count = batch.devices.size(); break;
        case Patch::Source::Part: count = parts; break;
        case Patch::Source::Variable: count = variables_; break;
      }
      if ((width != 1 && width != 2 && width != 4 && width != 8) ||
          patch.offset_bytes < free_from ||
          !is_range_inside(patch.offset_bytes, width, size_bytes) || patch.index < 0 ||
          static_cast<size_t>(patch.index) >= count) {
        return bad("has a patch of " + std::to_string(width) + " bytes at byte " +
                   std::to_string(patch.offset_bytes) + " of " + std::to_string(size_bytes) +
                   " with number " + std::to_string(patch.index) + " of " + std::to_string(count));
      }
      free_from = patch.offset_bytes + width;
    }
    return Status::ok();
  }

  Status check_uses() const {
    for (const InputUse& use : queues_.input_uses) {
      if (!is_lane_of_input(use.input, use.lane) || use.begin_bytes > use.end_bytes) {
        return bad("uses input " + std::to_string(use.input) + ", lane " +
                   std::to_string(use.lane) + ", that is not there");
      }
    }
    for (const std::vector<int>& set : queues_.aliased_inputs) {
      for (const int input : set) {
        if (input < 0 || input >= queues_.input_count) {
          return bad("has aliased input " + std::to_string(input) + " of " +
                     std::to_string(queues_.input_count));
        }
      }
    }
    return Status::ok();
  }

  static constexpr uint64_t kMostUnusedInputs = 4096;
  static constexpr int64_t kMostParts = int64_t{1} << 32;  ///< far more than threads or groups

  const QueueTemplate& queues_;
  size_t variables_ = 0;
  std::vector<size_t> lanes_of_input_;  ///< 0: no buffer is bound to it
};

}  // namespace

Status check_template(const QueueTemplate& queues) { return TemplateCheck(queues).check(); }

}  // namespace ignis::exec
