#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

// The words of the frame ring. Both sides speak over one SEQPACKET socket per client; each packet is one record: a
// header of 16 bytes {u32 magic, u16 version, u16 type, u32 record bytes, u32 zero}, then the type's fields, all little
// endian, in the order of the structs below, without padding. A record of another length is refused.
//
//   client                         server
//     Hello             ->                        which stream is wanted
//                       <-       Ring + 1 memfd   again whenever the layout changes
//                       <-       Frame            a slot holds a new frame
//     Pin               ->                        keep this slot as it is
//                       <-       PinReply
//     Release           ->
//     Quiet             ->                        no more Frame records; pins stay
//                       <-       Refusal          then the socket is closed
//
// The memfd is sealed against shrinking and growing. It begins with one SlotHeader for each slot; the slots follow
// from the next page on, each on a page.

namespace ignis::pipeline::ring {

inline constexpr uint32_t kMagic = 0x52464749;  ///< "IGFR"
inline constexpr uint16_t kVersion = 1;
inline constexpr size_t kHeaderBytes = 16;
inline constexpr size_t kMaxRecordBytes = 256;
inline constexpr uint32_t kMaxSlots = 64;
inline constexpr uint64_t kPageBytes = 4096;
inline constexpr size_t kMaxNameBytes = 64;

enum class Type : uint16_t { Hello = 1, Ring, Frame, Pin, PinReply, Release, Quiet, Refusal };

enum class RefusalCode : uint32_t { Version = 1, Stream, TooManyClients, NotTrusted, Protocol };

struct Hello {
  uint32_t stream_id = 0;
  bool operator==(const Hello&) const = default;
};

/// The memory that comes with this record.
struct Ring {
  uint64_t server_id = 0;
  uint64_t epoch = 0;  ///< rises with each new memory of one server
  uint32_t stream_id = 0;
  uint32_t slot_count = 0;
  FrameLayout
      layout;  ///< on the wire: u32 format, range, sensor, width, height, zero; u64 each: strides, offsets, size
  uint64_t memory_bytes = 0;
  bool operator==(const Ring&) const = default;
};

struct FrameRecord {
  uint64_t epoch = 0;
  uint32_t slot = 0;
  uint32_t frame_id = 0;
  uint64_t sequence = 0;  ///< of the slot; even
  uint64_t count = 0;     ///< frames the camera has made, dropped ones included
  uint64_t timestamp_sof_ns = 0;
  uint64_t timestamp_eof_ns = 0;
  uint32_t valid = 0;  ///< 0 or 1
  uint32_t reserved = 0;
  bool operator==(const FrameRecord&) const = default;
};

struct Pin {
  uint64_t epoch = 0, sequence = 0;
  uint32_t slot = 0, reserved = 0;
  bool operator==(const Pin&) const = default;
};

enum class PinAnswer : uint32_t {
  Pinned = 0,
  Gone,   ///< the slot holds another frame by now
  Limit,  ///< this client holds as many slots as it may
};

struct PinReply {
  uint64_t epoch = 0, sequence = 0;
  uint32_t slot = 0;
  PinAnswer answer = PinAnswer::Gone;
  bool operator==(const PinReply&) const = default;
};

struct Release {
  uint64_t epoch = 0, sequence = 0;
  uint32_t slot = 0, reserved = 0;
  bool operator==(const Release&) const = default;
};

struct Quiet {
  bool operator==(const Quiet&) const = default;
};

struct Refusal {
  RefusalCode code = RefusalCode::Protocol;
  uint32_t detail = 0;  ///< Version: the server's; Stream: the server's; else 0
  bool operator==(const Refusal&) const = default;
};

using Record = std::variant<Hello, Ring, FrameRecord, Pin, PinReply, Release, Quiet, Refusal>;

/// An encoded record.
struct Packet {
  std::array<std::byte, kMaxRecordBytes> bytes{};
  size_t size_bytes = 0;
  std::span<const std::byte> span() const { return {bytes.data(), size_bytes}; }
};

Packet encode(const Record& record);
/// Reads one packet. Errors: InvalidArgument, reason "RingProtocol"; Unsupported, reason "RingVersion", for a record of
/// another version. The fields are those sent: only their encoding is checked, the layout by check_ring.
Result<Record> decode(std::span<const std::byte> packet);

/// What stands in the ring's memory for each slot.
struct SlotHeader {
  std::atomic<uint64_t>
      sequence;  ///< odd while the slot is being written; rises by 2 with each frame
  std::atomic<uint64_t> frame_id;
  std::array<std::byte, 48> reserved;
};
static_assert(sizeof(SlotHeader) == 64 && std::atomic<uint64_t>::is_always_lock_free);

inline void detail_fence(std::memory_order order) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wtsan"  // the thread sanitizer does not see fences; it need not: pins keep writers off
#endif
  std::atomic_thread_fence(order);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
}
/// Between making a sequence odd and the first byte written.
inline void fence_before_write() { detail_fence(std::memory_order_release); }
/// Between the last byte read and looking at the sequence again.
inline void fence_after_read() { detail_fence(std::memory_order_acquire); }

/// Where slots lie in the memory of a ring whose layout was checked.
uint64_t slots_offset(uint32_t slot_count);
uint64_t slot_stride(const FrameLayout& layout);
uint64_t memory_bytes(const FrameLayout& layout, uint32_t slot_count);

/// Holds a Ring record against the bounds: layout, slots, and memory_bytes that are exactly what they need.
/// Errors: InvalidArgument, reason "RingProtocol".
Status check_ring(const Ring& ring);

/// Errors: InvalidArgument, reason "RingName": 1 to 64 of A-Z a-z 0-9 . _ -.
Status check_name(const std::string& name);

}  // namespace ignis::pipeline::ring
