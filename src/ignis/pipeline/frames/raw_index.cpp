#include "ignis/pipeline/frames/raw_index.h"

#include "ignis/pipeline/frames/layout.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

namespace ignis::pipeline {
namespace {

using Json = nlohmann::json;

Error index_error(const std::string& text) {
  return Error(ErrorCode::InvalidArgument, text, "FrameIndex");
}

/// A whole number in [lowest, highest]; `fallback` when the key is not there.
Result<int64_t> read_int(const Json& object, const char* key, int64_t fallback, int64_t lowest,
                         int64_t highest) {
  const auto found = object.find(key);
  if (found == object.end()) return fallback;
  const std::string name = key;
  if (!found->is_number_integer())
    return index_error("The index's '" + name + "' is not a whole number.");
  const bool is_huge =
      found->is_number_unsigned() && found->get<uint64_t>() > static_cast<uint64_t>(highest);
  const int64_t value = is_huge ? 0 : found->get<int64_t>();
  if (is_huge || value < lowest || value > highest) {
    return index_error("The index's '" + name + "' is " + found->dump() + "; it lies between " +
                       std::to_string(lowest) + " and " + std::to_string(highest) + ".");
  }
  return value;
}

Result<std::string> read_text(const Json& object, const char* key, const std::string& fallback) {
  const auto found = object.find(key);
  if (found == object.end()) return fallback;
  if (!found->is_string())
    return index_error("The index's '" + std::string(key) + "' is not a text.");
  return found->get<std::string>();
}

Result<FrameLayout> read_layout(const Json& object) {
  if (!object.contains("format") || !object.contains("width") || !object.contains("height")) {
    return index_error(
        "The index lacks one of 'format', 'width' and 'height', as in {\"format\": \"nv12\", "
        "\"width\": 1928, \"height\": 1208, \"fps\": 20}.");
  }
  IGNIS_TRY_ASSIGN(const std::string format_text, read_text(object, "format", ""));
  IGNIS_TRY_ASSIGN(const PixelFormat format, parse_pixel_format(format_text));
  IGNIS_TRY_ASSIGN(const int64_t width, read_int(object, "width", 0, 2, kMaxFrameWidthPx));
  IGNIS_TRY_ASSIGN(const int64_t height, read_int(object, "height", 0, 2, kMaxFrameHeightPx));
  IGNIS_TRY_ASSIGN(const std::string padding, read_text(object, "padding", "none"));
  IGNIS_TRY_ASSIGN(const std::string range, read_text(object, "range", "limited"));
  if (padding != "none" && padding != "ring")
    return index_error("The index's 'padding' is '" + padding + "'; it is \"none\" or \"ring\".");
  if (range != "limited" && range != "full")
    return index_error("The index's 'range' is '" + range + "'; it is \"limited\" or \"full\".");
  if (padding == "ring" && format != PixelFormat::Nv12)
    return index_error("The index's 'padding' is \"ring\"; only nv12 has that one.");
  const int w = static_cast<int>(width), h = static_cast<int>(height);
  FrameLayout layout;
  if (padding == "ring") {
    IGNIS_TRY_ASSIGN(layout, nv12_layout(w, h));
  } else if (format == PixelFormat::Nv12) {
    IGNIS_TRY_ASSIGN(layout, tight_nv12_layout(w, h));
  } else {
    IGNIS_TRY_ASSIGN(layout, i420_layout(w, h));
  }
  layout.range = range == "full" ? ColorRange::Full : ColorRange::Limited;
  constexpr int64_t kMost = kMaxFrameBytes;
  IGNIS_TRY_ASSIGN(layout.y_stride, read_int(object, "y_stride", layout.y_stride, 1, kMost));
  IGNIS_TRY_ASSIGN(layout.uv_stride, read_int(object, "uv_stride", layout.uv_stride, 1, kMost));
  IGNIS_TRY_ASSIGN(layout.u_offset, read_int(object, "u_offset", layout.u_offset, 0, kMost));
  const int64_t v_offset = format == PixelFormat::Nv12 ? layout.u_offset + 1 : layout.v_offset;
  IGNIS_TRY_ASSIGN(layout.v_offset, read_int(object, "v_offset", v_offset, 0, kMost));
  IGNIS_TRY_ASSIGN(layout.size_bytes, read_int(object, "frame_bytes", layout.size_bytes, 1, kMost));
  IGNIS_TRY_ASSIGN(const int64_t sensor, read_int(object, "sensor_id", 0, 0, 0xffffffff));
  layout.sensor_id = static_cast<uint32_t>(sensor);
  if (Status status = check_layout(layout, static_cast<uint64_t>(kMost)); !status)
    return index_error("The index's layout cannot be right: " + status.error().message());
  return layout;
}

Result<RawFrameRecord> read_frame(const Json& entry, size_t position) {
  const auto is_whole = [](const Json& value) { return value.is_number_unsigned(); };
  const bool is_right = entry.is_array() && entry.size() == 4 && is_whole(entry[0]) &&
                        is_whole(entry[1]) && is_whole(entry[2]) && is_whole(entry[3]) &&
                        entry[0].get<uint64_t>() <= 0xffffffff && entry[3].get<uint64_t>() <= 1;
  if (!is_right) {
    return index_error(
        "Entry " + std::to_string(position) +
        " of the index's 'frames' is not [id, sof_ns, eof_ns, valid], an id below 2^32 and "
        "valid 0 or 1.");
  }
  RawFrameRecord record;
  record.id = static_cast<uint32_t>(entry[0].get<uint64_t>());
  record.sof_ns = entry[1].get<uint64_t>();
  record.eof_ns = entry[2].get<uint64_t>();
  record.valid = entry[3].get<uint64_t>() == 1;
  return record;
}

Result<RawIndex> read_index(const Json& object) {
  RawIndex index;
  IGNIS_TRY_ASSIGN(index.layout, read_layout(object));
  IGNIS_TRY_ASSIGN(const int64_t stream, read_int(object, "stream_id", 1, 0, 0xffffffff));
  index.stream_id = static_cast<uint32_t>(stream);
  if (const auto fps = object.find("fps"); fps != object.end()) {
    if (!fps->is_number() || !(fps->get<double>() >= 0.1 && fps->get<double>() <= 1000))
      return index_error("The index's 'fps' is " + fps->dump() + "; it lies between 0.1 and 1000.");
    index.fps = fps->get<double>();
  }
  if (const auto frames = object.find("frames"); frames != object.end()) {
    if (!frames->is_array()) return index_error("The index's 'frames' is not a list.");
    index.frames.reserve(frames->size());
    for (size_t i = 0; i < frames->size(); ++i) {
      IGNIS_TRY_ASSIGN(const RawFrameRecord record, read_frame((*frames)[i], i));
      index.frames.push_back(record);
    }
  }
  return index;
}

}  // namespace

Result<RawIndex> parse_raw_index(std::string_view json) {
  try {  // dump() throws on text that is not UTF-8, and memory may run out
    const Json object = Json::parse(json, nullptr, /*allow_exceptions=*/false);
    if (object.is_discarded()) return index_error("The index is not JSON.");
    if (!object.is_object()) return index_error("The index is not a JSON object.");
    return read_index(object);
  } catch (const std::exception& fault) {
    return index_error("The index cannot be read: " + std::string(fault.what()) + ".");
  }
}

std::string to_json(const RawIndex& index) {
  const FrameLayout& l = index.layout;
  char fps[32];
  std::snprintf(fps, sizeof(fps), "%.9g", index.fps);
  std::string text = "{\"format\": \"" + std::string(to_string(l.format)) + "\"";
  const auto add = [&text](const char* key, const std::string& value) {
    text += std::string(", \"") + key + "\": " + value;
  };
  add("width", std::to_string(l.width_px));
  add("height", std::to_string(l.height_px));
  add("y_stride", std::to_string(l.y_stride));
  add("uv_stride", std::to_string(l.uv_stride));
  add("u_offset", std::to_string(l.u_offset));
  add("v_offset", std::to_string(l.v_offset));
  add("frame_bytes", std::to_string(l.size_bytes));
  add("range", l.range == ColorRange::Full ? "\"full\"" : "\"limited\"");
  add("sensor_id", std::to_string(l.sensor_id));
  add("stream_id", std::to_string(index.stream_id));
  add("fps", fps);
  text += ",\n \"frames\": [";
  for (size_t i = 0; i < index.frames.size(); ++i) {
    const RawFrameRecord& frame = index.frames[i];
    text += (i == 0 ? "\n  [" : ",\n  [") + std::to_string(frame.id) + ", " +
            std::to_string(frame.sof_ns) + ", " + std::to_string(frame.eof_ns) + ", " +
            (frame.valid ? "1]" : "0]");
  }
  return text + "]}\n";
}

}  // namespace ignis::pipeline
