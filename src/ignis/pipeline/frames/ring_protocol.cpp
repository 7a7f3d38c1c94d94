#include "ignis/pipeline/frames/ring_protocol.h"

#include "ignis/base/check.h"
#include "ignis/pipeline/frames/layout.h"

#include <algorithm>
#include <string>
#include <type_traits>

namespace ignis::pipeline::ring {
namespace {

Error protocol_error(const std::string& text) {
  return Error(ErrorCode::InvalidArgument, text, "RingProtocol");
}

class Writer {
 public:
  explicit Writer(Packet& packet) : packet_(packet) {}
  void u16(uint16_t value) { put(value, 2); }
  void u32(uint32_t value) { put(value, 4); }
  void u64(uint64_t value) { put(value, 8); }
  void i64(int64_t value) { put(static_cast<uint64_t>(value), 8); }

 private:
  void put(uint64_t value, size_t bytes) {
    IGNIS_CHECK(packet_.size_bytes + bytes <= kMaxRecordBytes);
    for (size_t i = 0; i < bytes; ++i)
      packet_.bytes[packet_.size_bytes++] = static_cast<std::byte>(value >> (8 * i));
  }
  Packet& packet_;
};

/// Reads past the end give zeros; the record's length is compared with what was read afterwards.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint16_t u16() { return static_cast<uint16_t>(take(2)); }
  uint32_t u32() { return static_cast<uint32_t>(take(4)); }
  uint64_t u64() { return take(8); }
  int64_t i64() { return static_cast<int64_t>(take(8)); }
  size_t position() const { return position_; }

