#pragma once

#include "ignis/pipeline/driver_monitoring/model.h"
#include "ignis/pipeline/driver_monitoring/slices.h"

#include <cstdint>
#include <span>

namespace ignis::pipeline {

/// exp(min(x, 11)): only the upper side is limited. Rounded once from the double result; NaN stays NaN.
float safe_exp(float x);
/// 1 / (1 + safe_exp(-x)): never below 1.67e-5, 1 for +inf.
float probability_of_logit(float x);
/// log(1 + e^x).
float softplus(float x);

/// Where the driver sits, which a one-sided model is told.
enum class DriverSide : uint8_t { Left, Right };

/// Checks and decodes the output of a model with heads for both sides (section 6 of the contract).
/// Any reason leaves the prediction empty with nothing known: no half of a bad vector is of use. `head` of the result
/// points into `table`.
Decoded decode_two_sided(const HeadTable& table, std::span<const float> output);

/// Number of outputs of the one-sided cabin model.
inline constexpr int64_t kOneSidedOutputCount = 38;

/// The one-sided model's view: the part of camera A's picture (1928x1208 px, centre (964, 604), focal 567 px) that it is
/// given. Other cameras show the same rays.
struct CropWindow {
  double left_px = 0, top_px = 0, width_px = 0, height_px = 0;
  bool is_mirrored = false;
};
CropWindow crop_window(DriverSide side);

/// Checks and decodes the output of the one-sided cabin model: probabilities come squashed, stds through softplus. It
/// knows one side, without phone, sleep and wheel. Positions are given in the whole picture; what a mirrored view swaps
/// (the sign of yaw and roll, left and right eye) is swapped back.
Decoded decode_one_sided(DriverSide side, std::span<const float> output);

}  // namespace ignis::pipeline
