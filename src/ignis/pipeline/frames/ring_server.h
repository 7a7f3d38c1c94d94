#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ignis::pipeline {

struct RingServerOptions {
  uint32_t stream_id = 1;     ///< 0 narrow road, 1 cabin, 2 wide road
  uint32_t slot_count = 8;    ///< 2..64
  uint32_t max_clients = 16;  ///< 1..64; one more is refused
  /// Slots that one client may hold at a time; 0: half of them. The rest stays for the camera and other clients.
  uint32_t max_pins_per_client = 0;
  /// A client that left this many messages in a row unread, after its socket was full, is cut off.
  uint32_t unread_limit = 100;
  /// Users whose clients are served, beside this process's own and root.
  std::vector<uint32_t> trusted_uids = {};
};

struct RingServerCounters {
  uint64_t published = 0;
  uint64_t dropped = 0;  ///< new frames for which no slot was free
  uint64_t evicted = 0;  ///< clients cut off because they did not read
  uint64_t refused =
      0;  ///< clients cut off for what they sent, for who they are, or because there were too many
  uint32_t clients = 0;  ///< now
  uint32_t pinned = 0;   ///< slots now
};

/// Gives one stream of frames to other processes: a ring of slots in sealed shared memory, which clients map read-only,
/// and a local socket on which they learn of frames and pin and release slots (ring_protocol.h).
///
/// A pinned slot is never written, and the camera never waits: with every slot pinned the new frame is dropped and
/// counted. A client that dies or breaks the protocol loses its socket, and with it its pins.
/// begin_frame() to end_frame() are for one thread; a thread of the server's own answers the clients.
class RingServer {
 public:
  /// \param name  1 to 64 of A-Z a-z 0-9 . _ -, unique on this machine (`ring:NAME`).
  /// Errors: InvalidArgument for the name, options or layout; "NameInUse" when another server has this name;
  /// OutOfMemory.
  static Result<std::unique_ptr<RingServer>> create(const std::string& name,
                                                    const FrameLayout& layout,
                                                    RingServerOptions options = {});
  ~RingServer();
  RingServer(const RingServer&) = delete;
  RingServer& operator=(const RingServer&) = delete;

  /// The bytes of a free slot to fill, layout().size_bytes of them.
  /// Errors: OutOfMemory, reason "RingExhausted", when every slot is pinned: this frame is dropped.
  Result<std::span<std::byte>> begin_frame();
  /// Makes what was begun visible. Of `info` frame_id, both times and valid are used.
  void end_frame(const FrameInfo& info);
  /// Gives the begun slot back without showing it.
  void cancel_frame();
  /// Copies a frame into the ring; a frame with another layout changes the ring's first. Errors: as begin_frame and
  /// change_layout.
  Status publish(const Frame& frame);

  /// New memory for frames of another layout; clients go over to it, frames they hold stay as they are.
  Status change_layout(const FrameLayout& layout);
  const FrameLayout& layout() const;

  uint64_t server_id() const;
  RingServerCounters counters() const;

 private:
  struct State;
  explicit RingServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ignis::pipeline
