#include "ignis/pipeline/road/decode.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ignis::pipeline {

Status check_slices(std::span<const RoadSlice> slices, int64_t output_count) {
  for (size_t i = 0; i < slices.size(); ++i) {
    const RoadSlice& slice = slices[i];
    if (slice.start < 0 || slice.start >= slice.stop || slice.stop > output_count) {
      return Error(ErrorCode::InvalidArgument,
                   "Slice '" + slice.name + "' is [" + std::to_string(slice.start) + ", " +
                       std::to_string(slice.stop) + "); the output has " +
                       std::to_string(output_count) + " values.",
                   "SliceOutOfRange");
    }
    for (const RoadSlice& other : slices.first(i)) {
      if (slice.name == other.name) {
        return Error(ErrorCode::InvalidArgument, "Slice '" + slice.name + "' is named twice.",
                     "SliceName");
      }
      if (slice.start < other.stop && other.start < slice.stop) {
        return Error(ErrorCode::InvalidArgument,
                     "Slices '" + other.name + "' and '" + slice.name + "' overlap at " +
                         std::to_string(std::max(slice.start, other.start)) + ".",
                     "SliceOverlap");
      }
    }
  }
  return {};
}

float road_safe_exp(float x) { return std::exp(x > 11.0f ? 11.0f : x); }

float road_sigmoid(float x) { return 1.0f / (1.0f + road_safe_exp(-x)); }

void road_softmax(std::span<float> values) {
  if (values.empty()) return;
  const float largest = *std::max_element(values.begin(), values.end());
  float sum = 0;
  for (float& value : values) {
    value = road_safe_exp(value - largest);
    sum += value;
  }
  for (float& value : values) value /= sum;
}

int64_t find_non_finite(std::span<const float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) return static_cast<int64_t>(i);
  }
  return -1;
}

Status decode_road_output(const RoadContract& contract, std::span<const float> output,
                          std::span<float> decoded) {
  const auto expected = static_cast<size_t>(contract.output_count);
  if (output.size() != expected || decoded.size() != expected) {
    return Error(ErrorCode::InvalidArgument,
                 "The output has " + std::to_string(output.size()) + " values for " +
                     std::to_string(decoded.size()) + " decoded ones; the contract states " +
                     std::to_string(contract.output_count) + ".",
                 "OutputSize");
  }
  std::copy(output.begin(), output.end(), decoded.begin());
  for (const RoadSlice& slice : contract.slices) {
    const std::span<float> part = decoded.subspan(static_cast<size_t>(slice.start),
                                                  static_cast<size_t>(slice.stop - slice.start));
    if (slice.decode == RoadDecode::Softmax) road_softmax(part);
    if (slice.decode == RoadDecode::Logit) {
      for (float& value : part) value = road_sigmoid(value);
    }
  }
  return {};
}

}  // namespace ignis::pipeline
