#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include <atomic>
#include <cstdint>
#include <string>

namespace ignis::tools {

struct ClipOptions {
  double duration_s =
      20;  ///< of the clip at `fps`: duration_s * fps frames, or fewer where the source ends
  double fps = 20;
  const std::atomic<bool>* is_stopped =
      nullptr;  ///< set from a signal handler: ends the clip early
};

struct ClipSummary {
  uint64_t frame_count = 0;
  uint64_t skipped_count =
      0;  ///< frames of another size than the first, and errors that the source got over
};

/// Writes frames of the source to a file: .mp4 as a video, .nv12, .i420 or .yuv as raw frames with an index beside.
///
/// Each frame is kept: with a full queue the source waits for the encoder, so give it a source that is not in a hurry
/// (Pace::Fast, or a camera). Errors: InvalidArgument for another ending; Timeout when no frame comes for 10 s; those of
/// Recorder and RawWriter. After an error the file holds what was written before.
Result<ClipSummary> write_clip(pipeline::FrameSource& source, const std::string& path,
                               const ClipOptions& options = {});

}  // namespace ignis::tools
