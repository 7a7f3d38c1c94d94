#pragma once

#include "ignis/base/program_image.h"
#include "ignis/runtime/device.h"
#include "ignis/runtime/queued_device.h"
#include "ignis/vdev/queue/device.h"
#include "ignis/vdev/queue/virtual_clock.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ignis::vdev {

/// What a function of a world is called with. It must not call the world.
struct FunctionCall {
  std::span<std::byte* const> buffers;   ///< by slot
  std::span<const uint64_t> room_bytes;  ///< from each buffer's address to the end of its memory
  std::span<const int64_t> variables;
  int64_t part = 0, parts = 1;
};
using Function = std::function<void(const FunctionCall&)>;

/// One queue of a device of a world.
struct QueueRef {
  std::string device;
  runtime::QueueId queue;
  bool operator==(const QueueRef&) const = default;
};

struct WorldOptions {
  /// Null: virtual time, which begins at 1 s and moves on when somebody sleeps.
  runtime::Clock* clock = nullptr;
  /// Runs programs that are objects; without it only functions run.
  std::shared_ptr<runtime::Device> cpu{};
  /// Virtual time: devices work while somebody sleeps. Off: they only work when step() or a run_ function says so.
  bool serves_on_sleep = true;
};

/// Simulated devices with queues, their time, their order of service and their faults. Outlives everything that uses its
/// devices. All functions may be called from any thread.
class World {
 public:
  explicit World(WorldOptions options = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Adds a device; its name is made canonical and must be new.
  runtime::QueuedDevice& add(DeviceSpec spec);
  /// The host's worker as a device that is not queued: one ring, COMPUTE:0. Its memory is the host's.
  runtime::QueuedDevice& add_host_worker(uint64_t ring_bytes = uint64_t{4} << 20);
  /// Null for a name that is not there.
  runtime::QueuedDevice* find(std::string_view name) const;
  /// In name order.
  std::vector<runtime::QueuedDevice*> devices() const;
  runtime::Clock& clock() { return *clock_; }
  /// Virtual time passes: devices work as far as they get until then.
  void pass(int64_t time_ns) { clock_->sleep_until(clock_->now_ns() + time_ns); }

  /// Memory of the host, "CPU". Errors: OutOfMemory.
  Result<runtime::MemoryRef> host_memory(uint64_t size_bytes);
  /// A program that is a C++ function.
  ProgramImage add_function(std::string name, int buffer_count, Function function);
  /// Bytes that a device, or the host, has given out and not got back.
  uint64_t memory_in_use_bytes(std::string_view device) const;

  /// Words that the host stored through a device's window.
  uint64_t window_stores(std::string_view device) const;

  std::vector<QueueRef> queues() const;
  /// One service step of one queue.
  Step step(const QueueRef& queue);
  /// Serves all queues at the present time until none gets on. True when every ring is empty then.
  bool run_until_blocked();
  /// As run_until_blocked(), and lets virtual time pass until calls are done.
  bool run_until_idle();
  /// In which order queues are served: starting with queue number `first` of queues(), one step each in turn …
  void set_rotation(size_t first);
  /// … or drawn at random.
  void set_random_order(uint64_t seed);
  /// A thread serves from now on (real time). The destructor stops it.
  void start_worker();
  void stop_worker();

  void inject(std::string_view device, const Fault& fault);
  /// Ends all faults of a device; a removed one is plugged in again. It still has to be reopened.
  void heal(std::string_view device);

  /// Keeps what runs from now on.
  void set_tracing(bool is_on);
  std::vector<TraceEntry> take_trace();

 private:
  friend class SimulatedDevice;
  SimulatedDevice* find_simulated(std::string_view name) const;
  void serve_until(int64_t until_ns);
  /// What the host wrote to memory that it caches reaches the devices.
  void flush_host_writes();
  bool serve_round(int64_t now_ns);
  int64_t next_event_ns() const;
  void apply_timed_faults();
  bool is_idle() const;
  void work();

  WorldOptions options_;
  VirtualClock virtual_clock_;
  runtime::Clock* clock_;
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<SimulatedDevice>, std::less<>> devices_;
  std::vector<std::pair<SimulatedDevice*, size_t>> queues_;  ///< in order of creation
  std::vector<Function> functions_;
  std::map<uint64_t, std::shared_ptr<const runtime::Program>> programs_;  ///< by checksum
  std::shared_ptr<std::atomic<uint64_t>> host_in_use_bytes_;
  size_t first_ = 0;
  bool is_random_ = false;
  std::mt19937_64 rng_;
  std::vector<size_t> order_;  ///< of the round, kept for its room
  bool is_tracing_ = false;
  std::vector<TraceEntry> trace_;
  std::atomic<bool> stops_{false};
  std::thread worker_;
};

}  // namespace ignis::vdev
