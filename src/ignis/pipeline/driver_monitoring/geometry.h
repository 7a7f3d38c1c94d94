#pragma once

#include "ignis/pipeline/driver_monitoring/camera.h"
#include "ignis/pipeline/frames/frame.h"

#include <array>

namespace ignis::pipeline {

/// From pixels of the two-sided model's picture to those of `camera`: row-major, as warp_matrix().
std::array<float, 9> comma_553_matrix(const Camera& camera);

/// Frame pixels for one pixel of a picture of width_px x height_px (> 0) that the whole frame fits into, keeping its
/// proportions.
double rgb_scale(const FrameLayout& layout, int width_px, int height_px);

}  // namespace ignis::pipeline
