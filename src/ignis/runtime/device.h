#pragma once

#include "ignis/base/program_image.h"
#include "ignis/base/result.h"
#include "ignis/base/target.h"
#include "ignis/runtime/device_spec.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ignis::runtime {

class Device;
class QueuedDevice;

/// A point in time after which a wait ends with ErrorCode::Timeout.
using Deadline = std::chrono::steady_clock::time_point;

/// Now plus `timeout`, held below the end of the clock's range.
Deadline deadline_after(std::chrono::nanoseconds timeout);

/// Zeroed memory of one device, 64-byte aligned. Move-only; gives it back in its destructor.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)),
        bytes_(std::exchange(other.bytes_, nullptr)),
        size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  DeviceMemory& operator=(DeviceMemory other) noexcept {
    std::swap(device_, other.device_);
    std::swap(bytes_, other.bytes_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  ~DeviceMemory();

  /// Host address. Every device so far shares the host's memory.
  std::byte* bytes() const { return bytes_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  friend class Device;
  DeviceMemory(Device& device, std::byte* bytes, uint64_t size_bytes)
      : device_(&device), bytes_(bytes), size_bytes_(size_bytes) {}

  Device* device_ = nullptr;  // outlives every block it gave out; null after a move
  std::byte* bytes_ = nullptr;
  uint64_t size_bytes_ = 0;
};

/// A program made ready on one device. The device outlives it.
class Program {
 public:
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  virtual ~Program() = default;

  const std::string& name() const { return name_; }
  int buffer_count() const { return buffer_count_; }
  /// The entry of base/program_image.h where the program is code of this process, which any thread may call while the program
  /// lives; null elsewhere.
  using HostEntry = void (*)(void* const* buffers, int64_t part, int64_t parts);
  virtual HostEntry host_entry() const { return nullptr; }

 protected:
  Program(std::string name, int buffer_count)
      : name_(std::move(name)), buffer_count_(buffer_count) {}

 private:
  std::string name_;
  int buffer_count_;
};

/// One call of a host run: `program` on buffers[0 … buffer_count - 1], cut into `parts` parts (at least 1).
struct Launch {
  const Program* program = nullptr;
  void* const* buffers = nullptr;
  int64_t parts = 1;
};

/// When a launch began and ended, on the steady clock.
struct LaunchTime {
  std::chrono::steady_clock::time_point begin, end;
};

/// A device that is open: memory, programs and runs. All functions may be called from any thread.
///
/// A run is a list of launches in order, each seeing what the former wrote. This is the seam to the command queues:
/// a run of calls that no queue takes is handed over here as a whole.
class Device {
 public:
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  /// Canonical SPEC: "cpu", "cpu:llvm:avx2".
  const std::string& name() const { return name_; }
  const Target& target() const { return target_; }
  /// Threads a run may use, the caller's included.
  virtual int threads() const = 0;

  /// Zeroed memory of `size_bytes` (0 is legal and gives a valid pointer). Errors: OutOfMemory.
  virtual Result<DeviceMemory> allocate(uint64_t size_bytes) = 0;
  /// Makes `image`, whose object may hold anything, ready to run.
  /// Errors: InvalidArgument, Unsupported, OutOfMemory.
  virtual Result<std::shared_ptr<const Program>> load(const ProgramImage& image) = 0;
  /// Runs `launches` in order and waits for the last. `times` is empty or has one entry for each launch. Allocates
  /// nothing when it succeeds.
  /// Errors: Timeout when the deadline passes, DeviceLost after the device was lost. After an error the buffers'
  /// contents are undefined; when the device is lost, programs and buffers of the run may still be in use and must
  /// be kept (abandon()).
  virtual Status run(std::span<const Launch> launches, Deadline deadline,
                     std::span<LaunchTime> times = {}) = 0;
  /// Ok, or DeviceLost with the cause. Sticks until the device is reopened.
  virtual Status state() const = 0;
  /// The device as one of the queue chain, which host runs are handed to; null: it is none. Lives as long as the device, and
  /// has a state of its own.
  virtual QueuedDevice* queue() { return nullptr; }

 protected:
  Device(std::string name, Target target) : name_(std::move(name)), target_(std::move(target)) {}
  DeviceMemory make_memory(std::byte* bytes, uint64_t size_bytes) {
    return DeviceMemory(*this, bytes, size_bytes);
  }

 private:
  friend class DeviceMemory;
  virtual void release(std::byte* bytes, uint64_t size_bytes) noexcept = 0;

  std::string name_;
  Target target_;
};

struct DeviceOptions {
  int threads = 0;  ///< 0: what the affinity mask and the cgroup quota allow
  std::chrono::nanoseconds spin =
      std::chrono::microseconds(50);  ///< before a waiting thread sleeps
  /// On: devices of one kind use the same threads, so that two do not start twice as many; a run that hangs on one loses
  /// them for all. Off: the device has its own, and nobody else's hang reaches it.
  bool shares_threads = true;
};

/// Opens the device `spec` names; a comma list is tried in order.
/// Errors: InvalidArgument for a malformed SPEC, NotFound naming the known devices, Unsupported for features this
/// machine does not have, OutOfMemory.
Result<std::shared_ptr<Device>> open_device(std::string_view spec,
                                            const DeviceOptions& options = {});
Result<std::shared_ptr<Device>> open_device(const DeviceSpec& spec,
                                            const DeviceOptions& options = {});

/// What programs for the device `spec` are compiled for, on any machine: features ("cpu:llvm:aarch64-neon") name a target
/// with typical cache sizes, so that the code does not depend on the machine that compiles; without them the target is this
/// machine. A comma list is tried in order. `threads` is 1. Errors: as open_device(), but for what this machine lacks.
Result<Target> find_target(std::string_view spec);

/// What `ignis devices` lists.
struct DeviceInfo {
  std::string spec;         ///< opens it
  std::string description;  ///< one line
  Target target;
};
/// Devices of this machine, the default first.
std::vector<DeviceInfo> list_devices();

/// Threads worth starting on this machine: what the affinity mask and the cgroup quota allow, at least 1.
int usable_threads();

/// Keeps `owner` for the rest of the process: a lost device may still use what it holds.
void abandon(std::shared_ptr<const void> owner);

}  // namespace ignis::runtime
