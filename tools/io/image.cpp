#include "tools/io/image.h"

#include <png.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <string_view>

#ifdef IGNIS_HAVE_JPEG
#include <jpeglib.h>

#include <csetjmp>
#include <cstdio>
#endif

namespace ignis::tools {
namespace {

constexpr uint64_t kMaxPixels = uint64_t{1} << 28;

Error malformed(const std::string& what) {
  return Error(ErrorCode::InvalidArgument, what, "MalformedFile");
}

Result<Image> make_image(uint64_t width, uint64_t height) {
  if (width == 0 || height == 0 || width > kMaxPixels || height > kMaxPixels ||
      width * height > kMaxPixels) {
    return malformed("The image has " + std::to_string(width) + " x " + std::to_string(height) +
                     " pixels; at most 2^28 are read.");
  }
  Image image;
  image.width_px = static_cast<int>(width);
  image.height_px = static_cast<int>(height);
  image.rgb.resize(3 * width * height);
  return image;
}

Result<Image> parse_png(std::span<const std::byte> bytes) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0) {
    return malformed(std::string("The PNG file cannot be read: ") + png.message + ".");
  }
  png.format = PNG_FORMAT_RGB;
  auto image = make_image(png.width, png.height);
  const png_color black{0, 0, 0};
  if (image && png_image_finish_read(&png, &black, image->rgb.data(), 0, nullptr) == 0) {
    image = malformed(std::string("The PNG file cannot be read: ") + png.message + ".");
  }
  png_image_free(&png);
  return image;
}

/// P6 (RGB) or P5 (grey): magic, width, height, highest value, one white space, samples. '#' begins a comment.
Result<Image> parse_ppm(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_t at = 2;
  uint64_t numbers[3] = {0, 0, 0};
  for (uint64_t& number : numbers) {
    while (at < text.size() &&
           (std::isspace(static_cast<unsigned char>(text[at])) || text[at] == '#')) {
      if (text[at] == '#') at = std::min(text.find('\n', at), text.size());
      else ++at;
    }
    const size_t begin = at;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) &&
           number <= kMaxPixels) {
      number = 10 * number + static_cast<uint64_t>(text[at++] - '0');
    }
    if (at == begin) return malformed("The PPM header is malformed.");
  }
  ++at;
  const size_t channels = text[1] == '6' ? 3 : 1;
  if (numbers[2] == 0 || numbers[2] > 255)
    return malformed("The PPM file has samples of more than 8 bits.");
  IGNIS_TRY_ASSIGN(Image image, make_image(numbers[0], numbers[1]));
  const size_t pixels = image.rgb.size() / 3;
  if (at > text.size() || text.size() - at < pixels * channels)
    return malformed("The PPM file is truncated.");
  for (size_t i = 0; i < image.rgb.size(); ++i) {
    const auto sample = std::to_integer<uint64_t>(bytes[at + (channels == 3 ? i : i / 3)]);
    image.rgb[i] = static_cast<uint8_t>(std::min<uint64_t>(sample * 255 / numbers[2], 255));
  }
  return image;
}

#ifdef IGNIS_HAVE_JPEG
struct JpegErrors {
  jpeg_error_mgr base;
  jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void jpeg_failed(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->message);
  longjmp(errors->escape, 1);
}

Result<Image> parse_jpeg(std::span<const std::byte> bytes) {
  jpeg_decompress_struct jpeg{};
  JpegErrors errors{};
  Result<Image> image = Image{};
  jpeg.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = jpeg_failed;
  errors.base.output_message = [](j_common_ptr) {};
  if (setjmp(errors.escape) !=
      0) {  // no object with a destructor is made between here and the jump
    jpeg_destroy_decompress(&jpeg);
    return malformed(std::string("The JPEG file cannot be read: ") + errors.message + ".");
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  image = make_image(jpeg.image_width, jpeg.image_height);
  if (image) {
    jpeg_start_decompress(&jpeg);
    while (jpeg.output_scanline < jpeg.output_height) {
      JSAMPROW row = image->pixel(0, static_cast<int>(jpeg.output_scanline));
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
  }
  jpeg_destroy_decompress(&jpeg);
  return image;
}
#endif

bool starts_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

Result<int> channel_count(const ImageLayout& layout) {
  if (layout.color == "rgb" || layout.color == "bgr") return 3;
  if (layout.color == "gray") return 1;
  return Error(ErrorCode::InvalidArgument,
               "Colour '" + layout.color + "' is none of rgb, bgr and gray.");
}

/// The sample of one channel in [0, 255].
double sample(const uint8_t* rgb, const std::string& color, int channel) {
  if (color == "rgb") return rgb[channel];
  if (color == "bgr") return rgb[2 - channel];
  return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
}

}  // namespace

Result<Image> parse_image(std::span<const std::byte> bytes) {
  if (starts_with(bytes, "\x89PNG")) return parse_png(bytes);
  if (starts_with(bytes, "P6") || starts_with(bytes, "P5")) return parse_ppm(bytes);
  if (starts_with(bytes, "\xff\xd8\xff")) {
#ifdef IGNIS_HAVE_JPEG
    return parse_jpeg(bytes);
#else
    return malformed("This build reads no JPEG files; convert the image to PNG.");
#endif
  }
  return malformed("The file is no image that Ignis reads: PNG, JPEG, PPM (P6) or PGM (P5).");
}

Result<std::vector<std::byte>> format_png(const Image& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width_px);
  png.height = static_cast<png_uint_32>(image.height_px);
  png.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::vector<std::byte> out(size);
  if (png_image_write_to_memory(&png, out.data(), &size, 0, image.rgb.data(), 0, nullptr) == 0) {
    return Error(ErrorCode::Internal,
                 std::string("The PNG file cannot be made: ") + png.message + ".");
  }
  out.resize(size);
  return out;
}

