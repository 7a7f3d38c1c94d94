#include "ignis/pipeline/frames/layout.h"

#include <array>
#include <cctype>
#include <string>

namespace ignis::pipeline {
namespace {

constexpr int64_t align(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

Error size_error(const std::string& text) {
  return Error(ErrorCode::InvalidArgument, text, "FrameSize");
}
Error plane_error(const std::string& text) {
  return Error(ErrorCode::InvalidArgument, text, "FrameLayout");
}

Status check_size(int width_px, int height_px) {
  const bool is_inside = width_px >= kMinFramePx && width_px <= kMaxFrameWidthPx &&
                         height_px >= kMinFramePx && height_px <= kMaxFrameHeightPx;
  if (is_inside && width_px % 2 == 0 && height_px % 2 == 0) return Status::ok();
  return size_error("A frame of " + std::to_string(width_px) + "x" + std::to_string(height_px) +
                    " pixels is not possible: both sides are even, at least 2x2 and at most " +
                    std::to_string(kMaxFrameWidthPx) + "x" + std::to_string(kMaxFrameHeightPx) +
                    ".");
}

/// One plane of a buffer, in bytes.
struct Plane {
  const char* name;
  int64_t offset, stride, row_bytes, rows;
  int64_t end() const { return offset + stride * rows; }
};

Status check_plane(const Plane& plane, int64_t size_bytes) {
  const std::string name = plane.name;
  if (plane.stride < plane.row_bytes || plane.stride > kMaxStrideBytes) {
    return plane_error("The " + name + " plane has rows of " + std::to_string(plane.stride) +
                       " bytes; they hold " + std::to_string(plane.row_bytes) +
                       " bytes of pixels and may be at most " + std::to_string(kMaxStrideBytes) +
                       ".");
  }
  if (plane.offset < 0 || plane.offset > size_bytes || plane.end() > size_bytes) {
    return plane_error("The " + name + " plane begins at byte " + std::to_string(plane.offset) +
                       " and needs " + std::to_string(plane.stride * plane.rows) +
                       "; the frame has " + std::to_string(size_bytes) + " bytes.");
  }
  return Status::ok();
}

Status check_apart(const Plane& a, const Plane& b) {
  if (a.end() <= b.offset || b.end() <= a.offset) return Status::ok();
  return plane_error("The " + std::string(a.name) + " plane (bytes " + std::to_string(a.offset) +
                     " to " + std::to_string(a.end()) + ") and the " + b.name +
                     " plane (from byte " + std::to_string(b.offset) + ") overlap.");
}

}  // namespace

Result<FrameLayout> nv12_layout(int width_px, int height_px) {
  IGNIS_TRY(check_size(width_px, height_px));
  FrameLayout layout;
  layout.width_px = width_px;
  layout.height_px = height_px;
  const int64_t stride = align(width_px, 128);
  const int64_t y_plane = stride * align(height_px, 32);
  const int64_t uv_plane = stride * align(height_px / 2, 16) + 4096;
  const int64_t planes = align(y_plane + uv_plane + std::max<int64_t>(16384, 8 * stride), 4096);
  layout.y_stride = stride;
  layout.uv_stride = stride;
  layout.u_offset = y_plane;
  layout.v_offset = y_plane + 1;
  layout.size_bytes = align(planes + align(width_px, 512) * 512, 4096);
  return layout;
}

Result<FrameLayout> tight_nv12_layout(int width_px, int height_px) {
  IGNIS_TRY(check_size(width_px, height_px));
  FrameLayout layout;
  layout.width_px = width_px;
  layout.height_px = height_px;
  layout.y_stride = width_px;
  layout.uv_stride = width_px;
  layout.u_offset = int64_t{width_px} * height_px;
  layout.v_offset = layout.u_offset + 1;
  layout.size_bytes = layout.u_offset + layout.u_offset / 2;
  return layout;
}

Result<FrameLayout> i420_layout(int width_px, int height_px) {
  IGNIS_TRY(check_size(width_px, height_px));
  FrameLayout layout;
  layout.format = PixelFormat::I420;
  layout.width_px = width_px;
  layout.height_px = height_px;
  layout.y_stride = width_px;
  layout.uv_stride = width_px / 2;
  layout.u_offset = int64_t{width_px} * height_px;
  layout.v_offset = layout.u_offset + layout.u_offset / 4;
  layout.size_bytes = layout.u_offset + layout.u_offset / 2;
  return layout;
}

uint64_t luma_bytes(const FrameLayout& layout) {
  return static_cast<uint64_t>(layout.y_stride) * static_cast<uint64_t>(layout.height_px);
}

uint64_t road_copy_bytes(const FrameLayout& layout) {
  const int64_t y_bytes = layout.y_stride * align(layout.height_px, 32);
  const int64_t bytes = y_bytes + layout.uv_stride * align(layout.height_px / 2, 16);
  const bool has_padding = layout.format == PixelFormat::Nv12 && layout.u_offset == y_bytes &&
                           layout.uv_stride == layout.y_stride && bytes <= layout.size_bytes;
  return has_padding ? static_cast<uint64_t>(bytes) : 0;
}

Status check_layout(const FrameLayout& layout, uint64_t buffer_bytes) {
  if (layout.format != PixelFormat::Nv12 && layout.format != PixelFormat::I420) {
    return size_error("Pixel format " + std::to_string(static_cast<int>(layout.format)) +
                      " is not known; NV12 is 1 and I420 is 2.");
  }
  if (layout.range != ColorRange::Limited && layout.range != ColorRange::Full) {
    return size_error("Colour range " + std::to_string(static_cast<int>(layout.range)) +
                      " is not known; limited is 0 and full is 1.");
  }
  IGNIS_TRY(check_size(layout.width_px, layout.height_px));
  if (layout.size_bytes <= 0 || layout.size_bytes > kMaxFrameBytes ||
      static_cast<uint64_t>(layout.size_bytes) > buffer_bytes) {
    return Error(ErrorCode::InvalidArgument,
                 "A frame of " + std::to_string(layout.size_bytes) +
                     " bytes does not fit: " + "its buffer has " + std::to_string(buffer_bytes) +
                     " bytes and a frame has " + "1 to " + std::to_string(kMaxFrameBytes) + ".",
                 "FrameLength");
  }
  // From here on every product is below 2^16 * 2^12 and every offset is compared before it is added to.
  const Plane y{"Y", 0, layout.y_stride, layout.width_px, layout.height_px};
  IGNIS_TRY(check_plane(y, layout.size_bytes));
  const int64_t chroma_rows = layout.height_px / 2;
  if (layout.format == PixelFormat::Nv12) {
    const Plane uv{"UV", layout.u_offset, layout.uv_stride, layout.width_px, chroma_rows};
    IGNIS_TRY(check_plane(uv, layout.size_bytes));
    if (layout.v_offset != layout.u_offset + 1) {
      return plane_error("V begins at byte " + std::to_string(layout.v_offset) +
                         "; in NV12 it follows U, which begins at byte " +
                         std::to_string(layout.u_offset) + ".");
    }
    return check_apart(y, uv);
  }
  const Plane u{"U", layout.u_offset, layout.uv_stride, layout.width_px / 2, chroma_rows};
  const Plane v{"V", layout.v_offset, layout.uv_stride, layout.width_px / 2, chroma_rows};
  IGNIS_TRY(check_plane(u, layout.size_bytes));
  IGNIS_TRY(check_plane(v, layout.size_bytes));
  IGNIS_TRY(check_apart(y, u));
  IGNIS_TRY(check_apart(y, v));
  return check_apart(u, v);
}

std::string_view to_string(PixelFormat format) {
  switch (format) {
    case PixelFormat::Nv12: return "nv12";
    case PixelFormat::I420: return "i420";
  }
  return "unknown";
}

Result<PixelFormat> parse_pixel_format(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower == "nv12") return PixelFormat::Nv12;
  if (lower == "i420" || lower == "yuv420p") return PixelFormat::I420;
  return Error(ErrorCode::InvalidArgument,
               "'" + std::string(text.substr(0, 32)) + "' is no pixel format; say nv12 or i420.",
               "FrameFormat");
}

std::string to_string(const FrameLayout& layout) {
  return std::string(to_string(layout.format)) + " " + std::to_string(layout.width_px) + "x" +
         std::to_string(layout.height_px) + ", stride " + std::to_string(layout.y_stride);
}

}  // namespace ignis::pipeline
