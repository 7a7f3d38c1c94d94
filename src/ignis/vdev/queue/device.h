#pragma once

#include "ignis/runtime/device_life.h"
#include "ignis/runtime/queued_device.h"
#include "ignis/vdev/queue/decode.h"
#include "ignis/vdev/queue/faults.h"
#include "ignis/vdev/queue/memory.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::vdev {

class World;

/// What a simulated device is. The name is canonical. One that crosses_host_memory reads its calls from memory that the host
/// stores into only through a window: QueuedDevice::store_word().
struct DeviceSpec {
  std::string name = "CUDA";
  runtime::Capabilities capabilities{.is_queued = true, .copy_queues = 1, .can_recover = true};
  uint64_t ring_bytes = uint64_t{64} << 10;     ///< of each queue
  uint64_t memory_bytes = uint64_t{256} << 20;  ///< that it gives out
  int64_t kernel_ns = 1000;                     ///< that an exec takes
  int64_t copy_ns = 1000;                       ///< that a copy takes
  bool hides_memory = false;  ///< the host does not reach memory for Purpose::Data
  bool keeps_memory = true;   ///< a reopen finds memory whole, unless the device was removed
};

/// What a service step came to.
enum class Step : uint8_t {
  Ran,      ///< a command began or completed
  Blocked,  ///< it waits for a word or for the other end of a wire
  Busy,     ///< a call takes its time
  Empty,    ///< nothing to do
  Halted,   ///< the device is not online, or its queue stands still by a fault
};

/// A command that ran, as the tests see it.
struct TraceEntry {
  std::string device;
  runtime::QueueId queue;
  Instruction instruction;
  int64_t begin_ns = 0, end_ns = 0;
};

/// A device of a World. Public functions are those of runtime::QueuedDevice; the rest is the world's.
class SimulatedDevice final : public runtime::QueuedDevice {
 public:
  SimulatedDevice(World& world, DeviceSpec spec, uint64_t first_address);
  ~SimulatedDevice() override;

  const std::string& name() const override { return spec_.name; }
  const runtime::Capabilities& capabilities() const override { return spec_.capabilities; }
  runtime::DeviceState state() const override { return life_.state(); }
  bool is_online() const override { return life_.is_online(); }
  uint64_t generation() const override { return life_.generation(); }
  runtime::Clock& clock() override;
  runtime::Timeline& timeline() override { return timeline_; }
  bool try_lock_submission(int64_t deadline_ns) override;
  void unlock_submission() override { submission_.unlock(); }

  Result<runtime::MemoryRef> allocate(uint64_t size_bytes, runtime::Purpose purpose) override;
  Result<uint64_t> map(const runtime::MemoryRef& memory) override;
  bool is_whole(const runtime::Memory& memory) const override;
  Result<std::vector<std::byte>> make_image(const ProgramImage& image) const override;
  Status upload(const runtime::MemoryRef& to, uint64_t offset_bytes,
                std::span<const std::byte> bytes) override;
  Status store_word(const runtime::MemoryRef& to, uint64_t offset_bytes, uint64_t value,
                    uint32_t width_bytes) override;
  Status make_visible(const runtime::MemoryRef& memory, uint64_t begin_bytes,
                      uint64_t end_bytes) override;
  Result<runtime::MemoryRef> open_wire(uint64_t size_bytes,
                                       const runtime::MemoryRef& other_end) override;
  Status encode(const runtime::Command& command, const Encoding& encoding,
                runtime::EncodedQueue& to) const override;
  uint64_t free_bytes(runtime::QueueId queue) const override;
  uint64_t ring_bytes(runtime::QueueId queue) const override;
  Status submit(runtime::QueueId queue, std::span<const std::byte> commands) override;
  bool only_waits() const override;
  std::string report_hang(const std::string& what) override;
  Status reopen() override;

 private:
  friend class World;

  /// A call that has begun.
  struct Flight {
    Instruction instruction;
    int64_t begin_ns = 0, end_ns = 0;
  };
  struct Queue {
    runtime::QueueId id;
    std::vector<std::byte> ring;
    uint64_t read = 0, write = 0, doorbell = 0;  ///< bytes since the beginning
    int64_t local_ns = 0;                        ///< when the last command was done
    bool was_blocked = false;
    bool has_posted = false;  ///< the receive at the head
    std::deque<Flight> flights;
  };
  struct Faults {
    bool stuck_signal = false, refuses_mapping = false, stands_still = false, card_lost = false;
    int64_t late_ns = 0;
    uint64_t lost_doorbells = 0, half_uploads = 0, remove_at_submit = 0;
    int64_t remove_at_ns = INT64_MAX;
    bool is_removed = false;
  };

  // All below under the world's mutex.
  Queue* find(runtime::QueueId id);
  const Queue* find(runtime::QueueId id) const;
  void inject(const Fault& fault, int64_t now_ns);
  void heal();
  void remove(const std::string& how);
  /// One service step of a queue (execute.cpp).
  Step step(Queue& queue, int64_t now_ns);
  Step begin(Queue& queue, Instruction instruction, int64_t now_ns);
  Step complete(Queue& queue, size_t index);
  Result<bool> is_reached(const Instruction& wait) const;
  /// As AddressMap::reach(), and refuses memory of a device that is gone.
  Result<Reached> reach(uint64_t address, uint64_t size_bytes) const;
  Status check_own_bytes(const runtime::MemoryRef& memory, uint64_t begin_bytes,
                         uint64_t end_bytes) const;
  Status store(const Instruction& instruction) const;
  Status stamp(const Instruction& instruction, int64_t at_ns) const;
  /// Whether a copy may begin: always, but for one over a wire.
  Result<bool> can_transfer(Queue& queue, const Instruction& copy);
  Status run_copy(const Instruction& copy);
  Status run_exec(const Instruction& exec);
  Step fail(const Queue& queue, const Instruction& instruction, const std::string& why);
  Result<std::optional<Instruction>> head(const Queue& queue) const;
  void advance(Queue& queue, uint64_t size_bytes, int64_t now_ns);
  void trace(const Queue& queue, const Instruction& instruction, int64_t begin_ns, int64_t end_ns);
  /// When something will happen by itself; INT64_MAX: never.
  int64_t next_event_ns() const;
  void apply_timed_faults(int64_t now_ns);
  std::string describe_queues() const;

  World& world_;
  DeviceSpec spec_;
  runtime::DeviceLife life_;
  runtime::Timeline timeline_;
  std::shared_ptr<SimulatedMemory> timeline_memory_;
  std::mutex submission_;
  std::vector<Queue> queues_;
  AddressMap addresses_;
  std::vector<std::weak_ptr<SimulatedMemory>> owned_;
  std::vector<std::weak_ptr<Wire>> wires_;
  std::shared_ptr<std::atomic<uint64_t>> in_use_bytes_;
  std::atomic<uint64_t> window_stores_{0};
  Faults faults_;
  bool was_removed_ = false;  ///< since the last reopen
};

}  // namespace ignis::vdev
