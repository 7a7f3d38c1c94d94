#include "ignis/pipeline/frames/synthetic_scene.h"

#include "ignis/base/check.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace ignis::pipeline {
namespace {

// Camera A, and where the portrait goes on it.
constexpr double kReferenceWidthPx = 1928, kReferenceHeightPx = 1208;
constexpr double kCropLeftPx = 1079, kCropTopPx = 157, kCropWidthPx = 251;
constexpr double kMirroredCropLeftPx = 630;
constexpr double kPortraitLeftPx = 150, kPortraitTopPx = 20;
constexpr double kPortraitPerReference = 240.0 / 502.0;
/// The built-in portrait's width; others are scaled so that they cover the same place.
constexpr double kPortraitWidthPx = 512;
/// The portrait fades into the cabin over this width, in pixels of camera A.
constexpr double kFadePx = 110;

constexpr int kNoiseCount = 1 << 16;
/// Samples handled at once; a fixed count lets the compiler use vector instructions.
constexpr int kBlock = 32;

struct Yuv {
  double y = 0, u = 128, v = 128;
};

/// BT.601, limited range.
Yuv to_yuv(double r, double g, double b) {
  return {16 + 0.256788 * r + 0.504129 * g + 0.097906 * b,
          128 - 0.148223 * r - 0.290993 * g + 0.439216 * b,
          128 + 0.439216 * r - 0.367788 * g - 0.071427 * b};
}

Yuv mix(const Yuv& a, const Yuv& b, double share_of_b) {
  return {a.y + (b.y - a.y) * share_of_b, a.u + (b.u - a.u) * share_of_b,
          a.v + (b.v - a.v) * share_of_b};
}

double smooth_step(double from, double to, double x) {
  const double t = std::clamp((x - from) / (to - from), 0.0, 1.0);
  return t * t * (3 - 2 * t);
}

uint8_t to_byte(double value) {
  return static_cast<uint8_t>(std::clamp(std::lround(value), 0L, 255L));
}

/// Bilinear; edges are repeated.
Yuv sample(const Portrait& portrait, double x, double y) {
  x = std::clamp(x, 0.0, portrait.width_px - 1.0);
  y = std::clamp(y, 0.0, portrait.height_px - 1.0);
  const int x0 = static_cast<int>(x), y0 = static_cast<int>(y);
  const int x1 = std::min(x0 + 1, portrait.width_px - 1);
  const int y1 = std::min(y0 + 1, portrait.height_px - 1);
  const double fx = x - x0, fy = y - y0;
  double rgb[3];
  for (int c = 0; c < 3; ++c) {
    const auto at = [&](int px, int py) {
      const size_t pixel = static_cast<size_t>(py) * static_cast<size_t>(portrait.width_px) +
                           static_cast<size_t>(px);
      return static_cast<double>(portrait.rgb[3 * pixel + static_cast<size_t>(c)]);
    };
    rgb[c] = (at(x0, y0) * (1 - fx) + at(x1, y0) * fx) * (1 - fy) +
             (at(x0, y1) * (1 - fx) + at(x1, y1) * fx) * fy;
  }
  return to_yuv(rgb[0], rgb[1], rgb[2]);
}

/// The dark inside of a car at a pixel of camera A: a side window to the left, a headrest behind the driver.
Yuv cabin(double x, double y) {
  Yuv color{46 + 16 * y / kReferenceHeightPx, 130, 126};
  const double window =
      smooth_step(560, 380, x) * smooth_step(60, 160, y) * smooth_step(560, 430, y);
  color = mix(color, {112, 134, 122}, 0.8 * window);
  // A rounded box on a post: |x|^4 + |y|^4 is one on its edge.
  const double hx = (x - 1290) / 235, hy = (y - 430) / 200;
  const double headrest =
      smooth_step(1.08, 0.92, std::pow(hx * hx * hx * hx + hy * hy * hy * hy, 0.25));
  const double bx = (x - 1290) / 420, by = (y - 1080) / 420;
  const double backrest =
      smooth_step(1.06, 0.94, std::pow(bx * bx * bx * bx + by * by * by * by, 0.25));
  color = mix(color, {38, 128, 128}, 0.9 * backrest);
  return mix(color, {32, 128, 128}, 0.9 * headrest);
}

/// What is drawn over the eyes. Lengths are in distances between the eyes, so they fit any portrait.
class EyeDrawing {
 public:
  EyeDrawing(const Portrait& portrait, double edge_px) : portrait_(portrait), edge_px_(edge_px) {
    const double dx = portrait.right_eye_x_px - portrait.left_eye_x_px;
    const double dy = portrait.right_eye_y_px - portrait.left_eye_y_px;
    distance_px_ = std::hypot(dx, dy);
    along_x_ = dx / distance_px_;
    along_y_ = dy / distance_px_;
    skin_[0] = skin_near(portrait.left_eye_x_px, portrait.left_eye_y_px);
    skin_[1] = skin_near(portrait.right_eye_x_px, portrait.right_eye_y_px);
  }

