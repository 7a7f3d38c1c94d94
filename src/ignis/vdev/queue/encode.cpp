#include "ignis/vdev/queue/encode.h"

#include "ignis/runtime/command_words.h"
#include "ignis/vdev/queue/opcodes.h"

#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace ignis::vdev {
namespace {

using runtime::Command;
using runtime::CommandWords;
using runtime::EncodedCall;
using runtime::EncodedQueue;
using runtime::Patch;

constexpr char kFunctionTag[8] = {'I', 'G', 'V', 'F', 'U', 'N', 'C', '1'};

uint32_t header(Opcode opcode, size_t words) {
  return kCommandMagic << 24 | static_cast<uint32_t>(opcode) << 16 | static_cast<uint32_t>(words);
}

Result<int> number_of(std::span<const int> numbers, int index, const char* what) {
  if (index < 0 || static_cast<size_t>(index) >= numbers.size()) {
    return Error(ErrorCode::InvalidArgument, std::string("A command names ") + what + " " +
                                                 std::to_string(index) + "; the encoding has " +
                                                 std::to_string(numbers.size()) + ".");
  }
  return numbers[static_cast<size_t>(index)];
}

/// A copy of the patches `patches` says, as holes of 8 bytes.
void holes(std::span<const Patch> patches, CommandWords& words) {
  for (const Patch& patch : patches) words.hole(patch, 8);
}

Status encode_exec(const EncodedCall& call, EncodedQueue& to) {
  const size_t length = 7 + 2 * (call.arguments.size() + call.variables.size());
  if (length > kMaxCommandWords) {
    return Error(ErrorCode::InvalidArgument, "A call has " + std::to_string(call.arguments.size()) +
                                                 " arguments, more than a command holds.");
  }
  CommandWords words(to);
  words.u32(header(Opcode::Exec, length));
  words.address(call.program);
  words.u64(static_cast<uint64_t>(call.parts));
  words.u32(static_cast<uint32_t>(call.arguments.size()));
  words.u32(static_cast<uint32_t>(call.variables.size()));
  holes(call.arguments, words);
  for (const EncodedCall::Variable& variable : call.variables) {
    if (variable.index < 0) {
      words.u64(static_cast<uint64_t>(variable.value));
    } else {
      words.hole(
          {.source = Patch::Source::Variable, .index = variable.index, .addend = variable.value},
          8);
    }
  }
  return {};
}

Status encode_copy(const EncodedCall& call, EncodedQueue& to) {
  if (call.arguments.size() != 2) {
    return Error(ErrorCode::InvalidArgument, "A copy has " + std::to_string(call.arguments.size()) +
                                                 " arguments instead of two.");
  }
  CommandWords words(to);
  words.u32(header(Opcode::Copy, 7));
  holes(call.arguments, words);
  words.u64(call.size_bytes);
  return {};
}

}  // namespace

