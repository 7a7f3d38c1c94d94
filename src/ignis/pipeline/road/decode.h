#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/road/contract.h"

#include <span>
#include <vector>

namespace ignis::pipeline {

/// exp(min(x, 11)); NaN stays NaN (section 6).
float road_safe_exp(float x);
/// 1 / (1 + safe_exp(-x)).
float road_sigmoid(float x);
/// In place: less the maximum, safe_exp, divided by the sum. Nothing happens to an empty span.
void road_softmax(std::span<float> values);

/// Index of the first value that is NaN or infinite, or -1.
int64_t find_non_finite(std::span<const float> values);

/// Decodes `output` slice by slice into `decoded`, which has the same size; what no slice names stays raw.
/// The slices are checked (check_slices). Errors: InvalidArgument, reason OutputSize, with both sizes.
Status decode_road_output(const RoadContract& contract, std::span<const float> output,
                          std::span<float> decoded);

}  // namespace ignis::pipeline
