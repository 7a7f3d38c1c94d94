#pragma once

#include "ignis/base/result.h"
#include "ignis/vdev/queue/opcodes.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ignis::vdev {

/// A command as the device understood it. Which fields count depends on the opcode.
struct Instruction {
  Opcode opcode = Opcode::Barrier;
  /// Wait, store, timestamp; exec: of the program's image; copy: destination; indirect: of the command.
  uint64_t address = 0;
  uint64_t source = 0;              ///< copy
  uint64_t size_bytes = 0;          ///< copy, indirect
  uint64_t value = 0;               ///< wait, store
  int64_t parts = 1;                ///< exec
  std::vector<uint64_t> arguments;  ///< exec: addresses
  std::vector<int64_t> variables;   ///< exec
  uint64_t command_bytes = 0;       ///< of its words
  /// "wait 0x1000 >= 7"
  std::string to_string() const;
};

/// Bytes of the command that begins with `header`. Errors: InvalidArgument for what is no command.
Result<uint64_t> command_bytes(uint32_t header);
/// Reads one whole command. Errors: InvalidArgument for a length that does not fit the opcode.
Result<Instruction> decode_command(std::span<const std::byte> bytes, int signal_bits);

/// A program's image as the device understood it.
struct DecodedImage {
  ImageKind kind = ImageKind::Function;
  std::string name;
  int buffer_count = 0;
  uint64_t function = 0;              ///< Function
  std::span<const std::byte> object;  ///< Object; within the bytes that were read
  uint64_t checksum = 0;
};
/// Reads the image at the beginning of `bytes`, which may go on behind it.
/// Errors: InvalidArgument saying what is wrong: no image, cut off, damaged.
Result<DecodedImage> decode_image(std::span<const std::byte> bytes);

}  // namespace ignis::vdev
