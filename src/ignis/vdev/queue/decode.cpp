#include "ignis/vdev/queue/decode.h"

#include <cstdio>

namespace ignis::vdev {
namespace {

/// Reads little-endian words; the caller has checked the length.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t word(size_t width_bytes) {
    uint64_t value = 0;
    for (size_t i = width_bytes; i-- > 0;) {
      value = value << 8 | std::to_integer<uint64_t>(bytes_[at_ + i]);
    }
    at_ += width_bytes;
    return value;
  }
  uint32_t u32() { return static_cast<uint32_t>(word(4)); }
  uint64_t u64() { return word(8); }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

Error bad(const std::string& what) { return Error(ErrorCode::InvalidArgument, what); }

}  // namespace

std::string Instruction::to_string() const {
  switch (opcode) {
    case Opcode::Barrier: return "barrier";
    case Opcode::Wait: return "wait " + hex(address) + " >= " + std::to_string(value);
    case Opcode::Store: return "store " + hex(address) + " = " + std::to_string(value);
    case Opcode::Timestamp: return "timestamp " + hex(address);
    case Opcode::Copy:
      return "copy " + hex(address) + " from " + hex(source) + ", " + std::to_string(size_bytes) +
             " bytes";
    case Opcode::Indirect: return "indirect " + hex(address);
    case Opcode::Exec:
      return "exec " + hex(address) + " with " + std::to_string(arguments.size()) + " arguments";
  }
  return "?";
}

Result<uint64_t> command_bytes(uint32_t header) {
  const uint32_t words = header & 0xFFFF;
  if (header >> 24 != kCommandMagic || words == 0) {
    return bad("The word " + hex(header) + " begins no command.");
  }
  return uint64_t{words} * 4;
}

Result<Instruction> decode_command(std::span<const std::byte> bytes, int signal_bits) {
  if (bytes.size() < 4) return bad("A command has fewer than four bytes.");
  Reader reader(bytes);
  const uint32_t header = reader.u32();
  IGNIS_TRY_ASSIGN(const uint64_t size_bytes, command_bytes(header));
  if (size_bytes != bytes.size()) {
    return bad("A command of " + std::to_string(size_bytes) + " bytes is given as " +
               std::to_string(bytes.size()) + ".");
  }
  const size_t value_bytes = signal_bits == 32 ? 4 : 8;
  const auto has = [&](uint64_t body) { return size_bytes == 4 + body; };
  Instruction result;
  result.command_bytes = size_bytes;
  result.opcode = static_cast<Opcode>(header >> 16 & 0xFF);
  switch (result.opcode) {
    case Opcode::Barrier:
      if (!has(0)) break;
      return result;
    case Opcode::Wait:
    case Opcode::Store:
      if (!has(8 + value_bytes)) break;
      result.address = reader.u64();
      result.value = reader.word(value_bytes);
      return result;
    case Opcode::Timestamp:
      if (!has(8)) break;
      result.address = reader.u64();
      return result;
    case Opcode::Copy:
      if (!has(24)) break;
      result.address = reader.u64();
      result.source = reader.u64();
      result.size_bytes = reader.u64();
      return result;
    case Opcode::Indirect:
      if (!has(16)) break;
      result.address = reader.u64();
      result.size_bytes = reader.u64();
      return result;
    case Opcode::Exec: {
      if (size_bytes < 28) break;
      result.address = reader.u64();
      result.parts = static_cast<int64_t>(reader.u64());
      const uint64_t arguments = reader.u32();
      const uint64_t variables = reader.u32();
      if (!has(24 + 8 * (arguments + variables))) break;
      for (uint64_t i = 0; i < arguments; ++i) result.arguments.push_back(reader.u64());
      for (uint64_t i = 0; i < variables; ++i) {
        result.variables.push_back(static_cast<int64_t>(reader.u64()));
      }
      return result;
    }
  }
  return bad("The command " + hex(header) + " has an unknown opcode or a wrong length.");
}

Result<DecodedImage> decode_image(std::span<const std::byte> bytes) {
  if (bytes.size() < kImageHeaderBytes) return bad("Memory is too small for a program.");
  Reader reader(bytes);
  if (reader.u32() != kImageMagic) return bad("There is no program here.");
  const uint32_t kind = reader.u32();
  const uint64_t size_bytes = reader.u64();
  DecodedImage image;
  image.checksum = reader.u64();
  if (size_bytes < kImageHeaderBytes || size_bytes > bytes.size()) {
    return bad("The program says that it has " + std::to_string(size_bytes) + " bytes of " +
               std::to_string(bytes.size()) + ".");
  }
  uint64_t checksum = 0xcbf29ce484222325U;
  for (const std::byte byte : bytes.subspan(kImageChecksumEnd, size_bytes - kImageChecksumEnd)) {
    checksum = (checksum ^ std::to_integer<uint64_t>(byte)) * 0x100000001b3U;
  }
  if (checksum != image.checksum) return bad("The program is damaged: its checksum differs.");
  image.buffer_count = static_cast<int>(reader.u32());
  const uint64_t name_bytes = reader.u32();
  if (name_bytes > size_bytes - kImageHeaderBytes) return bad("The program's name is cut off.");
  image.name.assign(reinterpret_cast<const char*>(bytes.data()) + kImageHeaderBytes, name_bytes);
  const std::span<const std::byte> body =
      bytes.subspan(kImageHeaderBytes + name_bytes, size_bytes - kImageHeaderBytes - name_bytes);
  if (kind == static_cast<uint32_t>(ImageKind::Object)) {
    image.kind = ImageKind::Object;
    image.object = body;
    return image;
  }
  if (kind != static_cast<uint32_t>(ImageKind::Function) || body.size() != 8) {
    return bad("The program is of an unknown kind.");
  }
  image.function = Reader(body).u64();
  return image;
}

}  // namespace ignis::vdev
