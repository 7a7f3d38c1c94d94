#include "ignis/pipeline/driver_monitoring/profile.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr std::array<std::pair<Profile, std::string_view>, 3> kProfiles = {
    {{Profile::Comma553, "comma-553"}, {Profile::Comma38, "comma-38"}, {Profile::Face, "face"}}};

std::string describe(std::span<const PortShape> ports) {
  std::string text;
  for (const PortShape& port : ports) {
    text +=
        (text.empty() ? "" : ", ") + port.name + " " + std::string(to_string(port.dtype)) + " [";
    for (size_t i = 0; i < port.dims.size(); ++i) {
      text += (i == 0 ? "" : ", ") + (port.dims[i] < 0 ? "?" : std::to_string(port.dims[i]));
    }
    text += "]";
  }
  return text.empty() ? "nothing" : text;
}

bool fits(const PortShape& port, DType dtype, std::initializer_list<int64_t> dims) {
  return port.dtype == dtype && std::equal(dims.begin(), dims.end(), port.dims.begin(),
                                           port.dims.end(), [](int64_t wanted, int64_t given) {
                                             return wanted == -1 || given == -1 || wanted == given;
                                           });
}

bool fits_float(const PortShape& port, std::initializer_list<int64_t> dims) {
  return fits(port, DType::Float32, dims) || fits(port, DType::Float16, dims);
}

// The sentence of a profile for messages; empty when everything fits.
std::string wanted_by(Profile profile, std::span<const PortShape> inputs,
                      std::span<const PortShape> outputs) {
  switch (profile) {
    case Profile::Comma553: {
      // In either order, and in half precision where the file was converted to it.
      const auto is_image = [](const PortShape& port) {
        return fits(port, DType::UInt8, {1, 1382400});
      };
      const auto is_calibration = [](const PortShape& port) { return fits_float(port, {1, 3}); };
      const bool is_fit = inputs.size() == 2 && outputs.size() == 1 &&
                          ((is_image(inputs[0]) && is_calibration(inputs[1])) ||
                           (is_calibration(inputs[0]) && is_image(inputs[1]))) &&
                          fits_float(outputs[0], {1, -1}) && outputs[0].dims[1] > 0;
      return is_fit ? "" : "takes u8 [1, 1382400] and f32 [1, 3] and gives f32 [1, n]";
    }
    case Profile::Comma38: {
      const bool is_fit = inputs.size() == 1 && outputs.size() == 1 &&
                          fits(inputs[0], DType::Float32, {1, 6, 320, 160}) &&
                          fits(outputs[0], DType::Float32, {1, kOneSidedOutputCount});
      return is_fit ? "" : "takes f32 [1, 6, 320, 160] and gives f32 [1, 38]";
    }
    case Profile::Face: {
      // The files declare any batch and size; what is bound is one picture of a size of ours.
      const auto count = [&](int64_t channels) {
        return std::count_if(outputs.begin(), outputs.end(), [&](const PortShape& port) {
          return fits(port, DType::Float32, {-1, channels, -1, -1}) && port.dims[1] == channels;
        });
      };
      const bool is_fit = inputs.size() == 1 && outputs.size() == 4 &&
                          fits(inputs[0], DType::Float32, {-1, 3, -1, -1}) && count(1) == 1 &&
                          count(2) == 2 && count(10) == 1;
      return is_fit ? ""
                    : "takes f32 [1, 3, h, w] and gives f32 maps of 1 (score), 2 (size), 2 "
                      "(offset) and 10 (landmarks) channels";
    }
  }
  return "is unknown";
}

Error mismatch(std::span<const PortShape> inputs, std::span<const PortShape> outputs,
               const std::string& wanted) {
  return Error(ErrorCode::Unsupported,
               "The model takes " + describe(inputs) + " and gives " + describe(outputs) + "; " +
                   wanted + ".",
               "ArtifactMismatch");
}

}  // namespace

std::string_view to_string(Profile profile) {
  for (const auto& [value, name] : kProfiles) {
    if (value == profile) return name;
  }
  return "unknown";
}

Result<Profile> parse_profile(std::string_view text) {
  std::string names;
  for (const auto& [value, name] : kProfiles) {
    if (name == text) return value;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return Error(ErrorCode::NotFound,
               "There is no profile '" + std::string(text) + "'; there are auto, " + names + ".",
               "UnknownProfile");
}

Result<Profile> find_profile(std::span<const PortShape> inputs,
                             std::span<const PortShape> outputs) {
  std::string all;
  for (const auto& [profile, name] : kProfiles) {
    const std::string wanted = wanted_by(profile, inputs, outputs);
    if (wanted.empty()) return profile;
    all += (all.empty() ? "" : "; ") + std::string(name) + " " + wanted;
  }
  return mismatch(inputs, outputs, all);
}

Status check_profile(Profile profile, std::span<const PortShape> inputs,
                     std::span<const PortShape> outputs) {
  const std::string wanted = wanted_by(profile, inputs, outputs);
  if (wanted.empty()) return {};
  return mismatch(inputs, outputs, std::string(to_string(profile)) + " " + wanted);
}

Reasons load_reasons(const Error& error) {
  Reasons reasons = Reason::ModelUnavailable;
  const std::string& reason = error.reason();
  if (reason == "SliceOutOfRange") reasons |= Reason::SliceOutOfRange;
  if (reason == "SliceWidth") reasons |= Reason::SliceWidth;
  if (reason == "SliceOverlap") reasons |= Reason::SliceOverlap;
  if (reason == "UnknownGeometry") reasons |= Reason::UnknownGeometry;
  if (reason == "ArtifactMismatch" || reason == "SliceMissing" || reason == "SliceMap") {
    reasons |= Reason::ArtifactMismatch;
  }
  return reasons;
}

}  // namespace ignis::pipeline
