#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/bounded_mutex.h"
#include "ignis/exec/content_hash.h"
#include "ignis/exec/queue_template.h"
#include "ignis/exec/run_time_ring.h"
#include "ignis/exec/synchronize.h"
#include "ignis/runtime/device.h"
#include "ignis/runtime/queued_device.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace ignis::exec {

/// What a call of kind Other does: nobody but the caller of the queue chain knows. `arguments` are host addresses.
using OtherCall = std::function<Status(const BatchCall& call, std::span<void* const> arguments)>;

struct MachineOptions {
  std::vector<runtime::QueuedDevice*> devices;  ///< outlive the machine and its links
  /// Its queue() takes host runs and gives the host's memory. May be null, or without a queue, where there are no host runs.
  std::shared_ptr<runtime::Device> host;
  std::string host_name = "CPU";
  OtherCall other_call;  ///< may be empty where there are none
  uint64_t ring_bytes = uint64_t{64} << 20;
  /// Of a ring on a device that reaches memory through a window of the host's.
  uint64_t small_ring_bytes = uint64_t{4} << 20;
  /// Of program images; beyond it those go that no link uses.
  uint64_t image_bytes = uint64_t{256} << 20;
  runtime::Clock* clock = nullptr;  ///< of waits that belong to no device; null: the machine's
  /// Of waits for which a caller gives none.
  runtime::WaitLimits limits{30'000'000'000, 30'000'000'000};
};

struct MachineCounts {
  uint64_t uploads = 0;           ///< program images that were written to a device
  uint64_t timestamp_reads = 0;   ///< times read from slots
  uint64_t synchronizations = 0;  ///< waits for a device to reach what was announced
};

/// The open devices, and what links share: rings, stages, program images, and which devices may still
/// be at work on whose memory. All functions may be called from any thread.
class Machine {
 public:
  static std::shared_ptr<Machine> create(MachineOptions options);
  explicit Machine(MachineOptions options);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const MachineOptions& options() const { return options_; }
  runtime::Clock& clock() const { return *options_.clock; }
  /// By canonical name, the host's too; null when it is not open.
  runtime::QueuedDevice* find(std::string_view name) const;
  /// The CPU as a device of the chain, or null.
  runtime::QueuedDevice* host() const { return host_; }
  /// Index of an owner of memory: the devices', then the host's; -1 for one that is not known.
  int owner_index(std::string_view name) const;
  size_t device_count() const { return options_.devices.size(); }

  /// Memory of `owner`, a device or the host: where the backend wants it, or allocated. The host's is zeroed.
  /// Errors: NotFound, OutOfMemory, DeviceLost.
  Result<Placement> allocate(const std::string& owner, uint64_t size_bytes,
                             runtime::Purpose purpose);
  /// A slot of the ring of `owner` for that purpose. Errors: as RunTimeRing::reserve.
  Result<Placement> reserve(const std::string& owner, uint64_t size_bytes, runtime::Purpose purpose,
                            const std::shared_ptr<const CompletionToken>& token);
  /// The stage of that name, the same for every template.
  Result<runtime::MemoryRef> stage(const ScheduleBuffer& buffer);

  /// Where a program's image lies on a device; uploads it unless these very bytes are there. A failed upload leaves nothing
  /// behind. Errors: as make_image() and upload().
  Result<runtime::MemoryRef> image(runtime::QueuedDevice& device, const ProgramImage& image);

  /// A submit program, loaded. Errors: as runtime::Device::load; Unsupported without a host device.
  Result<std::shared_ptr<const runtime::Program>> host_program(const ProgramImage& image);

  /// Keeps `what` until `token` is complete.
  void retire(std::shared_ptr<const CompletionToken> token, std::shared_ptr<const void> what);
  /// Lets go of what was retired and is complete.
  void collect();

  PendingOwners& pending() { return pending_; }

  /// Holds stages, by name and in order, while a run submits what uses them: the slots of a stage have one order.
  class StageLock {
   public:
    StageLock(Machine& machine, std::span<const std::string> names, int64_t end_ns);
    ~StageLock();
    StageLock(const StageLock&) = delete;
    StageLock& operator=(const StageLock&) = delete;
    Status status() const { return status_; }

   private:
    Machine& machine_;
    std::span<const std::string> names_;
    size_t count_ = 0;
    Status status_;
  };

  MachineCounts counts() const;
  void count_timestamp_reads(uint64_t count) {
    timestamp_reads_.fetch_add(count, std::memory_order_relaxed);
  }
  void count_synchronization() { synchronizations_.fetch_add(1, std::memory_order_relaxed); }

 private:
  using ImageKey = std::tuple<std::string, uint64_t, ContentHash>;  // device, generation, content
  struct Retired {
    std::shared_ptr<const CompletionToken> token;
    std::shared_ptr<const void> what;
  };

  void forget_images(const ImageKey& newest);

  MachineOptions options_;
  runtime::QueuedDevice* host_ = nullptr;
  mutable std::mutex mutex_;
  struct HeldRing {
    uint64_t generation = 0;  ///< a reopened device may have lost the old block
    std::shared_ptr<RunTimeRing> ring;
  };
  std::map<std::pair<std::string, bool>, HeldRing> rings_;
  std::map<std::pair<std::string, uint64_t>, runtime::MemoryRef> stages_;
  std::map<std::string, BoundedMutex, std::less<>> stage_locks_;
  std::map<ImageKey, runtime::MemoryRef> images_;
  uint64_t image_bytes_ = 0;
  std::map<ContentHash, std::shared_ptr<const runtime::Program>> host_programs_;
  std::vector<Retired> retired_;
  PendingOwners pending_;
  std::atomic<uint64_t> uploads_{0}, timestamp_reads_{0}, synchronizations_{0};
};

}  // namespace ignis::exec