  double distance_px() const { return distance_px_; }

  /// The color at a portrait pixel whose color without drawing is `under`.
  Yuv draw(Shown shown, double x_px, double y_px, Yuv under) const {
    if (shown == Shown::EyesClosed) return draw_lids(x_px, y_px, under);
    if (shown == Shown::Glasses) return draw_glasses(x_px, y_px, under);
    return under;
  }

 private:
  /// The color of the cheek below an eye.
  Yuv skin_near(double eye_x_px, double eye_y_px) const {
    Yuv sum{0, 0, 0};
    constexpr int kRadius = 2;
    constexpr double kCount = (2 * kRadius + 1) * (2 * kRadius + 1);
    for (int j = -kRadius; j <= kRadius; ++j) {
      for (int i = -kRadius; i <= kRadius; ++i) {
        const Yuv color = sample(portrait_, eye_x_px - 0.45 * distance_px_ * along_y_ + i,
                                 eye_y_px + 0.45 * distance_px_ * along_x_ + j);
        sum = {sum.y + color.y / kCount, sum.u + color.u / kCount, sum.v + color.v / kCount};
      }
    }
    return sum;
  }

  /// Coordinates about an eye: `along` the line through the eyes and `down` from it, in eye distances.
  void about_eye(int eye, double x_px, double y_px, double& along, double& down) const {
    const double dx = x_px - (eye == 0 ? portrait_.left_eye_x_px : portrait_.right_eye_x_px);
    const double dy = y_px - (eye == 0 ? portrait_.left_eye_y_px : portrait_.right_eye_y_px);
    along = (dx * along_x_ + dy * along_y_) / distance_px_;
    down = (dy * along_x_ - dx * along_y_) / distance_px_;
  }

  /// 1 inside an ellipse, 0 outside, with an edge of one frame pixel.
  double ellipse(double along, double down, double half_width, double half_height) const {
    const double radius = std::hypot(along / half_width, down / half_height);
    const double outside_px = (radius - 1) * std::min(half_width, half_height) * distance_px_;
    return std::clamp(0.5 - outside_px / edge_px_, 0.0, 1.0);
  }

  Yuv draw_lids(double x_px, double y_px, Yuv under) const {
    for (int eye = 0; eye < 2; ++eye) {
      double along = 0, down = 0;
      about_eye(eye, x_px, y_px, along, down);
      down += kLidUp;
      const double lid = ellipse(along, down, kLidHalfWidth, kLidHalfHeight);
      if (lid <= 0) continue;
      Yuv color = skin_[eye];
      color.y -= kLidShadeLuma;  // a lid lies deeper than the cheek
      // The lashes: what of the lid is not in the same ellipse a little higher.
      const double lash = 1 - ellipse(along, down + kLashHeight, kLidHalfWidth, kLidHalfHeight);
      if (down > 0) color = mix(color, {kLashLuma, 122, 136}, lash);
      under = mix(under, color, lid);
    }
    return under;
  }

