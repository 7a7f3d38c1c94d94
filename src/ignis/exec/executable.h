#pragma once

#include "ignis/exec/plan.h"
#include "ignis/runtime/device.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace ignis::exec {

/// A plan bound to a device: programs loaded, constants and arena addressed, nothing left to do at a run but to
/// write down where inputs and outputs lie. Movable. One run at a time: the arena is its own; make a second one (it
/// shares the constants) for a second thread.
class Executable {
 public:
  /// Checks the plan (it may come from a file one day), loads its programs and maps its arena.
  /// Errors: InvalidArgument saying what in the plan does not fit together, as Device::load, OutOfMemory.
  static Result<Executable> create(Plan plan, std::shared_ptr<runtime::Device> device);
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

  const Plan& plan() const;
  /// Parts that call `i` is cut into: no more than its max_parts and the device's threads, and 1 when its work is
  /// too little to be worth waking a thread.
  int64_t parts(size_t call) const;

  /// Runs every call in order. `inputs` and `outputs` are the memory of plan().inputs and plan().outputs, aligned to
  /// their elements, of exactly their sizes. Allocates nothing when it succeeds.
  /// Errors: InvalidArgument naming the port with both sizes, or two overlapping ones (AliasedArguments), or a run
  /// that is under way (Busy); Timeout; DeviceLost. After Timeout the outputs are undefined, and when the device is
  /// lost an abandoned thread may still touch inputs and outputs.
  Status run(std::span<const std::span<const std::byte>> inputs,
             std::span<const std::span<std::byte>> outputs, runtime::Deadline deadline);
  /// As run(), and fills times[i] with when call i began and ended; one entry for each call, or none.
  Status profile(std::span<const std::span<const std::byte>> inputs,
                 std::span<const std::span<std::byte>> outputs, runtime::Deadline deadline,
                 std::span<runtime::LaunchTime> times);
  /// As run(), but one call at a time; after each, `after` may read the call's buffers (one address for each of the
  /// program's slots) and may end the run with an error. For comparing kernels with a reference.
  using AfterCall = std::function<Status(size_t call, std::span<void* const> buffers)>;
  Status run_stepwise(std::span<const std::span<const std::byte>> inputs,
                      std::span<const std::span<std::byte>> outputs, runtime::Deadline deadline,
                      const AfterCall& after);

 private:
  struct State;
  class OneRun;
  explicit Executable(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  // shared only with runtime::abandon()
};

}  // namespace ignis::exec
