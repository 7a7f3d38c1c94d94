#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/driver_monitoring/camera.h"
#include "ignis/pipeline/frames/frame.h"
#include "ignis/pipeline/messages/driver_state.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ignis::pipeline {

/// What a model says of one frame, with what it can know at all.
struct Prediction {
  DriverData left, right;
  float wheel_on_right_prob = 0;
  uint32_t known_left = 0, known_right = 0;  ///< bits of DriverField
  bool known_wheel = false;
  /// Box and landmarks of a face detector in source pixels; for the display only.
  struct Face {
    float x0 = 0, y0 = 0, x1 = 0, y1 = 0, score = 0;
    std::array<std::array<float, 2>, 5>
        landmarks{};  ///< eyes, nose, mouth corners, as seen left to right
    bool has_landmarks = false;
  };
  bool has_face_box = false;
  Face face;
};

/// The outcome of the checks on one output vector and its decode.
struct Decoded {
  Prediction prediction;
  Reasons reasons;                 ///< OutputSize, NonFinite, RangeViolation, DegenerateOutput
  std::string_view head;           ///< the first slice at fault; empty without one
  uint64_t unused_non_finite = 0;  ///< values outside the used slices that are not finite
};

struct ModelIdentity {
  std::string profile;  ///< "comma-553", "comma-38", "face"
  uint32_t profile_version = 1;
  std::string name;                  ///< of the file
  std::string checkpoint;            ///< what the file's metadata says it is; may be empty
  std::array<std::byte, 32> hash{};  ///< BLAKE2b-256 of the file
  uint32_t warp_id = 0;
};

struct RunTimes {
  uint64_t upload_ns = 0, warp_ns = 0, model_ns = 0, read_back_ns = 0;  ///< by the host's clock
  uint64_t queue_ns = 0, device_ns = 0;  ///< by the device's own clock; 0: it has none
};

/// A model behind its warp. One run at a time.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelIdentity& identity() const = 0;
  /// Makes everything ready for frames of this layout from this camera: compiles the warp, runs once on a zero frame.
  /// Nothing of the run is kept. Errors: Unsupported when the profile cannot use the layout; as Session::load.
  virtual Status bind(const FrameLayout& layout, const Camera& camera) = 0;
  /// Warps and runs one frame of the bound layout. `rpy_rad`: roll, pitch, yaw of the calibration. The frame's memory may
  /// be read until this returns; after a Timeout or DeviceLost the implementation keeps its own share of it.
  /// Errors: Timeout, DeviceLost, Internal. A bound model may be run again after any error.
  virtual Result<RunTimes> run(const Frame& frame, const std::array<float, 3>& rpy_rad,
                               std::chrono::steady_clock::time_point deadline) = 0;
  /// The output vector of the last run; empty before the first.
  virtual std::span<const float> output() const = 0;
  /// Checks and decodes the last run's output.
  virtual Decoded decode() const = 0;
};

}  // namespace ignis::pipeline
