#include "ignis/pipeline/transport/endpoints.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace ignis::pipeline {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kIpc = "ipc://";

// clang-format off
constexpr std::array<TopicInfo, kTopicCount> kTopics = {{
    // topic                       name                     other name         Hz  queue bare   default endpoint         port path
    {Topic::DriverStateV2,         "driverStateV2",         "",                20, 4,    false, "tcp://127.0.0.1:7100",  0,   ""},
    {Topic::DriverStateQuality,    "driverStateQuality",    "",                20, 4,    false, "tcp://127.0.0.1:7101",  1,   ".quality"},
    {Topic::ExtrinsicsCalibration, "extrinsicsCalibration", "liveCalibration",  4, 4,    true,  "tcp://127.0.0.1:7102",  2,   ".calibration"},
}};
// clang-format on

Error refuse(std::string_view endpoint, const std::string& why) {
  return Error(ErrorCode::InvalidArgument, "The endpoint '" + std::string(endpoint) + "' " + why,
               "Endpoint");
}

/// "tcp://host:" and "7100".
struct TcpParts {
  std::string_view head, port;
};

std::optional<TcpParts> split_tcp(std::string_view endpoint) {
  if (!endpoint.starts_with(kTcp)) return std::nullopt;
  const size_t colon = endpoint.rfind(':');
  if (colon < kTcp.size()) return std::nullopt;  // the colon of "tcp:"
  return TcpParts{endpoint.substr(0, colon + 1), endpoint.substr(colon + 1)};
}

std::optional<int> parse_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (port < 1 || port > 65535) return std::nullopt;
  return port;
}

}  // namespace

std::span<const TopicInfo> topics() { return kTopics; }

const TopicInfo& info(Topic topic) { return kTopics[static_cast<size_t>(topic)]; }

Status check_endpoint(std::string_view endpoint) {
  if (endpoint.find('\0') != std::string_view::npos) {
    return refuse(endpoint.substr(0, endpoint.find('\0')), "holds a zero byte.");
  }
  if (endpoint.starts_with(kIpc)) {
    const std::string_view path = endpoint.substr(kIpc.size());
    if (path.empty() || path == "@" || path == "*") return refuse(endpoint, "names no path.");
    return Status::ok();
  }
  const auto tcp = split_tcp(endpoint);
  if (!tcp) return refuse(endpoint, "is neither tcp://HOST:PORT nor ipc://PATH.");
  if (tcp->head.size() == kTcp.size() + 1) return refuse(endpoint, "names no host.");
  if (tcp->port != "*" && !parse_port(tcp->port)) {
    return refuse(endpoint, "has the port '" + std::string(tcp->port) +
                                "'; 1 to 65535, or * for any free one, is expected.");
  }
  return Status::ok();
}

Result<std::string> endpoint_below(std::string_view base, Topic topic) {
  IGNIS_TRY(check_endpoint(base));
  const TopicInfo& wanted = info(topic);
  const auto tcp = split_tcp(base);
  if (!tcp) return std::string(base) + std::string(wanted.path_suffix);
  if (tcp->port == "*") return std::string(base);
  const int port = *parse_port(tcp->port) + wanted.port_offset;
  if (port > 65535) {
    return refuse(base, "leaves no port for " + std::string(wanted.name) + ", which is " +
                            std::to_string(wanted.port_offset) + " behind it.");
  }
  return std::string(tcp->head) + std::to_string(port);
}

}  // namespace ignis::pipeline
