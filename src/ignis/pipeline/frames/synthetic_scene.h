#pragma once

#include "ignis/pipeline/frames/frame.h"
#include "ignis/pipeline/frames/synthetic.h"

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ignis::pipeline {

/// Where the portrait's pixels go on a sensor of a size.
///
/// On camera A (1928x1208, wheel on the left) portrait pixel (150, 20) lies at (1079, 157), and 240 portrait pixels are
/// 502 sensor pixels: there the 38-output cabin model's crop of 251x502 sees the whole face. The other side is the mirror
/// image in the crop at column 630, and other cameras see the same cabin through their focal length.
struct PortraitPlacement {
  PortraitPlacement(int width_px, int height_px, CabinSide side);

  /// Frame pixel to portrait pixel.
  void to_portrait(double x_px, double y_px, double& portrait_x_px, double& portrait_y_px) const;
  /// Portrait pixel to frame pixel.
  void to_frame(double portrait_x_px, double portrait_y_px, double& x_px, double& y_px) const;
  /// Frame pixels for one pixel of camera A.
  double scale() const { return scale_; }
  /// Frame pixel to the pixel of camera A that looks the same way, mirrored to the left-hand driver.
  void to_reference(double x_px, double y_px, double& reference_x_px, double& reference_y_px) const;

 private:
  double width_px_, height_px_, scale_;
  bool is_mirrored_;
};

/// The pictures that a synthetic source shows at one size, drawn ahead, with a margin for motion. Immutable.
class SyntheticScene {
 public:
  /// How far, in pixels, the picture may move to each side.
  static constexpr int kMarginPx = 16;

  /// Draws what `shown` marks. The portrait has been checked.
  SyntheticScene(const Portrait& portrait, int width_px, int height_px, CabinSide side,
                 PixelFormat format, const std::array<bool, kShownCount>& shown);

  struct Exposure {
    Shown shown = Shown::Front;
    int shift_x_px = 0,
        shift_y_px = 0;  ///< even, at most kMarginPx either way; moves the picture right and down
    double gain = 1;     ///< 0..2, about black
    double noise_sigma = 0;  ///< of luma, 0..8
    uint64_t noise_seed = 0;
  };
  /// Fills the visible samples of a frame of this scene's size and format. Allocates nothing.
  void render(const Exposure& exposure, const FrameLayout& layout, std::span<std::byte> out) const;

 private:
  struct Picture {
    std::vector<uint8_t> luma;    ///< rows of luma_stride_
    std::vector<uint8_t> chroma;  ///< Nv12: interleaved rows; I420: the rows of U, then those of V
  };

  int width_px_, height_px_;
  int64_t luma_stride_;
  PixelFormat format_;
  std::array<Picture, kShownCount> pictures_;
  std::vector<int8_t> noise_;  ///< a strip of normal deviates, sigma 16
};

}  // namespace ignis::pipeline
