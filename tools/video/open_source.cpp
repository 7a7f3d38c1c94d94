#include "tools/video/open_source.h"

#include "ignis/pipeline/frames/layout.h"
#include "ignis/pipeline/frames/ring_client.h"
#include "ignis/pipeline/frames/v4l2_source.h"

#include "tools/io/files.h"
#include "tools/io/image.h"
#include "tools/video/ffmpeg_source.h"
#include "tools/video/portrait_data.h"
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace ignis::tools {
namespace {

using pipeline::FrameSource;
using Kind = SourceSpec::Kind;

bool is_there(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return result;
}

bool has_raw_name(const std::string& path) {
  const std::string name = lower_case(path);
  return name.ends_with(".nv12") || name.ends_with(".i420") || name.ends_with(".yuv");
}

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

Error bad_value(std::string_view key, std::string_view value, const std::string& wanted) {
  return Error(ErrorCode::InvalidArgument,
               "The source's " + std::string(key) + " is '" + std::string(value) + "'; it is " +
                   wanted + ".",
               "BadSourceOption");
}

Status set_size(std::string_view key, std::string_view value, SourceOptions& options) {
  const std::vector<std::string_view> sides = split(value, 'x');
  const std::optional<int> width = parse_number<int>(sides[0]);
  const std::optional<int> height = sides.size() == 2 ? parse_number<int>(sides[1]) : std::nullopt;
  if (!width || !height || *width <= 0 || *height <= 0) {
    return bad_value(key, value, "written like 1928x1208");
  }
  options.width_px = *width;
  options.height_px = *height;
  return Status::ok();
}

Status set_pace(std::string_view key, std::string_view value, SourceOptions& options) {
  if (value == "real-time") {
    options.pace = pipeline::Pace::RealTime;
  } else if (value == "every-frame") {
    options.pace = pipeline::Pace::EveryFrame;
  } else if (value == "fast") {
    options.pace = pipeline::Pace::Fast;
  } else {
    return bad_value(key, value, "real-time, every-frame or fast");
  }
  return Status::ok();
}

Status set_eyes(std::string_view key, std::string_view value, SourceSpec& spec) {
  std::vector<double> eyes;
  for (const std::string_view part : split(value, ':')) {
    const std::optional<double> number = parse_number<double>(part);
    if (number) eyes.push_back(*number);
  }
  if (eyes.size() != 4) return bad_value(key, value, "LX:LY:RX:RY in pixels of the portrait");
  spec.eyes_px = std::move(eyes);
  return Status::ok();
}

template <typename T>
Status set_number(std::string_view key, std::string_view value, T& out) {
  const std::optional<T> number = parse_number<T>(value);
  if (!number) return bad_value(key, value, "a number");
  out = *number;
  return Status::ok();
}

Status set_rate(std::string_view key, std::string_view value, double& out) {
  IGNIS_TRY(set_number(key, value, out));
  if (!(out > 0 && out <= 1000)) return bad_value(key, value, "above 0 and at most 1000");
  return Status::ok();
}

/// Keys by kind of source, for the message and the check.
std::string_view keys_of(Kind kind) {
  switch (kind) {
    case Kind::Video: return "fps, pace, loop, sensor";
    case Kind::Raw: return "size, format, fps, pace, loop";
    case Kind::Camera: return "size, fps, sensor";
    case Kind::Synthetic: return "size, format, fps, pace, seconds, side, seed, portrait, eyes";
    case Kind::Ring: return "stream";
  }
  return "";
}

Status set_option(std::string_view key, std::string_view value, SourceSpec& spec) {
  const std::vector<std::string_view> known = split(keys_of(spec.kind), ',');
  const bool is_known = std::any_of(known.begin(), known.end(), [&](std::string_view name) {
    return (name.starts_with(' ') ? name.substr(1) : name) == key;
  });
  if (!is_known) {
    return Error(ErrorCode::InvalidArgument,
                 "'" + std::string(key) + "' is no option of this kind of source; there are " +
                     std::string(keys_of(spec.kind)) + ".",
                 "BadSourceOption");
  }
  if (key == "size") return set_size(key, value, spec.options);
  if (key == "pace") return set_pace(key, value, spec.options);
  if (key == "eyes") return set_eyes(key, value, spec);
  if (key == "fps") return set_rate(key, value, spec.options.fps);
  if (key == "seed") return set_number(key, value, spec.synthetic.seed);
  if (key == "seconds") return set_number(key, value, spec.synthetic.duration_s);
  if (key == "stream") return set_number(key, value, spec.stream_id);
  if (key == "sensor") return set_number(key, value, spec.options.sensor_id);
  if (key == "format") {
    IGNIS_TRY_ASSIGN(spec.options.format, pipeline::parse_pixel_format(value));
  } else if (key == "side") {
    if (value != "left" && value != "right") return bad_value(key, value, "left or right");
    spec.synthetic.side = value == "left" ? pipeline::CabinSide::Left : pipeline::CabinSide::Right;
  } else if (key == "loop") {
    if (value != "yes" && value != "no") return bad_value(key, value, "yes or no");
    spec.options.is_looped = value == "yes";
  } else {  // "portrait"
    spec.portrait_path = value;
  }
  return Status::ok();
}

Error unknown_source(ErrorCode code, const std::string& sentence) {
  return Error(code, sentence + " A source is one of:\n" + source_forms(), "UnknownSource");
}

/// The part of the text before its options, and what kind it is.
Result<SourceSpec> parse_kind(const std::string& text, size_t& options_at) {
  SourceSpec spec;
  options_at = std::string::npos;
  if (is_there(text)) {
    spec.name = text;
    spec.kind = has_raw_name(text) ? Kind::Raw : Kind::Video;
    return spec;
  }
  options_at = text.find(',');
  spec.name = text.substr(0, options_at);
  static const std::vector<std::pair<std::string, Kind>> schemes = {
      {"v4l2:", Kind::Camera}, {"synthetic:", Kind::Synthetic}, {"ring:", Kind::Ring}};
  for (const auto& [scheme, kind] : schemes) {
    if (!spec.name.starts_with(scheme)) continue;
    spec.kind = kind;
    spec.name = spec.name.substr(scheme.size());
    if (spec.name.empty()) {
      return unknown_source(ErrorCode::InvalidArgument,
                            "Behind '" + scheme + "' there is no name.");
    }
    return spec;
  }
  spec.kind = has_raw_name(spec.name) ? Kind::Raw : Kind::Video;
  if (is_there(spec.name)) return spec;
  const size_t colon = spec.name.find(':');
  if (text.empty() || (colon != std::string::npos && colon < spec.name.find('/'))) {
    return unknown_source(ErrorCode::InvalidArgument, "'" + text + "' is no kind of source.");
  }
  return unknown_source(ErrorCode::NotFound, "There is no file '" + spec.name + "'.");
}

Result<std::unique_ptr<pipeline::SyntheticSource>> open_synthetic_spec(const SourceSpec& spec) {
  pipeline::SyntheticOptions options = spec.synthetic;
  options.scenario = spec.name;
  if (spec.options.width_px > 0) {
    options.width_px = spec.options.width_px;
    options.height_px = spec.options.height_px;
  }
  if (spec.options.fps > 0) options.rate_hz = spec.options.fps;
  options.format = spec.options.format;
  options.pace = spec.options.pace;
  IGNIS_TRY_ASSIGN(pipeline::Portrait portrait, load_portrait(spec.portrait_path));
  if (spec.eyes_px) {
    const std::vector<double>& eyes = *spec.eyes_px;
    portrait.left_eye_x_px = eyes[0], portrait.left_eye_y_px = eyes[1];
    portrait.right_eye_x_px = eyes[2], portrait.right_eye_y_px = eyes[3];
  }
  return pipeline::SyntheticSource::create(portrait, options);
}

Result<std::unique_ptr<FrameSource>> open_raw(const SourceSpec& spec) {
  pipeline::FileSourceOptions options;
  options.fps = spec.options.fps;
  options.pace = spec.options.pace;
  options.is_looped = spec.options.is_looped;
  if (spec.options.width_px > 0) {
    const bool is_i420 = spec.options.format == pipeline::PixelFormat::I420 ||
                         !lower_case(spec.name).ends_with(".nv12");
    const int width = spec.options.width_px, height = spec.options.height_px;
    IGNIS_TRY_ASSIGN(options.layout, is_i420 ? pipeline::i420_layout(width, height)
                                             : pipeline::tight_nv12_layout(width, height));
  }
  IGNIS_TRY_ASSIGN(std::unique_ptr<FrameSource> source,
                   pipeline::FileSource::open(spec.name, options));
  return source;
}

}  // namespace

std::string source_forms() {
  std::string scenarios;
  for (const pipeline::Scenario& scenario : pipeline::synthetic_scenarios()) {
    scenarios += (scenarios.empty() ? "" : ", ") + scenario.name;
  }
  return "  PATH                a video or picture, or raw frames (.nv12, .i420, .yuv) with an "
         "index "
         "or size=WxH\n"
         "  v4l2:DEVICE         a camera: v4l2:/dev/video0\n"
         "  synthetic:SCENARIO  a made-up cabin: " +
         scenarios +
         "\n"
         "  ring:NAME           frames of another process\n"
         "Options follow a comma: synthetic:drive,size=1344x760,seconds=30,side=right,seed=1";
}

Result<SourceSpec> parse_source(const std::string& text, const SourceOptions& options) {
  size_t options_at = std::string::npos;
  IGNIS_TRY_ASSIGN(SourceSpec spec, parse_kind(text, options_at));
  spec.options = options;
  if (options_at == std::string::npos) return spec;
  for (const std::string_view part : split(std::string_view(text).substr(options_at + 1), ',')) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return Error(ErrorCode::InvalidArgument,
                   "'" + std::string(part) + "' in the source '" + text +
                       "' is no option; options are written key=value: " +
                       std::string(keys_of(spec.kind)) + ".",
                   "BadSourceOption");
    }
    IGNIS_TRY(set_option(part.substr(0, equals), part.substr(equals + 1), spec));
  }
  return spec;
}

