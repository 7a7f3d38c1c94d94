#pragma once

#include <cstdint>
#include <string_view>

namespace ignis::vdev {

/// What can go wrong (queue spec 13). A fault lasts until World::heal(), unless it says that it passes.
enum class FaultKind : uint8_t {
  StuckSignal,          ///< what the device stores to signals and timelines never arrives
  LateSignal,           ///< each store takes `delay_ns` longer
  DoorbellLost,         ///< the next `count` submits are not noticed before a later one; passes
  HalfUpload,           ///< the next `count` uploads fail half-way; passes
  MappingRefused,       ///< memory of others cannot be mapped; what is mapped stays so
  RingFull,             ///< no queue takes a command out of its ring
  RemovedBeforeSubmit,  ///< the device is gone at its submit number `count` from now
  RemovedDuringWait,    ///< the device is gone in `delay_ns`
  PeerLost,             ///< as RemovedDuringWait, for a device that others touch
  NetworkCardLost,      ///< transfers over a wire fail
  HostWorkerDead,       ///< as RingFull, for the host's worker
};

std::string_view to_string(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::StuckSignal;
  uint64_t count = 1;
  int64_t delay_ns = 0;
};

}  // namespace ignis::vdev
