#include "tools/ignis/dm/jpeg.h"

#include "tools/io/image.h"
#include <gtest/gtest.h>

namespace ignis::tools {
namespace {

using pipeline::ColorRange;
using pipeline::Frame;
using pipeline::PixelFormat;

/// A frame whose left half has one colour and whose right half another; rows are padded with 255.
struct Halves {
  Frame frame;
  std::vector<std::byte> bytes;

  Halves(PixelFormat format, int width_px, int height_px, ColorRange range,
         std::array<uint8_t, 3> left, std::array<uint8_t, 3> right) {
    pipeline::FrameLayout& l = frame.layout;
    l.format = format;
    l.range = range;
    l.width_px = width_px;
    l.height_px = height_px;
    l.y_stride = width_px + 32;
    const bool is_nv12 = format == PixelFormat::Nv12;
    l.uv_stride = (is_nv12 ? width_px : width_px / 2) + 16;
    l.u_offset = l.y_stride * height_px + 64;
    l.v_offset = is_nv12 ? l.u_offset + 1 : l.u_offset + l.uv_stride * (height_px / 2);
    l.size_bytes = (is_nv12 ? l.u_offset : l.v_offset) + l.uv_stride * (height_px / 2);
    bytes.assign(static_cast<size_t>(l.size_bytes), std::byte{255});
    for (int y = 0; y < height_px; ++y) {
      for (int x = 0; x < width_px; ++x) {
        const auto& c = x < width_px / 2 ? left : right;
        bytes[static_cast<size_t>(y * l.y_stride + x)] = std::byte{c[0]};
        const int64_t row = (y / 2) * l.uv_stride, column = (x / 2) * (is_nv12 ? 2 : 1);
        bytes[static_cast<size_t>(l.u_offset + row + column)] = std::byte{c[1]};
        bytes[static_cast<size_t>(l.v_offset + row + column)] = std::byte{c[2]};
      }
    }
    frame.bytes = bytes;
  }
};

void expect_color(const Image& image, int x, int y, std::array<int, 3> rgb) {
  for (int c = 0; c < 3; ++c)
    EXPECT_NEAR(image.pixel(x, y)[c], rgb[static_cast<size_t>(c)], 6) << x << "," << y << " " << c;
}

TEST(Jpeg, ShrinksAndKeepsColours) {
  for (const PixelFormat format : {PixelFormat::Nv12, PixelFormat::I420}) {
    // BT.601 limited range: red is (81, 90, 240), white (235, 128, 128).
    const Halves halves(format, 1928, 1208, ColorRange::Limited, {81, 90, 240}, {235, 128, 128});
    JpegEncoder encoder;
    const auto jpeg = encoder.encode(halves.frame);
    ASSERT_TRUE(jpeg) << jpeg.error().to_string();
    const auto image = parse_image(*jpeg);
    ASSERT_TRUE(image);
    EXPECT_EQ(image->width_px, 960);
    EXPECT_EQ(image->height_px, 600);  // 1208 * 960 / 1928 = 601.5, even
    expect_color(*image, 200, 300, {255, 0, 0});
    expect_color(*image, 470, 599, {255, 0, 0});
    expect_color(*image, 490, 0, {255, 255, 255});
    expect_color(*image, 959, 599, {255, 255, 255});
  }
}

TEST(Jpeg, SmallPicturesKeepTheirSize) {
  const Halves halves(PixelFormat::Nv12, 34, 18, ColorRange::Full, {0, 128, 128}, {90, 128, 128});
  JpegEncoder encoder;
  const auto image = parse_image(*encoder.encode(halves.frame));
  ASSERT_TRUE(image);
  EXPECT_EQ(image->width_px, 34);
  EXPECT_EQ(image->height_px, 18);
  expect_color(*image, 2, 2, {0, 0, 0});
  expect_color(*image, 30, 15, {90, 90, 90});
}

TEST(Jpeg, RefusesPlanesOutsideOfTheFrame) {
  JpegEncoder encoder;
  const auto with = [&](auto change) {
    Halves halves(PixelFormat::I420, 64, 48, ColorRange::Full, {1, 2, 3}, {4, 5, 6});
    change(halves.frame);
    const auto jpeg = encoder.encode(halves.frame);
    return jpeg ? std::string("accepted") : std::string(to_string(jpeg.error().code()));
  };
  EXPECT_EQ(with([](Frame&) {}), "accepted");
  EXPECT_EQ(with([](Frame& f) { f.bytes = f.bytes.first(100); }), "InvalidArgument");
  EXPECT_EQ(with([](Frame& f) { f.layout.y_stride = 10; }), "InvalidArgument");
  EXPECT_EQ(with([](Frame& f) { f.layout.y_stride = int64_t{1} << 62; }), "InvalidArgument");
  EXPECT_EQ(with([](Frame& f) { f.layout.u_offset = -1; }), "InvalidArgument");
  EXPECT_EQ(with([](Frame& f) { f.layout.v_offset += 17; }), "InvalidArgument");
  EXPECT_EQ(with([](Frame& f) { f.layout.height_px = 0; }), "InvalidArgument");
  EXPECT_EQ(with([](Frame& f) { f.layout.width_px = 1 << 20; }), "InvalidArgument");
}

}  // namespace
}  // namespace ignis::tools
