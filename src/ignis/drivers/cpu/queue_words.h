#pragma once

#include <cstdint>

namespace ignis::cpu {

// The words that the CPU's worker reads. An entry is a header and operands, all words of 64 bits. The header holds the opcode
// in bits 0-7, the entry's length in words, itself included, in bits 8-23, and an exec's count of arguments in bits 24-39.
//
//   begin      work                               a batch begins; `work` ns are estimated for it, 0: not known
//   exec       entry, parts, work, arguments...   `parts` at most; up to kMostInline arguments follow each other in the ring
//   execTable  entry, parts, work, table          the arguments lie in memory
//   copy       destination, source, bytes
//   wait       address, value                     until the word is at least the value
//   store      address, value
//   finish     address, value                     a store of a timeline: a batch has ended
//   timestamp  slot                               the steady clock's nanoseconds into the second word of the slot
enum class Opcode : uint8_t { Begin = 1, Exec, ExecTable, Copy, Wait, Store, Finish, Timestamp };

/// Of a call: beyond it the arguments lie in a table of their own.
inline constexpr uint32_t kMostInline = 63;
/// An entry without its arguments has at most 4 words.
inline constexpr uint32_t kExecWords = 4;
inline constexpr uint32_t kMostWords = kExecWords + kMostInline;
/// 16 384 entries of 64 words; entries take only what they need.
inline constexpr uint64_t kRingWords = uint64_t{16'384} * 64;

struct EntryHeader {
  Opcode opcode = Opcode::Begin;
  uint32_t words = 0;
  uint32_t arguments = 0;
};

inline uint64_t pack_header(Opcode opcode, uint64_t words, uint64_t arguments = 0) {
  return static_cast<uint64_t>(opcode) | words << 8 | arguments << 24;
}
inline EntryHeader unpack_header(uint64_t word) {
  return {static_cast<Opcode>(word & 0xFF), static_cast<uint32_t>(word >> 8 & 0xFFFF),
          static_cast<uint32_t>(word >> 24 & 0xFFFF)};
}

}  // namespace ignis::cpu