std::vector<std::byte> format_ppm(const Image& image) {
  const std::string header =
      "P6\n" + std::to_string(image.width_px) + " " + std::to_string(image.height_px) + "\n255\n";
  std::vector<std::byte> out(header.size() + image.rgb.size());
  std::memcpy(out.data(), header.data(), header.size());
  if (!image.rgb.empty())
    std::memcpy(out.data() + header.size(), image.rgb.data(), image.rgb.size());
  return out;
}

Image resize(const Image& image, int width_px, int height_px) {
  Image out;
  out.width_px = width_px;
  out.height_px = height_px;
  out.rgb.resize(3 * static_cast<size_t>(width_px) * static_cast<size_t>(height_px));
  // Centre (i + 0.5) of a target pixel lies at (i + 0.5) * from / to of the source.
  const auto place = [](int i, int from, int to) {
    const double at = (i + 0.5) * from / to - 0.5;
    return std::clamp(at, 0.0, static_cast<double>(from - 1));
  };
  for (int y = 0; y < height_px; ++y) {
    const double v = place(y, image.height_px, height_px);
    const int y0 = static_cast<int>(v), y1 = std::min(y0 + 1, image.height_px - 1);
    for (int x = 0; x < width_px; ++x) {
      const double u = place(x, image.width_px, width_px);
      const int x0 = static_cast<int>(u), x1 = std::min(x0 + 1, image.width_px - 1);
      for (int c = 0; c < 3; ++c) {
        const double top =
            image.pixel(x0, y0)[c] * (1 - (u - x0)) + image.pixel(x1, y0)[c] * (u - x0);
        const double low =
            image.pixel(x0, y1)[c] * (1 - (u - x0)) + image.pixel(x1, y1)[c] * (u - x0);
        out.pixel(x, y)[c] =
            static_cast<uint8_t>(std::lround(top * (1 - (v - y0)) + low * (v - y0)));
      }
    }
  }
  return out;
}

Result<Shape> tensor_shape(const Image& image, const ImageLayout& layout) {
  IGNIS_TRY_ASSIGN(const int channels, channel_count(layout));
  Shape shape;
  std::string sorted = layout.order;
  std::sort(sorted.begin(), sorted.end());
  for (const char axis : layout.order) {
    shape.push_back(axis == 'C'   ? channels
                    : axis == 'H' ? image.height_px
                    : axis == 'W' ? image.width_px
                                  : 1);
  }
  const bool has_channels = sorted == "CHNW" || sorted == "CHW",
             has_none = sorted == "HNW" || sorted == "HW";
  if (!has_channels && !has_none) {
    return Error(ErrorCode::InvalidArgument,
                 "Layout '" + layout.order + "' is no order of N, C, H and W.");
  }
  if (has_none && channels != 1) {
    return Error(ErrorCode::InvalidArgument,
                 "Layout '" + layout.order + "' has no place for colours; say color=gray.");
  }
  return shape;
}

Result<HostTensor> to_tensor(const Image& image, const ImageLayout& layout, DType dtype) {
  IGNIS_TRY_ASSIGN(const Shape shape, tensor_shape(image, layout));
  IGNIS_TRY_ASSIGN(const int channels, channel_count(layout));
  const auto value_of = [&](const std::vector<double>& values, int channel) {
    return values[values.size() == 1 ? 0 : static_cast<size_t>(channel)];
  };
  for (const std::vector<double>* values : {&layout.mean, &layout.scale}) {
    if (values->size() != 1 && values->size() != static_cast<size_t>(channels)) {
      return Error(ErrorCode::InvalidArgument, "The image has " + std::to_string(channels) +
                                                   " channels; mean or scale has " +
                                                   std::to_string(values->size()) + " values.");
    }
  }
  HostTensor tensor = HostTensor::zeros(dtype, shape);
  int64_t stride_c = 0, stride_h = 0, stride_w = 0, step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (layout.order[i] == 'C') stride_c = step;
    if (layout.order[i] == 'H') stride_h = step;
    if (layout.order[i] == 'W') stride_w = step;
    step *= shape[i];
  }
  for (int c = 0; c < channels; ++c) {
    const double mean = value_of(layout.mean, c), scale = value_of(layout.scale, c);
    for (int y = 0; y < image.height_px; ++y) {
      for (int x = 0; x < image.width_px; ++x) {
        const double value = (sample(image.pixel(x, y), layout.color, c) - mean) * scale;
        const int64_t at = c * stride_c + y * stride_h + x * stride_w;
        if (dtype == DType::Float32) tensor.data<float>()[at] = static_cast<float>(value);
        else if (is_float(dtype)) store_element(tensor, at, value);
        else store_element(tensor, at, std::nearbyint(value));
      }
    }
  }
  return tensor;
}

}  // namespace ignis::tools