Result<pipeline::Portrait> load_portrait(const std::string& path) {
  std::vector<std::byte> file;
  if (!path.empty()) {
    IGNIS_TRY_ASSIGN(file, read_file(path));
  }
  Result<Image> image = parse_image(path.empty() ? portrait_jpeg() : file);
  if (!image) {
    return std::move(image).error().with_context(path.empty() ? "the built-in portrait" : path);
  }
  pipeline::Portrait portrait;
  portrait.width_px = image->width_px;
  portrait.height_px = image->height_px;
  portrait.rgb = std::move(image->rgb);
  const double to_own = portrait.width_px / 512.0;
  for (double* coordinate : {&portrait.left_eye_x_px, &portrait.left_eye_y_px,
                             &portrait.right_eye_x_px, &portrait.right_eye_y_px}) {
    *coordinate *= to_own;
  }
  return portrait;
}

Result<std::unique_ptr<pipeline::SyntheticSource>> open_synthetic(const std::string& text,
                                                                  const SourceOptions& options) {
  IGNIS_TRY_ASSIGN(const SourceSpec spec, parse_source(text, options));
  if (spec.kind != Kind::Synthetic) {
    return Error(ErrorCode::InvalidArgument, "'" + text + "' is no synthetic source.",
                 "UnknownSource");
  }
  return open_synthetic_spec(spec);
}

