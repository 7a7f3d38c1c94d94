#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ignis::pipeline {

struct RingClientOptions {
  uint32_t stream_id = 1;      ///< what the server must offer
  bool is_latest_only = true;  ///< hand over the newest frame and count the others as dropped
  /// Users whose servers are trusted, beside this process's own and root.
  std::vector<uint32_t> trusted_uids = {};
};

/// Frames from a RingServer of another process. The frame's memory pins its slot until the last copy of it is gone, also
/// beyond the life of this object.
///
/// receive() connects when there is no connection, so the server may come later, die and come back: each new
/// connection, and each change of layout, begins a new generation. Errors of receive(), beside those of FrameSource:
/// OutOfMemory, reason "PinLimit", when too many frames of this source are held; Unsupported, reason "RingVersion", for a
/// server of another version; NotFound, reason "RingStream", for one with another stream; InvalidArgument, reason
/// "RingProtocol", for one that sends what cannot be right (the connection is closed).
class RingClient final : public FrameSource {
 public:
  /// Opens nothing yet. Errors: InvalidArgument for a name that no server can have.
  static Result<std::unique_ptr<RingClient>> create(const std::string& name,
                                                    RingClientOptions options = {});
  ~RingClient() override;

  Result<Frame> receive(std::chrono::nanoseconds timeout) override;
  uint64_t dropped_count() const override;
  std::string describe() const override;

 private:
  struct State;
  explicit RingClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ignis::pipeline
