#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ignis::pipeline {

/// What the reference camera server tells of one frame (driver-monitoring specification, section 13.2).
struct ReferenceNotification {
  uint64_t server_id = 0, index = 0;
  uint32_t frame_id = 0;
  uint64_t timestamp_sof_ns = 0, timestamp_eof_ns = 0;
  bool valid = false;
  bool operator==(const ReferenceNotification&) const = default;
};

/// Reads the packet of 48 bytes: server id u64, index u64, frame id u32 and 4 bytes of padding, SOF u64, EOF u64, valid
/// u8 and 7 bytes of padding, little endian. Errors: InvalidArgument, reason "ReferenceProtocol".
Result<ReferenceNotification> decode_reference_notification(std::span<const std::byte> packet);

struct ReferenceRingOptions {
  std::string socket_path;  ///< of the server's local SEQPACKET socket
  uint32_t stream_id = 1;   ///< 0 narrow road, 1 cabin, 2 wide road
  bool is_latest_only = true;
  /// The next notification of this stream, or Timeout. They travel on a message endpoint of their own,
  /// `visionipc_<server>_<stream>`, which this library does not speak: the caller subscribes to it and decodes.
  std::function<Result<ReferenceNotification>(std::chrono::nanoseconds timeout)> next_notification;
};

/// Frames of a camera server that speaks the reference protocol.
///
/// That protocol pins nothing and seals nothing, so each frame is copied out, by reads that a memory cut short does not
/// turn into a signal; the frame id behind the buffer is compared before and after. A frame that was written over
/// meanwhile is not handed over but counted as dropped. Another server id, or an index that is out of range, means that
/// the buffers are of the past: they are fetched again, under a new generation.
/// Memory that cannot be read like a file (buffers of some SoC's graphics allocator) is Unsupported.
class ReferenceRingClient final : public FrameSource {
 public:
  /// Opens nothing yet. Errors: InvalidArgument when the path is too long for a socket or there is no way to
  /// notifications.
  static Result<std::unique_ptr<ReferenceRingClient>> create(ReferenceRingOptions options);
  ~ReferenceRingClient() override;

  Result<Frame> receive(std::chrono::nanoseconds timeout) override;
  uint64_t dropped_count() const override;
  std::string describe() const override;

 private:
  struct State;
  explicit ReferenceRingClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The streams that a server has. Errors: DeviceLost without a server; Timeout; InvalidArgument, reason
/// "ReferenceProtocol", for an answer that cannot be right.
Result<std::vector<uint32_t>> list_reference_streams(const std::string& socket_path,
                                                     std::chrono::nanoseconds timeout);

}  // namespace ignis::pipeline