  Yuv draw_glasses(double x_px, double y_px, Yuv under) const {
    double glass = 0;
    for (int eye = 0; eye < 2; ++eye) {
      double along = 0, down = 0;
      about_eye(eye, x_px, y_px, along, down);
      glass = std::max(glass, ellipse(along, down, kLensHalfWidth, kLensHalfHeight));
      if (eye == 0 && along > 0 && along < 1) {
        const double outside_px = (std::abs(down) - kBridgeHalfHeight) * distance_px_;
        glass = std::max(glass, std::clamp(0.5 - outside_px / edge_px_, 0.0, 1.0));
      }
    }
    return mix(under, {27, 129, 128}, glass);
  }

  static constexpr double kLidHalfWidth = 0.27, kLidHalfHeight = 0.125, kLidUp = 0.02;
  static constexpr double kLidShadeLuma = 15, kLashHeight = 0.05, kLashLuma = 60;
  static constexpr double kLensHalfWidth = 0.35, kLensHalfHeight = 0.22, kBridgeHalfHeight = 0.025;

  const Portrait& portrait_;
  double edge_px_;  ///< portrait pixels for one frame pixel
  double distance_px_ = 1, along_x_ = 1, along_y_ = 0;
  Yuv skin_[2];
};

/// SplitMix64: a well-mixed function of its argument.
uint64_t mix_bits(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

/// out = black + (in - black) * gain / 64 + noise * sigma / 256, clamped. 16 bits are enough: |in - black| < 256,
/// gain <= 127, |noise| <= 127, sigma <= 128.
void expose_block(const uint8_t* __restrict in, const int8_t* __restrict noise, int16_t black,
                  int16_t gain_64, int16_t sigma_16, uint8_t* __restrict out) {
  for (int i = 0; i < kBlock; ++i) {
    const auto scaled = static_cast<int16_t>(static_cast<int16_t>(in[i] - black) * gain_64);
    const auto grain = static_cast<int16_t>(noise[i] * sigma_16);
    auto value = static_cast<int16_t>(((scaled + 32) >> 6) + ((grain + 128) >> 8) + black);
    value = value < 0 ? int16_t{0} : value;
    value = value > 255 ? int16_t{255} : value;
    out[i] = static_cast<uint8_t>(value);
  }
}

void expose_row(const uint8_t* in, const int8_t* noise, int count, int16_t black, int16_t gain_64,
                int16_t sigma_16, uint8_t* out) {
  int x = 0;
  for (; x + kBlock <= count; x += kBlock) {
    expose_block(in + x, noise + x, black, gain_64, sigma_16, out + x);
  }
  if (x == count) return;
  uint8_t in_tail[kBlock] = {}, out_tail[kBlock];
  int8_t noise_tail[kBlock] = {};
  std::copy(in + x, in + count, in_tail);
  std::copy(noise + x, noise + count, noise_tail);
  expose_block(in_tail, noise_tail, black, gain_64, sigma_16, out_tail);
  std::copy(out_tail, out_tail + (count - x), out + x);
}

}  // namespace

PortraitPlacement::PortraitPlacement(int width_px, int height_px, CabinSide side)
    : width_px_(width_px),
      height_px_(height_px),
      // Camera B's focal length is 3/4 of A's; other sizes show all that A sees.
      scale_(width_px == 1344 && height_px == 760
                 ? 0.75
                 : std::min(width_px / kReferenceWidthPx, height_px / kReferenceHeightPx)),
      is_mirrored_(side == CabinSide::Right) {}

void PortraitPlacement::to_reference(double x_px, double y_px, double& reference_x_px,
                                     double& reference_y_px) const {
  reference_x_px = kReferenceWidthPx / 2 + (x_px - width_px_ / 2) / scale_;
  reference_y_px = kReferenceHeightPx / 2 + (y_px - height_px_ / 2) / scale_;
  if (is_mirrored_) {
    reference_x_px = kCropLeftPx + kMirroredCropLeftPx + kCropWidthPx - 1 - reference_x_px;
  }
}

void PortraitPlacement::to_portrait(double x_px, double y_px, double& portrait_x_px,
                                    double& portrait_y_px) const {
  double x = 0, y = 0;
  to_reference(x_px, y_px, x, y);
  portrait_x_px = kPortraitLeftPx + (x - kCropLeftPx) * kPortraitPerReference;
  portrait_y_px = kPortraitTopPx + (y - kCropTopPx) * kPortraitPerReference;
}

void PortraitPlacement::to_frame(double portrait_x_px, double portrait_y_px, double& x_px,
                                 double& y_px) const {
  double x = kCropLeftPx + (portrait_x_px - kPortraitLeftPx) / kPortraitPerReference;
  const double y = kCropTopPx + (portrait_y_px - kPortraitTopPx) / kPortraitPerReference;
  if (is_mirrored_) x = kCropLeftPx + kMirroredCropLeftPx + kCropWidthPx - 1 - x;
  x_px = width_px_ / 2 + (x - kReferenceWidthPx / 2) * scale_;
  y_px = height_px_ / 2 + (y - kReferenceHeightPx / 2) * scale_;
}

SyntheticScene::SyntheticScene(const Portrait& portrait, int width_px, int height_px,
                               CabinSide side, PixelFormat format,
                               const std::array<bool, kShownCount>& shown)
    : width_px_(width_px),
      height_px_(height_px),
      luma_stride_(width_px + 2 * kMarginPx),
      format_(format) {
  const PortraitPlacement placement(width_px, height_px, side);
  const double to_own = portrait.width_px / kPortraitWidthPx;
  const EyeDrawing eyes(portrait, to_own * kPortraitPerReference / placement.scale());
  const int canvas_width = width_px + 2 * kMarginPx, canvas_height = height_px + 2 * kMarginPx;
  const int64_t luma_size = luma_stride_ * canvas_height;

  const auto color_at = [&](Shown what, int x, int y) {
    double reference_x = 0, reference_y = 0, px = 0, py = 0;
    placement.to_reference(x - kMarginPx, y - kMarginPx, reference_x, reference_y);
    const Yuv background = cabin(reference_x, reference_y);
    if (what == Shown::Empty) return background;
    placement.to_portrait(x - kMarginPx, y - kMarginPx, px, py);
    px *= to_own;
    py *= to_own;
    const double inside_px = std::min(std::min(px, portrait.width_px - 1 - px),
                                      std::min(py, portrait.height_px - 1 - py));
    const double share = smooth_step(0, kFadePx * kPortraitPerReference * to_own, inside_px);
    if (share <= 0) return background;
    return mix(background, eyes.draw(what, px, py, sample(portrait, px, py)), share);
  };
  const auto draw_block = [&](Picture& picture, Shown what, int x, int y) {
    Yuv mean{0, 0, 0};
    for (int j = 0; j < 2; ++j) {
      for (int i = 0; i < 2; ++i) {
        const Yuv color = color_at(what, x + i, y + j);
        picture.luma[static_cast<size_t>((y + j) * luma_stride_ + x + i)] = to_byte(color.y);
        mean.u += color.u / 4;
        mean.v += color.v / 4;
      }
    }
    const int64_t row = y / 2;
    const int64_t u_at =
        format_ == PixelFormat::Nv12 ? row * luma_stride_ + x : row * luma_stride_ / 2 + x / 2;
    const int64_t v_at = format_ == PixelFormat::Nv12 ? u_at + 1 : u_at + luma_size / 4;
    picture.chroma[static_cast<size_t>(u_at)] = to_byte(mean.u);
    picture.chroma[static_cast<size_t>(v_at)] = to_byte(mean.v);
  };
  const auto draw_all = [&](Shown what) {
    Picture picture;
    picture.luma.resize(static_cast<size_t>(luma_size));
    picture.chroma.resize(static_cast<size_t>(luma_size / 2));
    for (int y = 0; y < canvas_height; y += 2) {
      for (int x = 0; x < canvas_width; x += 2) draw_block(picture, what, x, y);
    }
    return picture;
  };

  const auto is_wanted = [&](Shown what) { return shown[static_cast<size_t>(what)]; };
  const auto picture_of = [&](Shown what) -> Picture& {
    return pictures_[static_cast<size_t>(what)];
  };
  if (is_wanted(Shown::Empty)) picture_of(Shown::Empty) = draw_all(Shown::Empty);
  if (!is_wanted(Shown::Front) && !is_wanted(Shown::EyesClosed) && !is_wanted(Shown::Glasses)) {
    // No face at all.
  } else {
    // Closed eyes and glasses differ from the open face only about the eyes.
    picture_of(Shown::Front) = draw_all(Shown::Front);
    double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    placement.to_frame(portrait.left_eye_x_px / to_own, portrait.left_eye_y_px / to_own, x0, y0);
    placement.to_frame(portrait.right_eye_x_px / to_own, portrait.right_eye_y_px / to_own, x1, y1);
    const double reach = 0.5 * std::hypot(x1 - x0, y1 - y0) + 2;
    const auto even = [](double value, int limit) {
      return std::clamp(static_cast<int>(value) / 2 * 2, 0, limit);
    };
    const int left = even(std::min(x0, x1) - reach + kMarginPx, canvas_width);
    const int right = even(std::max(x0, x1) + reach + kMarginPx, canvas_width);
    const int top = even(std::min(y0, y1) - reach + kMarginPx, canvas_height);
    const int bottom = even(std::max(y0, y1) + reach + kMarginPx, canvas_height);
    for (const Shown what : {Shown::EyesClosed, Shown::Glasses}) {
      if (!is_wanted(what)) continue;
      picture_of(what) = picture_of(Shown::Front);
      for (int y = top; y < bottom; y += 2) {
        for (int x = left; x < right; x += 2) draw_block(picture_of(what), what, x, y);
      }
    }
  }

  // Each row reads the strip from its own start, so it is as much longer as a row is wide.
  noise_.resize(size_t{kNoiseCount} + static_cast<size_t>(width_px));
  std::mt19937_64 engine(1);
  for (int8_t& value : noise_) {
    // A sum of twelve even deviates is normal enough, and the same with every standard library.
    int sum = 0;
    for (int i = 0; i < 12; ++i) sum += static_cast<int>(engine() >> 48);
    const double deviate = (sum - 6 * 65535.0) / 65536.0;
    value = static_cast<int8_t>(std::clamp(std::lround(16 * deviate), -127L, 127L));
  }
}

void SyntheticScene::render(const Exposure& exposure, const FrameLayout& layout,
                            std::span<std::byte> out) const {
  IGNIS_CHECK(layout.width_px == width_px_ && layout.height_px == height_px_ &&
              layout.format == format_ && std::cmp_less_equal(layout.size_bytes, out.size()));
  const Picture& picture = pictures_[static_cast<size_t>(exposure.shown)];
  IGNIS_CHECK(!picture.luma.empty());
  const auto gain_64 = static_cast<int16_t>(std::clamp(std::lround(exposure.gain * 64), 0L, 127L));
  const auto sigma_16 =
      static_cast<int16_t>(std::clamp(std::lround(exposure.noise_sigma * 16), 0L, 128L));
  // Moving the picture right means to read it from further left.
  const int left = kMarginPx - exposure.shift_x_px, top = kMarginPx - exposure.shift_y_px;
  auto* bytes = reinterpret_cast<uint8_t*>(out.data());

  uint64_t random = mix_bits(exposure.noise_seed);
  for (int y = 0; y < height_px_; ++y) {
    random = mix_bits(random);
    expose_row(picture.luma.data() + (top + y) * luma_stride_ + left,
               noise_.data() + random % kNoiseCount, width_px_, 16, gain_64, sigma_16,
               bytes + y * layout.y_stride);
  }
  const bool is_nv12 = format_ == PixelFormat::Nv12;
  const int64_t chroma_stride = is_nv12 ? luma_stride_ : luma_stride_ / 2;
  const int chroma_width = is_nv12 ? width_px_ : width_px_ / 2;
  const int chroma_left = is_nv12 ? left : left / 2;
  for (int plane = 0; plane < (is_nv12 ? 1 : 2); ++plane) {
    const uint8_t* in =
        picture.chroma.data() + plane * static_cast<int64_t>(picture.luma.size()) / 4;
    uint8_t* to = bytes + (plane == 0 ? layout.u_offset : layout.v_offset);
    for (int y = 0; y < height_px_ / 2; ++y) {
      expose_row(in + (top / 2 + y) * chroma_stride + chroma_left, noise_.data(), chroma_width, 128,
                 gain_64, 0, to + y * layout.uv_stride);
    }
  }
}

}  // namespace ignis::pipeline
