#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ignis::runtime {

/// One command queue of a device: "COMPUTE:0", "COPY:1".
struct QueueId {
  enum class Kind : uint8_t { Compute, Copy };
  Kind kind = Kind::Compute;
  int index = 0;

  auto operator<=>(const QueueId&) const = default;
  std::string to_string() const;
};

/// What a device can do, as plain data. The queue chain asks these and never a device's name.
struct Capabilities {
  bool is_queued = false;  ///< takes batches by command queues; the host path runs all others
  bool has_unified_memory = false;  ///< copies to and from it are the host's work
  int copy_queues = 0;              ///< 0: copies are kernels on COMPUTE:0
  bool has_network_card = false;
  bool is_in_order = true;       ///< a queue's commands complete in the order of submission
  bool chains_launches = false;  ///< a wait in front of a launch breaks its chain (queue spec 6.1)
  bool has_device_graphs = false;    ///< groups of calls may become one graph (capture spec 9)
  bool crosses_host_memory = false;  ///< reaches memory through a window that the host writes
  bool can_recover = false;          ///< a reset after a hang may succeed
  bool is_host_coherent = true;      ///< what it wrote needs no make_visible() for the host
  int signal_bits = 64;              ///< width of signals and timelines: 32 or 64
  uint32_t ticks_per_us = 1000;      ///< of its time stamps
  std::string peer_group{};  ///< devices of one group map each other's memory; default: the kind

  bool operator==(const Capabilities&) const = default;
  /// Equal for equal capabilities; part of every template's key.
  uint64_t fingerprint() const;
};

/// "copy queues 2 -> 1, signal bits 64 -> 32": where two devices differ; empty when nowhere.
std::string describe_difference(const Capabilities& from, const Capabilities& to);

/// "CUDA:1" of "cuda:1", "CUDA" of "Cuda:0": capitals, no index 0. The chain's tables write names in this form.
std::string canonical_device_name(std::string_view name);
/// "CUDA" of "CUDA:1".
std::string device_kind(std::string_view canonical_name);

}  // namespace ignis::runtime
