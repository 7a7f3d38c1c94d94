#pragma once

#include "ignis/runtime/capabilities.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace ignis::engine {

/// The devices a schedule is compiled for, as plain data. Names are canonical.
struct DeviceTable {
  std::map<std::string, runtime::Capabilities> devices;  ///< the host need not be in it
  std::set<std::string> switched_off;  ///< kinds that are taken out of the enqueue set
  std::string host = "CPU";            ///< owns stages; never an enqueue device

  /// Null for a name that is not in the table.
  const runtime::Capabilities* find(std::string_view name) const;
  bool knows(std::string_view name) const;
  /// Whether the device is in the enqueue set: it has queues, its kind is switched on, and it is not the host.
  bool is_enqueued(std::string_view name) const;
  /// Devices of one group map each other's memory; the kind where nothing else is declared.
  std::string peer_group(std::string_view name) const;
  /// Copy queues of a device; 0 for one that is not enqueued.
  int copy_queues(std::string_view name) const;
  /// Equal for equal tables; part of a template's key.
  uint64_t fingerprint() const;
};

}  // namespace ignis::engine
