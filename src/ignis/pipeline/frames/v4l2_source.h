#pragma once

#include "ignis/base/result.h"
#include "ignis/pipeline/frames/frame.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace ignis::pipeline {

class V4l2Device;

struct V4l2Options {
  int width_px = 0, height_px = 0;  ///< 0: what the camera has now
  double fps = 20;                  ///< asked for; the camera may know better
  uint32_t sensor_id = 0;
  uint32_t stream_id = 1;
};

/// A camera of the Video4Linux kind: NV12, YU12 (I420), YUYV (made into NV12) or GREY (with grey chroma). Frames are
/// copied out of the driver's buffers, so holding them never stops the camera.
///
/// receive(): DeviceLost when the camera is unplugged or stops working, and again with each call until it is back (each
/// call tries to open it once); InvalidArgument, reason "TornFrame", for a buffer with fewer bytes than a frame has.
/// SOF is the driver's time when it stamps the start of exposure, else its time minus one frame interval.
class V4l2Source final : public FrameSource {
 public:
  /// \param device  "/dev/video0" or "0".
  /// Errors: NotFound, Unsupported (no streaming capture; no usable format: the message lists what the camera offers),
  /// InvalidArgument.
  static Result<std::unique_ptr<V4l2Source>> open(const std::string& device,
                                                  V4l2Options options = {});
  /// With another way to the device; for tests.
  static Result<std::unique_ptr<V4l2Source>> open_with(std::unique_ptr<V4l2Device> device,
                                                       const std::string& path,
                                                       V4l2Options options = {});
  ~V4l2Source() override;

  Result<Frame> receive(std::chrono::nanoseconds timeout) override;
  uint64_t dropped_count() const override;
  std::string describe() const override;

 private:
  struct State;
  explicit V4l2Source(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ignis::pipeline
