#include "tools/ignis/dm/jpeg.h"

#include "ignis/base/math.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#ifdef IGNIS_HAVE_JPEG
#include <jpeglib.h>
#endif

namespace ignis::tools {
namespace {

/// Is a plane of `rows` rows of `row_bytes` inside the frame?
bool is_plane_inside(int64_t offset, int64_t stride, int64_t row_bytes, int64_t rows,
                     uint64_t total) {
  if (offset < 0 || stride < row_bytes || row_bytes <= 0 || rows <= 0) return false;
  const auto span = checked_mul<int64_t>(stride, rows - 1);
  const auto size = span ? checked_add<int64_t>(*span, row_bytes) : std::nullopt;
  return size &&
         is_range_inside(static_cast<uint64_t>(offset), static_cast<uint64_t>(*size), total);
}

/// JPEG samples use the full range; video has black at 16, white at 235 and chroma from 16 to 240.
std::vector<uint8_t> level_table(pipeline::ColorRange range, bool is_chroma) {
  std::vector<uint8_t> table(256);
  for (int v = 0; v < 256; ++v) {
    double level = v;
    if (range == pipeline::ColorRange::Limited) {
      level = is_chroma ? (v - 128) * 255.0 / 224.0 + 128 : (v - 16) * 255.0 / 219.0;
    }
    table[static_cast<size_t>(v)] = static_cast<uint8_t>(std::clamp(level + 0.5, 0.0, 255.0));
  }
  return table;
}

int even(int value) { return std::max(2, value & ~1); }

#ifdef IGNIS_HAVE_JPEG
struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void on_error(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->back, 1);
}
#endif

}  // namespace

void JpegEncoder::shrink(const std::byte* from, int64_t stride, int step, int width_px,
                         int height_px, const std::vector<uint8_t>& levels, Plane& to) const {
  to.stride = align_up(to.width_px, 16);
  to.rows = align_up(to.height_px, 16);
  to.samples.resize(static_cast<size_t>(to.stride) * static_cast<size_t>(to.rows));
  const auto* bytes = reinterpret_cast<const uint8_t*>(from);
  // Four samples around the middle of each new pixel: at the usual step of two that is the mean of all it covers.
  std::vector<std::array<int64_t, 2>> columns(static_cast<size_t>(to.width_px));
  for (int x = 0; x < to.width_px; ++x) {
    const int64_t first = static_cast<int64_t>(x) * width_px / to.width_px;
    const int64_t last = std::min<int64_t>(first + (width_px > to.width_px ? 1 : 0), width_px - 1);
    columns[static_cast<size_t>(x)] = {first * step, last * step};
  }
  for (int y = 0; y < to.height_px; ++y) {
    const int64_t first = static_cast<int64_t>(y) * height_px / to.height_px;
    const int64_t last =
        std::min<int64_t>(first + (height_px > to.height_px ? 1 : 0), height_px - 1);
    const uint8_t* upper = bytes + first * stride;
    const uint8_t* lower = bytes + last * stride;
    uint8_t* row = to.samples.data() + static_cast<size_t>(y) * static_cast<size_t>(to.stride);
    for (int x = 0; x < to.width_px; ++x) {
      const auto [left, right] = columns[static_cast<size_t>(x)];
      const int sum = upper[left] + upper[right] + lower[left] + lower[right];
      row[x] = levels[static_cast<size_t>((sum + 2) >> 2)];
    }
    std::fill(row + to.width_px, row + to.stride, row[to.width_px - 1]);
  }
  const uint8_t* bottom =
      to.samples.data() + static_cast<size_t>(to.height_px - 1) * static_cast<size_t>(to.stride);
  for (int y = to.height_px; y < to.rows; ++y) {
    std::copy(bottom, bottom + to.stride,
              to.samples.data() + static_cast<size_t>(y) * static_cast<size_t>(to.stride));
  }
}

