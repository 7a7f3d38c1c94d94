#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include "tools/ignis/dm/live_feed.h"

#include <chrono>
#include <memory>
#include <string>

namespace ignis::tools {

/// Records frames beside the pipeline: `F.mp4` as video, any other name as raw frames with an index, which can be replayed
/// bit by bit. Copies each frame and writes on another thread; what finds no room is lost and counted.
class Recording {
 public:
  /// Errors: InvalidArgument with reason "File" when the path cannot be written.
  static Result<std::unique_ptr<Recording>> open(const std::string& path, double fps);
  virtual ~Recording() = default;

  /// Never waits.
  virtual void offer(const pipeline::Frame& frame) = 0;
  virtual SinkState state() const = 0;
  /// Writes what waits and completes the file; waits at most about `limit`.
  virtual void close(std::chrono::nanoseconds limit) = 0;
};

/// Stores an error's sentence in a sink's state.
void note_error(SinkState& state, const Error& error);

}  // namespace ignis::tools