Result<std::unique_ptr<FrameSource>> open_source(const std::string& text,
                                                 const SourceOptions& options) {
  IGNIS_TRY_ASSIGN(const SourceSpec spec, parse_source(text, options));
  switch (spec.kind) {
    case Kind::Raw: return open_raw(spec);
    case Kind::Synthetic: {
      IGNIS_TRY_ASSIGN(std::unique_ptr<FrameSource> source, open_synthetic_spec(spec));
      return source;
    }
    case Kind::Camera: {
      pipeline::V4l2Options camera;
      camera.width_px = spec.options.width_px;
      camera.height_px = spec.options.height_px;
      if (spec.options.fps > 0) camera.fps = spec.options.fps;
      camera.sensor_id = spec.options.sensor_id;
      IGNIS_TRY_ASSIGN(std::unique_ptr<FrameSource> source,
                       pipeline::V4l2Source::open(spec.name, camera));
      return source;
    }
    case Kind::Ring: {
      pipeline::RingClientOptions ring;
      ring.stream_id = spec.stream_id;
      IGNIS_TRY_ASSIGN(std::unique_ptr<FrameSource> source,
                       pipeline::RingClient::create(spec.name, ring));
      return source;
    }
    case Kind::Video: break;
  }
  FfmpegSourceOptions video;
  video.pace = spec.options.pace;
  video.is_looped = spec.options.is_looped;
  video.repeats_still = spec.options.repeats_still;
  if (spec.options.fps > 0) video.still_fps = spec.options.fps;
  video.sensor_id = spec.options.sensor_id;
  IGNIS_TRY_ASSIGN(std::unique_ptr<FrameSource> source, FfmpegSource::open(spec.name, video));
  return source;
}

}  // namespace ignis::tools
