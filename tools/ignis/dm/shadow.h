#pragma once

#include "ignis/pipeline/driver_monitoring/consumer/consumer.h"
#include "ignis/pipeline/driver_monitoring/consumer/gate.h"
#include "ignis/pipeline/driver_monitoring/host.h"

#include "tools/ignis/dm/live_feed.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace ignis::tools {

/// The attention policy and the gate beside the pipeline, for the display: they read what is published and send nothing.
class Shadow {
 public:
  /// \param cameras  that the pipeline knows; for the policy's pose conversion.
  /// \param side     of the driver before the wheel's side is learned.
  Shadow(std::span<const pipeline::Camera> cameras, pipeline::Side side, uint64_t now_ns);

  /// One turn with a report, or (null) without a frame.
  AttentionView step(const pipeline::FrameReport* report, const pipeline::FrameLayout& layout,
                     const std::optional<std::array<float, 3>>& rpy_rad, uint64_t now_ns);

 private:
  void follow(const pipeline::FrameReport& report, const pipeline::FrameLayout& layout);

  std::vector<pipeline::Camera> cameras_;
  pipeline::Side side_;
  pipeline::Gate gate_;
  std::optional<pipeline::Consumer> consumer_;  ///< of the layout and the known fields below
  pipeline::FrameLayout layout_;
  uint32_t waived_fields_ = 0;
};

}  // namespace ignis::tools
