#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/file_source.h"
#include "ignis/pipeline/frames/frame.h"
#include "ignis/pipeline/frames/synthetic_scenario.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ignis::pipeline {

/// A portrait: 8-bit RGB, row by row from the top left, and where things are in it.
struct Portrait {
  int width_px = 0, height_px = 0;
  std::vector<uint8_t> rgb;  ///< 3 * width_px * height_px
  /// Centres of the two eyes, left and right in the picture, in portrait pixels. The defaults are those of the portrait
  /// that comes with Ignis (512x512, the astronaut Eileen Collins).
  double left_eye_x_px = 202.5, left_eye_y_px = 100.2;
  double right_eye_x_px = 246.8, right_eye_y_px = 102.8;
};

/// On which side the driver sits, seen as the wheel's side of the car.
enum class CabinSide : uint8_t { Left, Right };

struct SyntheticOptions {
  std::string scenario = "drive";
  int width_px = 1928, height_px = 1208;  ///< even, at least 64, at most 4096 x 3072
  PixelFormat format = PixelFormat::Nv12;
  CabinSide side = CabinSide::Left;
  uint64_t seed = 1;      ///< of noise and motion; equal options give equal bytes
  double rate_hz = 20;    ///< 1..240
  double duration_s = 0;  ///< then EndOfStream; 0: for ever
  uint32_t first_frame_id = 0;
  /// RealTime: what nobody fetched in time is dropped, as with a camera. EveryFrame: late rather than never. Fast: at once
  /// when asked, and a stopped camera is a gap in the ids.
  Pace pace = Pace::RealTime;
};

/// What a frame of the synthetic source shows: for holding a model's answer against it.
struct SyntheticTruth {
  Shown shown = Shown::Front;
  CameraFault fault = CameraFault::None;
  int64_t spell_index =
      0;  ///< counts spells from the start, on through repetitions of the scenario
  double gain = 1;
  bool has_face = true, are_eyes_closed = false, has_glasses = false;
  int width_px = 0, height_px = 0;  ///< of the frame
  /// Between the eyes, in frame pixels, and the distance of the eyes. Meaningful when has_face.
  double face_x_px = 0, face_y_px = 0, eye_distance_px = 0;
};

/// A made-up cabin: a portrait in a dim cabin that moves slowly, with noise and a changing exposure; the eyes can be
/// closed and dark glasses be worn, as the scenario says. Each frame is a function of the options and its id.
class SyntheticSource : public FrameSource {
 public:
  /// Draws the scenes (some tens of milliseconds). Errors: NotFound for the scenario, InvalidArgument for sizes, the rate
  /// or a portrait whose pixels are not 3 * width * height bytes.
  static Result<std::unique_ptr<SyntheticSource>> create(const Portrait& portrait,
                                                         const SyntheticOptions& options);
  ~SyntheticSource() override;

  Result<Frame> receive(std::chrono::nanoseconds timeout) override;
  uint64_t dropped_count() const override;
  std::string describe() const override;

  /// What the frame with this id shows. Ids that the scenario skips (Stop, Repeat) have a truth as well.
  SyntheticTruth truth(uint32_t frame_id) const;
  const Scenario& scenario() const;
  /// How long the scenario takes once through.
  double scenario_duration_s() const;

 private:
  struct State;
  explicit SyntheticSource(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ignis::pipeline