 private:
  uint64_t take(size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i, ++position_) {
      if (position_ < bytes_.size())
        value |= std::to_integer<uint64_t>(bytes_[position_]) << (8 * i);
    }
    return value;
  }
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

void write_fields(Writer& w, const Hello& r) { w.u32(r.stream_id); }
void write_fields(Writer& w, const Ring& r) {
  w.u64(r.server_id), w.u64(r.epoch), w.u32(r.stream_id), w.u32(r.slot_count);
  const FrameLayout& l = r.layout;
  w.u32(static_cast<uint32_t>(l.format)), w.u32(static_cast<uint32_t>(l.range));
  w.u32(l.sensor_id), w.u32(static_cast<uint32_t>(l.width_px));
  w.u32(static_cast<uint32_t>(l.height_px)), w.u32(0);
  w.i64(l.y_stride), w.i64(l.uv_stride), w.i64(l.u_offset), w.i64(l.v_offset), w.i64(l.size_bytes);
  w.u64(r.memory_bytes);
}
void write_fields(Writer& w, const FrameRecord& r) {
  w.u64(r.epoch), w.u32(r.slot), w.u32(r.frame_id), w.u64(r.sequence), w.u64(r.count);
  w.u64(r.timestamp_sof_ns), w.u64(r.timestamp_eof_ns), w.u32(r.valid), w.u32(r.reserved);
}
void write_fields(Writer& w, const Pin& r) {
  w.u64(r.epoch), w.u64(r.sequence), w.u32(r.slot), w.u32(r.reserved);
}
void write_fields(Writer& w, const PinReply& r) {
  w.u64(r.epoch), w.u64(r.sequence), w.u32(r.slot), w.u32(static_cast<uint32_t>(r.answer));
}
void write_fields(Writer& w, const Release& r) {
  w.u64(r.epoch), w.u64(r.sequence), w.u32(r.slot), w.u32(r.reserved);
}
void write_fields(Writer&, const Quiet&) {}
void write_fields(Writer& w, const Refusal& r) {
  w.u32(static_cast<uint32_t>(r.code)), w.u32(r.detail);
}

Type type_of(const Record& record) { return static_cast<Type>(record.index() + 1); }

Status read_fields(Reader& r, Hello& out) {
  out.stream_id = r.u32();
  return Status::ok();
}
Status read_fields(Reader& r, Ring& out) {
  out.server_id = r.u64(), out.epoch = r.u64();
  out.stream_id = r.u32(), out.slot_count = r.u32();
  const uint32_t format = r.u32(), range = r.u32();
  if (format > 0xff || range > 0xff) {
    return protocol_error("A ring has pixel format " + std::to_string(format) +
                          " and colour range " + std::to_string(range) + "; both are at most 255.");
  }
  FrameLayout& l = out.layout;
  l.format = static_cast<PixelFormat>(format), l.range = static_cast<ColorRange>(range);
  l.sensor_id = r.u32();
  l.width_px = static_cast<int>(r.u32()), l.height_px = static_cast<int>(r.u32());
  r.u32();
  l.y_stride = r.i64(), l.uv_stride = r.i64(), l.u_offset = r.i64(), l.v_offset = r.i64();
  l.size_bytes = r.i64();
  out.memory_bytes = r.u64();
  return Status::ok();
}
Status read_fields(Reader& r, FrameRecord& out) {
  out.epoch = r.u64(), out.slot = r.u32(), out.frame_id = r.u32();
  out.sequence = r.u64(), out.count = r.u64();
  out.timestamp_sof_ns = r.u64(), out.timestamp_eof_ns = r.u64();
  out.valid = r.u32(), out.reserved = r.u32();
  if (out.sequence % 2 != 0 || out.valid > 1) {
    return protocol_error("A frame record has sequence " + std::to_string(out.sequence) +
                          " and valid " + std::to_string(out.valid) +
                          "; the one is even, the other 0 or 1.");
  }
  return Status::ok();
}
Status read_fields(Reader& r, Pin& out) {
  out.epoch = r.u64(), out.sequence = r.u64(), out.slot = r.u32(), out.reserved = r.u32();
  return Status::ok();
}
Status read_fields(Reader& r, PinReply& out) {
  out.epoch = r.u64(), out.sequence = r.u64(), out.slot = r.u32();
  const uint32_t answer = r.u32();
  if (answer > static_cast<uint32_t>(PinAnswer::Limit))
    return protocol_error("Pin answer " + std::to_string(answer) + " is not known.");
  out.answer = static_cast<PinAnswer>(answer);
  return Status::ok();
}
Status read_fields(Reader& r, Release& out) {
  out.epoch = r.u64(), out.sequence = r.u64(), out.slot = r.u32(), out.reserved = r.u32();
  return Status::ok();
}
Status read_fields(Reader&, Quiet&) { return Status::ok(); }
Status read_fields(Reader& r, Refusal& out) {
  const uint32_t code = r.u32();
  out.detail = r.u32();
  if (code < static_cast<uint32_t>(RefusalCode::Version) ||
      code > static_cast<uint32_t>(RefusalCode::Protocol)) {
    return protocol_error("Refusal " + std::to_string(code) + " is not known.");
  }
  out.code = static_cast<RefusalCode>(code);
  return Status::ok();
}

template <typename T>
Result<Record> read_record(Reader& reader, size_t packet_bytes) {
  T record;
  IGNIS_TRY(read_fields(reader, record));
  if (reader.position() != packet_bytes) {
    return protocol_error("A record has " + std::to_string(packet_bytes) +
                          " bytes; one of its type has " + std::to_string(reader.position()) + ".");
  }
  return Record(record);
}

}  // namespace

Packet encode(const Record& record) {
  Packet packet;
  Writer writer(packet);
  writer.u32(kMagic), writer.u16(kVersion), writer.u16(static_cast<uint16_t>(type_of(record)));
  writer.u32(0), writer.u32(0);  // the length is filled in below
  std::visit([&](const auto& fields) { write_fields(writer, fields); }, record);
  packet.bytes[8] = static_cast<std::byte>(packet.size_bytes);  // below 256
  static_assert(kMaxRecordBytes <= 256);
  return packet;
}