Result<std::vector<std::byte>> JpegEncoder::encode(const pipeline::Frame& frame) {
  const pipeline::FrameLayout& l = frame.layout;
  const bool is_nv12 = l.format == pipeline::PixelFormat::Nv12;
  const int64_t chroma_row = is_nv12 ? int64_t{l.width_px} : int64_t{l.width_px} / 2;
  const uint64_t total = frame.bytes.size();
  const bool fits =
      l.width_px >= 2 && l.height_px >= 2 && l.width_px <= 65500 && l.height_px <= 65500 &&
      is_plane_inside(0, l.y_stride, l.width_px, l.height_px, total) &&
      is_plane_inside(l.u_offset, l.uv_stride, chroma_row, l.height_px / 2, total) &&
      (is_nv12 || is_plane_inside(l.v_offset, l.uv_stride, chroma_row, l.height_px / 2, total));
  if (!fits) {
    return Error(ErrorCode::InvalidArgument,
                 "A frame of " + std::to_string(l.width_px) + "x" + std::to_string(l.height_px) +
                     " has planes outside of its " + std::to_string(total) + " bytes.");
  }
  y_.width_px = std::min(even(l.width_px), even(max_width_px_));
  y_.height_px = even(static_cast<int>(int64_t{l.height_px} * y_.width_px / l.width_px));
  u_.width_px = v_.width_px = y_.width_px / 2;
  u_.height_px = v_.height_px = y_.height_px / 2;
  const std::byte* bytes = frame.bytes.data();
  const int step = is_nv12 ? 2 : 1;
  const std::vector<uint8_t> luma = level_table(l.range, false),
                             chroma = level_table(l.range, true);
  shrink(bytes, l.y_stride, 1, l.width_px, l.height_px, luma, y_);
  shrink(bytes + l.u_offset, l.uv_stride, step, l.width_px / 2, l.height_px / 2, chroma, u_);
  shrink(bytes + (is_nv12 ? l.u_offset + 1 : l.v_offset), l.uv_stride, step, l.width_px / 2,
         l.height_px / 2, chroma, v_);
#ifdef IGNIS_HAVE_JPEG
  jpeg_compress_struct jpeg{};
  Errors errors{};
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  // What lives across the jump back is either volatile in effect (memory, size: written through pointers that libjpeg
  // holds) or not touched between setjmp and longjmp.
  jpeg.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = on_error;
  if (setjmp(errors.back) != 0) {
    jpeg_destroy_compress(&jpeg);
    std::free(memory);
    return Error(ErrorCode::Internal,
                 std::string("The picture cannot be written as JPEG: ") + errors.message + ".");
  }
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(y_.width_px);
  jpeg.image_height = static_cast<JDIMENSION>(y_.height_px);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_YCbCr;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality_, TRUE);
  jpeg.dct_method = JDCT_IFAST;
  jpeg.raw_data_in = TRUE;
  jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = 2;
  for (int c = 1; c < 3; ++c) jpeg.comp_info[c].h_samp_factor = jpeg.comp_info[c].v_samp_factor = 1;
  jpeg_start_compress(&jpeg, TRUE);
  JSAMPROW y_rows[16], u_rows[8], v_rows[8];
  JSAMPARRAY planes[3] = {y_rows, u_rows, v_rows};
  while (jpeg.next_scanline < jpeg.image_height) {
    const auto top = static_cast<size_t>(jpeg.next_scanline);
    for (size_t i = 0; i < 16; ++i)
      y_rows[i] = y_.samples.data() + (top + i) * static_cast<size_t>(y_.stride);
    for (size_t i = 0; i < 8; ++i) {
      const size_t row = (top / 2 + i);
      u_rows[i] = u_.samples.data() + row * static_cast<size_t>(u_.stride);
      v_rows[i] = v_.samples.data() + row * static_cast<size_t>(v_.stride);
    }
    jpeg_write_raw_data(&jpeg, planes, 16);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  const auto* first = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> out(first, first + size);
  std::free(memory);
  return out;
#else
  return Error(ErrorCode::Unsupported, "This build writes no JPEG pictures; install libjpeg-dev.");
#endif
}

}  // namespace ignis::tools
