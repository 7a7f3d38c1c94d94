#pragma once

#include "ignis/base/dtype.h"
#include "ignis/base/result.h"
#include "ignis/pipeline/driver_monitoring/decode.h"
#include "ignis/pipeline/messages/driver_state.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::pipeline {

/// The contracts between a model file and the pipeline.
enum class Profile : uint8_t {
  Comma553,  ///< uint8 image [1, 1382400] and calib [1, 3] -> one vector with heads for both sides
  Comma38,   ///< six float planes [1, 6, 320, 160] -> 38 values of one side
  Face,  ///< float RGB [1, 3, H, W] -> heat map, sizes, offsets and five landmarks of a face detector
};

/// "comma-553", "comma-38", "face".
std::string_view to_string(Profile profile);
/// Errors: NotFound naming the profiles there are.
Result<Profile> parse_profile(std::string_view text);

/// An input or output as a model file declares it.
struct PortShape {
  std::string name;
  DType dtype = DType::Void;
  std::vector<int64_t> dims;  ///< -1: open
};

/// The one profile whose inputs and outputs these are.
/// Errors: Unsupported, reason "ArtifactMismatch", naming what the model has and what the profiles take.
Result<Profile> find_profile(std::span<const PortShape> inputs, std::span<const PortShape> outputs);
/// These inputs and outputs fit the profile. Errors: as find_profile, naming what does not fit.
Status check_profile(Profile profile, std::span<const PortShape> inputs,
                     std::span<const PortShape> outputs);

/// The bits of a failed load: ModelUnavailable and what the error's reason adds (SliceOutOfRange, SliceWidth,
/// SliceOverlap, ArtifactMismatch, UnknownGeometry).
Reasons load_reasons(const Error& error);

}  // namespace ignis::pipeline
