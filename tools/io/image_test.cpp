#include "tools/io/image.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ignis::tools {
namespace {

Image gradient(int width, int height) {
  Image image;
  image.width_px = width;
  image.height_px = height;
  for (int i = 0; i < width * height; ++i) {
    image.rgb.push_back(static_cast<uint8_t>(3 * i));
    image.rgb.push_back(static_cast<uint8_t>(3 * i + 1));
    image.rgb.push_back(static_cast<uint8_t>(3 * i + 2));
  }
  return image;
}

std::vector<std::byte> to_bytes(const std::string& text) {
  std::vector<std::byte> out(text.size());
  std::memcpy(out.data(), text.data(), text.size());
  return out;
}

TEST(Image, PngAndPpmComeBack) {
  const Image image = gradient(5, 3);
  for (const auto& file : {format_png(image).value(), format_ppm(image)}) {
    const Image back = parse_image(file).value();
    EXPECT_EQ(back.width_px, 5);
    EXPECT_EQ(back.height_px, 3);
    EXPECT_EQ(back.rgb, image.rgb);
  }
}

TEST(Image, GreyPpmWithCommentAndScale) {
  const Image image =
      parse_image(to_bytes("P5 # two pixels\n2 1\n5\n" + std::string("\x05\x01", 2))).value();
  EXPECT_EQ(image.rgb, (std::vector<uint8_t>{255, 255, 255, 51, 51, 51}));
}

TEST(Image, RefusesDamage) {
  const auto png = format_png(gradient(9, 9)).value();
  for (size_t size = 0; size + 12 < png.size(); ++size)
    EXPECT_FALSE(parse_image(std::span(png).first(size))) << size;
  EXPECT_FALSE(parse_image(to_bytes("P6 100000 100000 255\n")));
  EXPECT_FALSE(parse_image(to_bytes("P6 2 2 255\nabc")));
  EXPECT_FALSE(parse_image(to_bytes("P6 0 2 255\n")));
  EXPECT_FALSE(parse_image(to_bytes("P6 2")));
  EXPECT_FALSE(parse_image(to_bytes("GIF89a")));
  EXPECT_FALSE(parse_image({}));
}

TEST(Image, LayoutsAndColours) {
  const Image image = gradient(2, 1);  // pixels (0, 1, 2) and (3, 4, 5)
  const auto values = [&](const std::string& order, const std::string& color) {
    ImageLayout layout;
    layout.order = order;
    layout.color = color;
    const HostTensor t = to_tensor(image, layout, DType::Float32).value();
    return std::vector<float>(t.data<float>(), t.data<float>() + t.count());
  };
  EXPECT_EQ(values("NCHW", "rgb"), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values("NCHW", "bgr"), (std::vector<float>{2, 5, 1, 4, 0, 3}));
  EXPECT_EQ(values("NHWC", "rgb"), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values("HWC", "bgr"), (std::vector<float>{2, 1, 0, 5, 4, 3}));
  EXPECT_NEAR(values("HW", "gray")[0], 0.587 + 2 * 0.114, 1e-6);
  ImageLayout bad;
  bad.order = "NCH";
  EXPECT_FALSE(tensor_shape(image, bad));
  bad.order = "HW";
  EXPECT_FALSE(tensor_shape(image, bad));
  bad.color = "cmyk";
  EXPECT_FALSE(tensor_shape(image, bad));
}

TEST(Image, MeanAndScaleByChannel) {
  ImageLayout layout;
  layout.mean = {1, 2, 3};
  layout.scale = {0.5};
  const HostTensor t = to_tensor(gradient(1, 1), layout, DType::Float32).value();
  EXPECT_EQ(t.shape, (Shape{1, 3, 1, 1}));
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(element_as_double(t, i), -0.5);
  layout.mean = {1, 2};
  EXPECT_FALSE(to_tensor(gradient(1, 1), layout, DType::Float32));
  EXPECT_EQ(element_as_int(to_tensor(gradient(1, 1), {}, DType::UInt8).value(), 2), 2);
}

TEST(Image, ResizeIsBilinearAtPixelCentres) {
  Image row;
  row.width_px = 2;
  row.height_px = 1;
  row.rgb = {0, 0, 0, 100, 100, 100};
  const Image wide = resize(row, 4, 1);  // centres at -0.25, 0.25, 0.75, 1.25 of the source
  EXPECT_EQ(wide.pixel(0, 0)[0], 0);
  EXPECT_EQ(wide.pixel(1, 0)[0], 25);
  EXPECT_EQ(wide.pixel(2, 0)[0], 75);
  EXPECT_EQ(wide.pixel(3, 0)[0], 100);
}

}  // namespace
}  // namespace ignis::tools
