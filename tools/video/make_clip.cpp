#include "tools/video/make_clip.h"

#include "ignis/pipeline/frames/raw_writer.h"

#include "tools/video/recorder.h"

#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

namespace ignis::tools {
namespace {

using pipeline::Frame;

constexpr std::chrono::seconds kPatience(10);
/// Of one wait, so that a stop is noticed.
constexpr std::chrono::milliseconds kStep(200);

/// Either kind of file.
struct ClipFile {
  std::function<Status(const Frame&)> write;
  std::function<Status()> close;
};

Result<ClipFile> create_file(const std::string& path, const Frame& first, double fps) {
  if (path.ends_with(".mp4")) {
    RecorderOptions options;
    options.width_px = first.layout.width_px;
    options.height_px = first.layout.height_px;
    options.fps = fps;
    options.has_even_times = true;
    IGNIS_TRY_ASSIGN(std::shared_ptr<Recorder> recorder, Recorder::create(path, options));
    return ClipFile{[recorder](const Frame& frame) { return recorder->write(frame, kPatience); },
                    [recorder] { return recorder->close(); }};
  }
  IGNIS_TRY_ASSIGN(std::shared_ptr<pipeline::RawWriter> writer,
                   pipeline::RawWriter::create(path, fps));
  return ClipFile{[writer](const Frame& frame) { return writer->write(frame); },
                  [writer] { return writer->close(); }};
}

}  // namespace

Result<ClipSummary> write_clip(pipeline::FrameSource& source, const std::string& path,
                               const ClipOptions& options) {
  const bool is_raw = path.ends_with(".nv12") || path.ends_with(".i420") || path.ends_with(".yuv");
  if (!is_raw && !path.ends_with(".mp4")) {
    return Error(ErrorCode::InvalidArgument,
                 "The clip '" + path + "' must end in .mp4, .nv12, .i420 or .yuv.", "ClipName");
  }
  const bool is_possible =
      options.duration_s > 0 && options.duration_s <= 1e6 && options.fps >= 1 && options.fps <= 240;
  if (!is_possible) {
    return Error(ErrorCode::InvalidArgument,
                 "A clip of " + std::to_string(options.duration_s) + " s at " +
                     std::to_string(options.fps) +
                     " Hz is refused; it lasts up to 1e6 s at 1 to "
                     "240 Hz.",
                 "ClipLength");
  }
  const auto wanted =
      static_cast<uint64_t>(std::max<int64_t>(1, std::llround(options.duration_s * options.fps)));
  ClipSummary summary;
  ClipFile file;
  Status status;
  auto last_frame_at = std::chrono::steady_clock::now();
  while (status && summary.frame_count < wanted) {
    if (options.is_stopped != nullptr && options.is_stopped->load()) break;
    Result<Frame> frame = source.receive(kStep);
    if (!frame) {
      if (frame.error().reason() == "EndOfStream") break;
      if (frame.error().code() != ErrorCode::Timeout) ++summary.skipped_count;
      if (std::chrono::steady_clock::now() - last_frame_at < kPatience) continue;
      status =
          Error(ErrorCode::Timeout, "No frame came from " + source.describe() +
                                        " for 10 s; the last error: " + frame.error().message());
      break;
    }
    last_frame_at = std::chrono::steady_clock::now();
    if (!file.write) {
      IGNIS_TRY_ASSIGN(file, create_file(path, *frame, options.fps));
    }
    status = file.write(*frame);
    if (!status && status.error().reason() == "LayoutChanged") {
      ++summary.skipped_count;
      status = Status::ok();
    } else if (status) {
      ++summary.frame_count;
    }
  }
  if (file.close) {
    Status closed = file.close();
    if (status) status = std::move(closed);
  }
  IGNIS_TRY(status);
  if (!file.write) {
    return Error(ErrorCode::NotFound, source.describe() + " gave no frame; no clip was made.",
                 "EndOfStream");
  }
  return summary;
}

}  // namespace ignis::tools
