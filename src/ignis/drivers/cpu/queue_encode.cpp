#include "ignis/drivers/cpu/queue_encode.h"

#include "ignis/drivers/cpu/parts.h"
#include "ignis/drivers/cpu/queue_words.h"
#include "ignis/runtime/command_words.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace ignis::cpu {
namespace {

using runtime::Command;
using runtime::CommandWords;
using runtime::EncodedCall;
using runtime::EncodedQueue;
using runtime::Patch;

Result<int> number_of(std::span<const int> numbers, int index, const char* what) {
  if (index < 0 || static_cast<size_t>(index) >= numbers.size()) {
    return Error(ErrorCode::InvalidArgument, std::string("A command names ") + what + " " +
                                                 std::to_string(index) + "; the encoding has " +
                                                 std::to_string(numbers.size()) + ".");
  }
  return numbers[static_cast<size_t>(index)];
}

/// Work of a whole batch; 0 when that of a program is not known.
uint64_t estimate_all(std::span<const EncodedCall> calls) {
  uint64_t total_ns = 0;
  for (const EncodedCall& call : calls) {
    if (call.program < 0) continue;  // a copy
    const uint64_t work_ns = estimate_ns(call.flops, call.bytes);
    if (work_ns == 0) return 0;
    total_ns += work_ns;
  }
  return total_ns;
}

Status encode_exec(const EncodedCall& call, EncodedQueue& to) {
  for (const EncodedCall::Variable& variable : call.variables) {
    if (variable.index < 0)
      continue;  // a lane's number, of which a program of the CPU knows nothing
    return Error(ErrorCode::Unsupported,
                 "A program of the CPU reads run-time variable " + std::to_string(variable.index) +
                     " by a buffer that stands for it.",
                 "BadCall");
  }
  const size_t count = call.arguments.size();
  const bool is_inline = count <= kMostInline;
  CommandWords words(to);
  words.u64(is_inline ? pack_header(Opcode::Exec, kExecWords + count, count)
                      : pack_header(Opcode::ExecTable, kExecWords + 1));
  words.address(call.program);
  words.u64(static_cast<uint64_t>(std::max<int64_t>(1, call.parts)));
  words.u64(estimate_ns(call.flops, call.bytes));
  if (is_inline) {
    for (const Patch& argument : call.arguments) words.hole(argument, 8);
    return {};
  }
  EncodedQueue table;
  CommandWords rows(table);
  for (const Patch& argument : call.arguments) rows.hole(argument, 8);
  words.hole({.source = Patch::Source::Part, .index = static_cast<int>(to.parts.size())}, 8);
  to.parts.push_back(
      {runtime::Purpose::Arguments, std::move(table.bytes), std::move(table.patches)});
  return {};
}

Status encode_call(const Command& command, const runtime::QueuedDevice::Encoding& encoding,
                   EncodedQueue& to) {
  if (command.tag < 0 || static_cast<size_t>(command.tag) >= encoding.calls.size()) {
    return Error(ErrorCode::InvalidArgument, "A command names call " + std::to_string(command.tag) +
                                                 "; the batch has " +
                                                 std::to_string(encoding.calls.size()) + ".");
  }
  const EncodedCall& call = encoding.calls[static_cast<size_t>(command.tag)];
  if (command.kind == Command::Kind::Exec) return encode_exec(call, to);
  if (call.arguments.size() != 2) {
    return Error(ErrorCode::InvalidArgument, "A copy has " + std::to_string(call.arguments.size()) +
                                                 " arguments instead of two.");
  }
  CommandWords words(to);
  words.u64(pack_header(Opcode::Copy, 4));
  for (const Patch& argument : call.arguments) words.hole(argument, 8);
  words.u64(call.size_bytes);
  return {};
}

}  // namespace

Status encode_command(const Command& command, const runtime::QueuedDevice::Encoding& encoding,
                      EncodedQueue& to) {
  CommandWords words(to);
  switch (command.kind) {
    case Command::Kind::Barrier:
      words.u64(pack_header(Opcode::Begin, 2));
      words.u64(estimate_all(encoding.calls));
      return {};
    case Command::Kind::WaitReached:
    case Command::Kind::StoreReached: {
      const bool is_wait = command.kind == Command::Kind::WaitReached;
      IGNIS_TRY_ASSIGN(const int address,
                       number_of(encoding.timeline_address, command.device, "the timeline"));
      words.u64(pack_header(is_wait ? Opcode::Wait : Opcode::Finish, 3));
      words.address(address);
      words.hole(
          {.source = Patch::Source::Timeline, .index = command.device, .addend = is_wait ? 0 : 1},
          8);
      return {};
    }
    case Command::Kind::WaitSignal:
    case Command::Kind::StoreSignal: {
      const bool is_wait = command.kind == Command::Kind::WaitSignal;
      IGNIS_TRY_ASSIGN(const int address,
                       number_of(encoding.signal_address, command.signal, "signal"));
      words.u64(pack_header(is_wait ? Opcode::Wait : Opcode::Store, 3));
      words.address(address);
      words.u64(command.value);
      return {};
    }
    case Command::Kind::Timestamp: {
      IGNIS_TRY_ASSIGN(const int address,
                       number_of(encoding.slot_address, command.slot, "time slot"));
      words.u64(pack_header(Opcode::Timestamp, 2));
      words.address(address);
      return {};
    }
    case Command::Kind::Exec:
    case Command::Kind::Copy: return encode_call(command, encoding, to);
  }
  return Error(ErrorCode::InvalidArgument, "A command is of no known kind.");
}

}  // namespace ignis::cpu
