#include "ignis/runtime/device_life.h"

#include "ignis/runtime/reasons.h"

#include <utility>

namespace ignis::runtime {

DeviceState DeviceLife::state() const {
  const std::lock_guard lock(mutex_);
  return {condition_.load(), reason_, generation_.load()};
}

void DeviceLife::stall(std::string what) {
  const std::lock_guard lock(mutex_);
  if (condition_ != DeviceCondition::Online) return;
  reason_ = std::move(what);
  condition_ = DeviceCondition::Stalled;
}

void DeviceLife::resume() {
  const std::lock_guard lock(mutex_);
  if (condition_ != DeviceCondition::Stalled) return;
  reason_.clear();
  condition_ = DeviceCondition::Online;
}

std::string DeviceLife::lose(std::string reason) {
  const std::lock_guard lock(mutex_);
  if (condition_ != DeviceCondition::Unavailable) {
    reason_ = std::move(reason);
    condition_ = DeviceCondition::Unavailable;
  }
  return reason_;
}

void DeviceLife::reopen() {
  const std::lock_guard lock(mutex_);
  reason_.clear();
  ++generation_;  // before it is online: nobody takes the new device for the old one
  condition_ = DeviceCondition::Online;
}

Error device_unavailable(const std::string& device, const DeviceState& state) {
  std::string why = state.reason.empty() ? "no reason is known" : state.reason;
  return Error(ErrorCode::DeviceLost,
               "Device '" + device + "' is not available (" + why +
                   "). Reopen it and link again what was linked for it.",
               std::string(reason::kDeviceUnavailable));
}

Error stale_link(const std::string& device, uint64_t linked, uint64_t generation) {
  return Error(ErrorCode::DeviceLost,
               "This was linked for generation " + std::to_string(linked) + " of device '" +
                   device + "', which is open as generation " + std::to_string(generation) +
                   ". Link it again.",
               std::string(reason::kStaleLink));
}

}  // namespace ignis::runtime
