#pragma once

#include "tools/ignis/dm/live_feed.h"
#include <nlohmann/json.hpp>

#include <string>

namespace ignis::tools {

/// What does not change while the pipeline runs.
struct PageInfo {
  std::string version, source, model, profile, device, side, publish, log, record;
  std::string model_hash;      ///< first 12 hex digits
  double frame_limit_ms = 50;  ///< of frame-in to message-out, drawn as a line
};

/// The page's description of the run: names, explanations of all reasons, stages.
nlohmann::ordered_json info_json(const PageInfo& info);
/// One turn: a frame's data, or that none came. Values that the model cannot know are null, never a number.
nlohmann::ordered_json snapshot_json(const Snapshot& snapshot);
/// Rates, percentiles, counters; twice a second.
nlohmann::ordered_json statistics_json(const LiveFeed& feed);

/// Where a face position of a DriverData (share of the reference image of 1928x1208) lies in a frame of this layout, in
/// px; nothing for a size that is no known camera's.
std::optional<std::array<double, 2>> position_in_frame(const std::array<float, 2>& position,
                                                       const pipeline::FrameLayout& layout);

}  // namespace ignis::tools
