#pragma once

#include "ignis/base/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ignis::pipeline {

/// What is sent between processes. One publisher and one endpoint each.
enum class Topic : uint8_t { DriverStateV2, DriverStateQuality, ExtrinsicsCalibration };
inline constexpr int kTopicCount = 3;

struct TopicInfo {
  Topic topic;
  std::string_view name;        ///< the first part of each message
  std::string_view other_name;  ///< also accepted from older publishers; may be empty
  double rate_hz;               ///< nominal
  int queue_messages;           ///< high-water mark of either side
  bool accepts_bare;  ///< also takes messages of one part, without a name, as bridges send them
  std::string_view default_endpoint;  ///< where it is when nobody says otherwise
  int port_offset;                    ///< from the base endpoint's port (tcp)
  std::string_view path_suffix;       ///< behind the base endpoint's path (ipc)
};

/// The table both sides share, in the order of Topic.
std::span<const TopicInfo> topics();
const TopicInfo& info(Topic topic);

/// Where a topic lies below one base endpoint: driverStateV2 at the base itself, driverStateQuality at the next port
/// ("tcp://127.0.0.1:7100" -> "tcp://127.0.0.1:7101") or at the path with ".quality" ("ipc:///run/dm" ->
/// "ipc:///run/dm.quality"). Port "*" stays "*": each topic gets a free one.
/// Errors: InvalidArgument, reason "Endpoint", when `base` is neither tcp://HOST:PORT nor ipc://PATH, or no port is left.
Result<std::string> endpoint_below(std::string_view base, Topic topic);

/// Refuses what is neither tcp://HOST:PORT (1..65535, or * for any free one) nor ipc://PATH (ipc://@NAME: without a file).
Status check_endpoint(std::string_view endpoint);

}  // namespace ignis::pipeline