Status encode_command(const Command& command, const runtime::QueuedDevice::Encoding& encoding,
                      int signal_bits, EncodedQueue& to) {
  const int value_bytes = signal_bits / 8;
  const size_t word_length = 3 + static_cast<size_t>(value_bytes) / 4;
  CommandWords words(to);
  switch (command.kind) {
    case Command::Kind::Barrier: words.u32(header(Opcode::Barrier, 1)); return {};
    case Command::Kind::WaitReached:
    case Command::Kind::StoreReached: {
      const bool is_wait = command.kind == Command::Kind::WaitReached;
      IGNIS_TRY_ASSIGN(const int address,
                       number_of(encoding.timeline_address, command.device, "the timeline"));
      words.u32(header(is_wait ? Opcode::Wait : Opcode::Store, word_length));
      words.address(address);
      words.hole(
          {.source = Patch::Source::Timeline, .index = command.device, .addend = is_wait ? 0 : 1},
          value_bytes);
      return {};
    }
    case Command::Kind::WaitSignal:
    case Command::Kind::StoreSignal: {
      const bool is_wait = command.kind == Command::Kind::WaitSignal;
      IGNIS_TRY_ASSIGN(const int address,
                       number_of(encoding.signal_address, command.signal, "signal"));
      words.u32(header(is_wait ? Opcode::Wait : Opcode::Store, word_length));
      words.address(address);
      words.constant(command.value, value_bytes);
      return {};
    }
    case Command::Kind::Timestamp: {
      IGNIS_TRY_ASSIGN(const int address,
                       number_of(encoding.slot_address, command.slot, "time slot"));
      words.u32(header(Opcode::Timestamp, 3));
      words.address(address);
      return {};
    }
    case Command::Kind::Exec:
    case Command::Kind::Copy: {
      if (command.tag < 0 || static_cast<size_t>(command.tag) >= encoding.calls.size()) {
        return Error(ErrorCode::InvalidArgument,
                     "A command names call " + std::to_string(command.tag) + "; the batch has " +
                         std::to_string(encoding.calls.size()) + ".");
      }
      const EncodedCall& call = encoding.calls[static_cast<size_t>(command.tag)];
      return command.kind == Command::Kind::Exec ? encode_exec(call, to) : encode_copy(call, to);
    }
  }
  return Error(ErrorCode::InvalidArgument, "A command is of no known kind.");
}

void encode_indirect(EncodedQueue command, EncodedQueue& to) {
  const auto part = static_cast<int>(to.parts.size());
  const uint64_t size_bytes = command.bytes.size();
  to.parts.push_back(
      {runtime::Purpose::Arguments, std::move(command.bytes), std::move(command.patches)});
  CommandWords words(to);
  words.u32(header(Opcode::Indirect, 5));
  words.hole({.source = Patch::Source::Part, .index = part}, 8);
  words.u64(size_bytes);
}

std::vector<std::byte> encode_image(const ProgramImage& image) {
  const int64_t function = function_number(image);
  EncodedQueue body;
  CommandWords words(body);
  words.u32(static_cast<uint32_t>(image.buffer_count));
  words.u32(static_cast<uint32_t>(image.name.size()));
  for (const char c : image.name) body.bytes.push_back(static_cast<std::byte>(c));
  if (function >= 0) {
    words.u64(static_cast<uint64_t>(function));
  } else {
    body.bytes.insert(body.bytes.end(), image.object.begin(), image.object.end());
  }
  uint64_t checksum = 0xcbf29ce484222325U;
  for (const std::byte byte : body.bytes) {
    checksum = (checksum ^ std::to_integer<uint64_t>(byte)) * 0x100000001b3U;
  }
  EncodedQueue whole;
  CommandWords head(whole);
  head.u32(kImageMagic);
  head.u32(static_cast<uint32_t>(function >= 0 ? ImageKind::Function : ImageKind::Object));
  head.u64(kImageChecksumEnd + body.bytes.size());
  head.u64(checksum);
  whole.bytes.insert(whole.bytes.end(), body.bytes.begin(), body.bytes.end());
  return std::move(whole.bytes);
}

ProgramImage function_image(std::string name, int buffer_count, uint64_t number) {
  ProgramImage image;
  image.name = std::move(name);
  image.buffer_count = buffer_count;
  EncodedQueue words;
  for (const char c : kFunctionTag) words.bytes.push_back(static_cast<std::byte>(c));
  CommandWords(words).u64(number);
  image.object = std::move(words.bytes);
  return image;
}

int64_t function_number(const ProgramImage& image) {
  if (image.object.size() != sizeof(kFunctionTag) + 8 ||
      std::memcmp(image.object.data(), kFunctionTag, sizeof(kFunctionTag)) != 0) {
    return -1;
  }
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i) {
    number |= std::to_integer<uint64_t>(image.object[sizeof(kFunctionTag) + i]) << (8 * i);
  }
  return static_cast<int64_t>(number);
}

}  // namespace ignis::vdev
