#pragma once

#include "ignis/exec/machine.h"
#include "ignis/exec/plan.h"
#include "ignis/exec/schedule.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace ignis::engine {

/// Memory of a device that holds a constant of a plan, or null: a placeholder.
using ConstantMemory =
    std::function<Result<runtime::MemoryRef>(const std::string& device, const exec::BufferPlan&)>;

struct PlanScheduleOptions {
  std::string device =
      "CPU";  ///< where all of it lies and runs; canonical. Several with commas: on each of them
  /// On: outputs are bound at each run too, with the numbers behind those of the inputs. Off: they are placeholders.
  bool binds_outputs = false;
  /// On: every part of the arena that reads no zeros becomes a buffer of its own, for whoever plans the memory of several
  /// plans together. A plan with one that does keeps its arena as it is.
  bool splits_arena = false;
  ConstantMemory constant_memory{};  ///< empty: constants are placeholders
};

/// A plan as a schedule, and what its buffers are.
struct PlanSchedule {
  exec::Schedule schedule;
  std::vector<int> inputs, outputs;  ///< buffers of the plan's ports
  std::vector<int> constants;        ///< buffers, those without memory included
  std::vector<std::string> layers;   ///< by call, as Call::layer
  int arena = -1;  ///< the buffer that is the arena; -1: there is none, or it is split
  /// The arena has bytes that calls read and none writes: it must start as zeros and share its memory with nothing else.
  bool arena_reads_zeros = false;
};

/// Turns a compiled model into calls on buffers of one device. Errors: as exec::check_plan().
Result<PlanSchedule> plan_schedule(exec::Plan plan, const PlanScheduleOptions& options);

/// Constants on devices: host memory is shared with whoever owns it, a device with memory of its own gets each constant once,
/// for all plans. May be called from any thread.
class ConstantStore {
 public:
  explicit ConstantStore(std::shared_ptr<exec::Machine> machine) : machine_(std::move(machine)) {}
  /// Errors: as exec::Machine::allocate() and upload().
  Result<runtime::MemoryRef> place(const std::string& device, const exec::BufferPlan& constant);
  /// For PlanScheduleOptions; the store outlives it.
  ConstantMemory hook();

 private:
  struct Placed {
    std::weak_ptr<const void> owner;  // the same address means the same bytes as long as it lives
    std::weak_ptr<runtime::Memory> memory;
  };
  using Key = std::tuple<std::string, uint64_t, const std::byte*, int64_t>;  // device, generation

  std::shared_ptr<exec::Machine> machine_;
  std::mutex mutex_;
  std::map<Key, Placed> placed_;
};

/// "CUDA,CUDA:1" as its names; none of an empty text.
std::vector<std::string> split_devices(const std::string& devices);

/// Gives a buffer of one device memory. A part of a block becomes a look at the block: the calls' views are moved.
void place_buffer(exec::Schedule& schedule, int buffer, const exec::Placement& at);

/// Memory of a device or the host whose bytes are zero. Errors: as exec::Machine::allocate() and upload().
Result<runtime::MemoryRef> allocate_zeroed(exec::Machine& machine, const std::string& device,
                                           uint64_t size_bytes);
/// Writes host bytes into memory of a device or the host. Nothing may be under way on them.
/// Errors: InvalidArgument for bytes outside; as upload().
Status write_memory(exec::Machine& machine, const runtime::MemoryRef& to, uint64_t offset_bytes,
                    std::span<const std::byte> bytes);

}  // namespace ignis::engine
