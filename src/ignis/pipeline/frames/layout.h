#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ignis::pipeline {

/// Bounds of every frame in Ignis.
inline constexpr int kMinFramePx = 2;
inline constexpr int kMaxFrameWidthPx = 4096;
inline constexpr int kMaxFrameHeightPx = 3072;
/// Of one row, padding included.
inline constexpr int64_t kMaxStrideBytes = 65536;
/// Of one frame's buffer, padding included.
inline constexpr int64_t kMaxFrameBytes = int64_t{1} << 28;

/// NV12 with the padding of the in-car camera servers: rows of a multiple of 128 bytes, planes of a multiple of 32 and
/// 16 rows, room behind them (driver-monitoring specification, section 2.1).
/// Errors: InvalidArgument, reason "FrameSize", when a side is odd or out of bounds.
Result<FrameLayout> nv12_layout(int width_px, int height_px);
/// NV12 without any padding, as files and webcams hold it. Errors: as nv12_layout.
Result<FrameLayout> tight_nv12_layout(int width_px, int height_px);
/// Three planes Y, U, V one behind the other without any padding. Errors: as nv12_layout.
Result<FrameLayout> i420_layout(int width_px, int height_px);

/// Bytes from the start of the frame to the end of its last luma row: what the cabin warp reads.
uint64_t luma_bytes(const FrameLayout& layout);
/// Bytes of a frame made by nv12_layout that the road host copies: both planes with their padding rows. 0 when the
/// layout has no such block (another format, or planes without that padding).
uint64_t road_copy_bytes(const FrameLayout& layout);

/// Holds a layout from elsewhere against the bounds above and a buffer of `buffer_bytes`: known format and range, even
/// sides, rows that hold their pixels, planes that do not overlap and lie inside size_bytes <= buffer_bytes.
/// Errors: InvalidArgument, reason "FrameSize" (width, height, format), "FrameLayout" (planes) or "FrameLength" (buffer).
Status check_layout(const FrameLayout& layout, uint64_t buffer_bytes);

/// "nv12", "i420".
std::string_view to_string(PixelFormat format);
/// Reads a format's name, in either case; "yuv420p" is i420. Errors: InvalidArgument, reason "FrameFormat".
Result<PixelFormat> parse_pixel_format(std::string_view text);
/// "nv12 1928x1208, stride 2048"; for people.
std::string to_string(const FrameLayout& layout);

}  // namespace ignis::pipeline
