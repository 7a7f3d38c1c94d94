#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/messages/calibration.h"
#include "ignis/pipeline/messages/driver_state.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ignis::pipeline {

/// What no message of ours exceeds, framing included; longer ones are refused unread.
inline constexpr size_t kMaxMessageBytes = size_t{2} << 20;
inline constexpr size_t kMaxRawPredictionsBytes = size_t{1} << 20;

/// Packs messages as Cap'n Proto in standard stream framing: one segment, fields in the order of their numbers. Keeps its
/// memory, so that packing allocates only when a message is longer than all before it. Not thread-safe.
///
/// The bytes that a call returns live until the next call.
class EventWriter {
 public:
  EventWriter();
  EventWriter(EventWriter&&) noexcept = default;
  EventWriter& operator=(EventWriter&&) noexcept = default;

  /// An Event with driverStateV2. When `valid` is false only the frame id, the two times and raw predictions are taken from
  /// `state`: lists are empty and probabilities 0, so that no stale value survives on the way.
  /// Errors: InvalidArgument when raw_predictions is longer than kMaxRawPredictionsBytes.
  Result<std::span<const std::byte>> driver_state(const DriverState& state, bool valid,
                                                  uint64_t log_mono_time_ns);
  /// The companion, a root type of its own.
  /// Errors: InvalidArgument (reason "Contradiction") when it is valid and has a blocking reason.
  Result<std::span<const std::byte>> quality(const DriverStateQuality& quality);
  /// An Event with a calibration of any shape: for tests, replay and calibration tools.
  /// Errors: InvalidArgument when there are more than kMaxAngles angles.
  Result<std::span<const std::byte>> calibration(const Calibration& calibration);

  static constexpr size_t kMaxAngles = 64;

 private:
  std::vector<uint64_t>
      words_;  ///< the framing's word, then the segment; zero beyond what was used
};

/// Which member of Event's union is set.
enum class EventKind : uint8_t { DriverState, Calibration, Other };
std::string_view to_string(EventKind kind);

/// driverStateV2 as it was received.
struct StateEvent {
  uint64_t log_mono_time_ns = 0;
  bool valid = false;
  DriverState state;  ///< state.raw_predictions is empty: the bytes are the next member
  std::vector<std::byte> raw_predictions;
};

// The decoders take one message in standard stream framing at any address and refuse what is not exactly that. Segments may
// lie in any order. Values are those on the wire: a foreign publisher may send a NaN.
//
// Errors: InvalidArgument with one of the reasons
//   "Framing"       the segment table does not fit the bytes
//   "TooLong"       more than kMaxMessageBytes
//   "Malformed"     a pointer leaves its segment, nests too deep or reads too much
//   "WrongMember"   an Event, but with another member set
//   "WrongMessage"  not a driverStateQuality
//   "ListSize"      a list has a size that the contract does not know
//   "Contradiction" valid, but with a blocking reason

/// Looks at the envelope only.
Result<EventKind> kind_of_event(std::span<const std::byte> message);
Result<StateEvent> decode_driver_state(std::span<const std::byte> message);
Result<DriverStateQuality> decode_quality(std::span<const std::byte> message);
Result<Calibration> decode_calibration(std::span<const std::byte> message);

/// No segment table that framed_size() accepts is longer.
inline constexpr size_t kMaxSegmentTableBytes = 8 * 257;

/// Bytes of the message that begins with `head`, by its segment table: 0 when the table is not all there yet.
/// Errors: InvalidArgument, reason "Framing" or "TooLong".
Result<size_t> framed_size(std::span<const std::byte> head);

}  // namespace ignis::pipeline
