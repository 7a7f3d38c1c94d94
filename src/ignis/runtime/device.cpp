#include "ignis/runtime/device.h"

#include <mutex>

namespace ignis::runtime {

DeviceMemory::~DeviceMemory() {
  if (device_ != nullptr) device_->release(bytes_, size_bytes_);
}

Deadline deadline_after(std::chrono::nanoseconds timeout) {
  const Deadline now = std::chrono::steady_clock::now();
  return timeout > Deadline::max() - now ? Deadline::max() : now + timeout;
}

void abandon(std::shared_ptr<const void> owner) {
  // Never freed, and reachable on purpose: leak checkers see an owner.
  static std::mutex& mutex = *new std::mutex;
  static auto& owners = *new std::vector<std::shared_ptr<const void>>;
  const std::lock_guard lock(mutex);
  owners.push_back(std::move(owner));
}

}  // namespace ignis::runtime
