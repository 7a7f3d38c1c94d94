#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/file_source.h"
#include "ignis/pipeline/frames/frame.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace ignis::tools {

struct FfmpegSourceOptions {
  pipeline::Pace pace = pipeline::Pace::RealTime;
  bool is_looped = false;  ///< begins anew after the last frame; ids go on rising
  /// A file of one frame gives it again and again, with new ids, at `still_fps`; else it ends after one.
  bool repeats_still = false;
  double still_fps = 20;  ///< also of files without times; 1..240
  uint32_t sensor_id = 0;
  /// For what FFmpeg does in one step without asking us: opening, and finding the next packet.
  std::chrono::nanoseconds step_limit = std::chrono::seconds(10);
};

/// The frames of any video or picture file that FFmpeg reads, as NV12 of nv12_layout's padding, limited range, at their
/// own size (an odd row or column at the end is left out).
///
/// Times come from the file: with a pace of RealTime or EveryFrame the frames come as far apart as the file says, and
/// SOF is when a frame is due. With Fast each frame is as new as can be. Ids count from 0.
///
/// receive(): InvalidArgument, reason "BadFrame", for a part of the file that cannot be decoded, and the source goes on
/// behind it; "FrameSize" for a frame beyond 4096x3072; NotFound, reason "EndOfStream", behind the last frame.
///
/// The file is hostile: only the one file is read (no playlist leads to another), only regular files are opened, sizes
/// are limited before memory is taken, and each of FFmpeg's steps has a limit in time.
class FfmpegSource final : public pipeline::FrameSource {
 public:
  /// Errors: NotFound when there is no such file; InvalidArgument, reason "NotAVideo", when FFmpeg finds no picture in
  /// it; Unsupported, reason "NoDecoder".
  static Result<std::unique_ptr<FfmpegSource>> open(const std::string& path,
                                                    const FfmpegSourceOptions& options = {});
  ~FfmpegSource() override;

  Result<pipeline::Frame> receive(std::chrono::nanoseconds timeout) override;
  uint64_t dropped_count() const override;
  std::string describe() const override;

  /// Frames for each second, as far as the file says; still_fps otherwise.
  double fps() const;

 private:
  struct State;
  explicit FfmpegSource(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ignis::tools
