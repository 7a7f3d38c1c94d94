#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/file_source.h"
#include "ignis/pipeline/frames/frame.h"
#include "ignis/pipeline/frames/synthetic.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ignis::tools {

/// What holds for a source unless its text says otherwise.
struct SourceOptions {
  pipeline::Pace pace = pipeline::Pace::RealTime;
  bool is_looped = false;     ///< files
  bool repeats_still = true;  ///< a picture is a camera that sees it for ever
  double fps = 0;             ///< cameras, raw files, pictures; 0: what the source says, else 20
  uint32_t sensor_id = 0;     ///< cameras and videos
  int width_px = 0,
      height_px =
          0;  ///< cameras, synthetic scenes, raw files without an index; 0: the source's own
  pipeline::PixelFormat format = pipeline::PixelFormat::Nv12;  ///< of raw files without an index
};

/// Opens what the text names:
///
///     clip.mp4, face.png          any video or picture that FFmpeg reads
///     clip.nv12, .i420, .yuv      raw frames with an index beside them, or with size=WxH
///     v4l2:/dev/video0            a camera
///     synthetic:drive             a made-up cabin; see synthetic_scenarios()
///     ring:NAME                   frames of another process in shared memory
///
/// behind each there may be `,key=value`: size=1344x760, fps=30, format=nv12|i420, pace=real-time|every-frame|fast,
/// loop=yes|no, sensor=N; for synthetic: seconds=30, side=left|right, seed=7, portrait=FILE and eyes=LX:LY:RX:RY (pixels
/// of that file); for ring: stream=1. A file whose name has a comma is opened by its name when there is such a file.
///
/// Errors: InvalidArgument, reason "UnknownSource", or NotFound, with the forms above; those of the source.
Result<std::unique_ptr<pipeline::FrameSource>> open_source(const std::string& text,
                                                           const SourceOptions& options = {});

/// A source's text taken apart; open_source does it.
struct SourceSpec {
  enum class Kind : uint8_t { Video, Raw, Camera, Synthetic, Ring };
  Kind kind = Kind::Video;
  std::string name;  ///< path, device, scenario or ring
  SourceOptions options;
  pipeline::SyntheticOptions synthetic;
  std::string portrait_path;                   ///< empty: the built-in one
  std::optional<std::vector<double>> eyes_px;  ///< left x, left y, right x, right y
  uint32_t stream_id = 1;
};
Result<SourceSpec> parse_source(const std::string& text, const SourceOptions& options = {});

/// The forms a source can have, a line each; for --help and messages.
std::string source_forms();

/// The portrait that comes with Ignis, or one from a file (PNG, JPEG, PPM) with its eyes where the built-in one has them,
/// as far as the sizes go. Errors: NotFound, InvalidArgument; Unsupported without libjpeg.
Result<pipeline::Portrait> load_portrait(const std::string& path = "");

/// The synthetic source of a text "synthetic:…", for those who want its truth. Errors: as open_source.
Result<std::unique_ptr<pipeline::SyntheticSource>> open_synthetic(
    const std::string& text, const SourceOptions& options = {});

}  // namespace ignis::tools
