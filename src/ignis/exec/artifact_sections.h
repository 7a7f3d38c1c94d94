#pragma once

#include "ignis/base/byte_io.h"
#include "ignis/base/compare.h"
#include "ignis/base/host_tensor.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// What an artifact says of a model beside its programs: plain data, written and read here. A reader believes nothing:
/// every length is checked, and a value that no writer writes is refused with the reason BadSection.
namespace ignis::exec {

/// How a part of an output vector becomes a quantity.
enum class DecodeKind : uint8_t { Raw = 0, Mean = 1, LogStd = 2, Logit = 3, SoftmaxGroup = 4 };
/// "raw", "mean", "log-std", "logit", "softmax-group".
std::string_view decode_name(DecodeKind kind);

/// A named part of an output: values [start, stop) of its flat form.
struct OutputSlice {
  std::string output, name;
  int64_t start = 0, stop = 0;
  DecodeKind decode = DecodeKind::Raw;
  bool is_required = true;
  bool operator==(const OutputSlice&) const = default;
};

/// An output that is the next run's input, and what the input holds at the first run and after a reset.
struct StatePair {
  std::string input, output;
  double reset_value = 0;
  bool operator==(const StatePair&) const = default;
};

/// What the network's picture is: a virtual camera, and how frames are brought to it.
struct Geometry {
  std::string
      profile;  ///< contract between the model and its pipeline: "comma-553"; empty: none is known
  int32_t width_px = 0, height_px = 0;
  double focal_px = 0, center_x_px = 0, center_y_px = 0;  ///< 0: as the frame's own camera
  std::string warp;                                       ///< "homography", "crop", "scale"
  std::string rounding;                                   ///< "product then sum, half up", …
  std::string planes;                                     ///< "y", "y4uv", "rgb"
  double fill = 0;                                        ///< of pixels outside the frame
  bool operator==(const Geometry&) const = default;
};

/// The choices of a tuner and what they hold for.
struct TuningRecord {
  std::string machine, version;                              ///< of the one that searched
  std::vector<std::pair<std::string, std::string>> choices;  ///< what of, and what was chosen
  bool operator==(const TuningRecord&) const = default;
};

/// An input of a golden case, or an output with the tolerance it is held to.
struct GoldenTensor {
  std::string name;
  HostTensor value;
  Tolerance tolerance;
};
/// An input and the answer it must give.
struct GoldenCase {
  std::string source;  ///< where the answer comes from: "cpu:interp", or "given"
  std::vector<GoldenTensor> inputs, outputs;
  int64_t size_bytes() const;
};

void write_slices(ByteWriter& to, const std::vector<OutputSlice>& slices);
Result<std::vector<OutputSlice>> read_slices(std::span<const std::byte> section);
void write_state_pairs(ByteWriter& to, const std::vector<StatePair>& pairs);
Result<std::vector<StatePair>> read_state_pairs(std::span<const std::byte> section);
void write_geometry(ByteWriter& to, const Geometry& geometry);
Result<Geometry> read_geometry(std::span<const std::byte> section);
void write_tuning(ByteWriter& to, const TuningRecord& record);
Result<TuningRecord> read_tuning(std::span<const std::byte> section);
void write_golden(ByteWriter& to, const std::vector<GoldenCase>& cases);
Result<std::vector<GoldenCase>> read_golden(std::span<const std::byte> section);

}  // namespace ignis::exec