Result<Record> decode(std::span<const std::byte> packet) {
  if (packet.size() < kHeaderBytes || packet.size() >= kMaxRecordBytes) {
    return protocol_error("A packet has " + std::to_string(packet.size()) +
                          " bytes; a record has " + std::to_string(kHeaderBytes) + " to " +
                          std::to_string(kMaxRecordBytes - 1) + ".");
  }
  Reader reader(packet);
  const uint32_t magic = reader.u32();
  if (magic != kMagic) return protocol_error("A packet is not of a frame ring.");
  const uint16_t version = reader.u16();
  if (version != kVersion) {
    return Error(ErrorCode::Unsupported,
                 "The other side of the frame ring speaks version " + std::to_string(version) +
                     "; this side speaks version " + std::to_string(kVersion) +
                     ". Run the same version of Ignis on both sides.",
                 "RingVersion");
  }
  const uint16_t type = reader.u16();
  const uint32_t record_bytes = reader.u32();
  const uint32_t zero = reader.u32();
  if (record_bytes != packet.size() || zero != 0) {
    return protocol_error("A record says that it has " + std::to_string(record_bytes) +
                          " bytes; its packet has " + std::to_string(packet.size()) + ".");
  }
  switch (static_cast<Type>(type)) {
    case Type::Hello: return read_record<Hello>(reader, packet.size());
    case Type::Ring: return read_record<Ring>(reader, packet.size());
    case Type::Frame: return read_record<FrameRecord>(reader, packet.size());
    case Type::Pin: return read_record<Pin>(reader, packet.size());
    case Type::PinReply: return read_record<PinReply>(reader, packet.size());
    case Type::Release: return read_record<Release>(reader, packet.size());
    case Type::Quiet: return read_record<Quiet>(reader, packet.size());
    case Type::Refusal: return read_record<Refusal>(reader, packet.size());
  }
  return protocol_error("Record type " + std::to_string(type) + " is not known.");
}

namespace {
uint64_t align_page(uint64_t value) { return (value + kPageBytes - 1) / kPageBytes * kPageBytes; }
}  // namespace

uint64_t slots_offset(uint32_t slot_count) { return align_page(slot_count * sizeof(SlotHeader)); }

uint64_t slot_stride(const FrameLayout& layout) {
  return align_page(static_cast<uint64_t>(layout.size_bytes));
}

uint64_t memory_bytes(const FrameLayout& layout, uint32_t slot_count) {
  return slots_offset(slot_count) + slot_stride(layout) * slot_count;
}

Status check_ring(const Ring& ring) {
  if (ring.server_id == 0 || ring.slot_count < 1 || ring.slot_count > kMaxSlots) {
    return protocol_error("A ring has " + std::to_string(ring.slot_count) +
                          " slots and server id " + std::to_string(ring.server_id) +
                          "; it has 1 to " + std::to_string(kMaxSlots) +
                          " slots, and the id is not 0.");
  }
  if (Status status = check_layout(ring.layout, static_cast<uint64_t>(kMaxFrameBytes)); !status)
    return protocol_error("The ring's frames cannot be right: " + status.error().message());
  const uint64_t needed = memory_bytes(ring.layout, ring.slot_count);
  if (ring.memory_bytes != needed) {
    return protocol_error("A ring says that its memory has " + std::to_string(ring.memory_bytes) +
                          " bytes; its slots need " + std::to_string(needed) + ".");
  }
  return Status::ok();
}

Status check_name(const std::string& name) {
  const bool is_good = !name.empty() && name.size() <= kMaxNameBytes &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                                (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
                       });
  if (is_good) return Status::ok();
  return Error(ErrorCode::InvalidArgument,
               "'" + name.substr(0, 2 * kMaxNameBytes) +
                   "' cannot name a frame ring: a name is 1 to " + std::to_string(kMaxNameBytes) +
                   " of A-Z a-z 0-9 . _ -.",
               "RingName");
}

}  // namespace ignis::pipeline::ring
