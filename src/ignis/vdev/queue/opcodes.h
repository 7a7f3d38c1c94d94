#pragma once

#include <cstdint>

namespace ignis::vdev {

// The words that a simulated device reads: a layout, shared by encoder and decoder, which share nothing else.
//
// A command is a header of 32 bits and a body; all words are little-endian. The header holds the magic in bits 24-31, the
// opcode in bits 16-23 and the command's length in words of 32 bits, itself included, in bits 0-15. Values of signals and
// timelines are as wide as the device's signals: 32 or 64 bits ("word" below).
//
//   barrier     -
//   wait        address u64, value word          until the word at the address is at least the value
//   store       address u64, value word
//   timestamp   slot u64                         the device's ticks into the second 8 bytes of the slot
//   copy        destination u64, source u64, size u64 (bytes)
//   exec        program u64, parts u64, arguments u32, variables u32, arguments u64..., variables u64...
//   indirect    address u64, size u64            the one command that lies there, as if it stood here
enum class Opcode : uint8_t {
  Barrier = 1,
  Wait = 2,
  Store = 3,
  Timestamp = 4,
  Copy = 5,
  Exec = 6,
  Indirect = 7,
};

inline constexpr uint32_t kCommandMagic = 0xA5;
inline constexpr uint32_t kMaxCommandWords = 0xFFFF;

// A program's image: what lies at the address that an exec names. Little-endian; the checksum is FNV-1a over everything
// behind it, so that half an upload is told from a whole one.
//
//   magic u32, kind u32, size u64 (of all), checksum u64, buffers u32, name length u32, name, body
//
// The body of a function is its number (u64), that of an object the ELF object.
inline constexpr uint32_t kImageMagic = 0x50564749;  // "IGVP"
enum class ImageKind : uint32_t { Function = 1, Object = 2 };
inline constexpr uint64_t kImageHeaderBytes = 32;
inline constexpr uint64_t kImageChecksumEnd = 24;

}  // namespace ignis::vdev
