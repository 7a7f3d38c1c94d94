#pragma once

#include "ignis/exec/captured.h"
#include "ignis/exec/plan.h"
#include "ignis/exec/replay.h"
#include "ignis/runtime/device.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace ignis::exec {

/// A compiled plan on the CPU: its capture, linked and ready to be replayed. Movable. One run at a time: the arena is its own;
/// make a second one (it shares the constants) for a second thread.
class Model {
 public:
  /// The plan has its capture: it comes from an artifact, or engine::capture_plan() made it.
  /// Errors: InvalidArgument saying what in the plan does not fit together (NotCaptured without a capture); as loading programs;
  /// OutOfMemory; Unsupported for a device without a queue.
  static Result<Model> create(Plan plan, std::shared_ptr<runtime::Device> device);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const Plan& plan() const;
  const std::shared_ptr<Machine>& machine() const;
  const std::shared_ptr<runtime::Device>& device() const;
  /// Getting ready: programs, arena, weights and words. Done by create().
  const PrepareReport& prepared() const;
  /// Whether the device was lost, by a run here or, on shared threads, elsewhere.
  Status state() const;

  /// Runs every call in order. `inputs` and `outputs` are the memory of plan().inputs and plan().outputs, aligned to their
  /// elements, of exactly their sizes. Allocates nothing when it succeeds.
  /// Errors: InvalidArgument naming the port with both sizes (WrongSize, Misaligned, Null, WrongCount), or two that overlap
  /// (AliasedArguments); Timeout when the deadline passes: the device is lost when the run has not ended after as much time
  /// again; DeviceLost. When the device is lost it may still be at work on inputs and outputs.
  Status run(std::span<const std::span<const std::byte>> inputs,
             std::span<const std::span<std::byte>> outputs, runtime::Deadline deadline);

 private:
  struct State;
  explicit Model(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  // shared only with runtime::abandon()
};

/// What a run on the caller's ports may be given: see Model::run().
Status check_ports(const Plan& plan, std::span<const std::span<const std::byte>> inputs,
                   std::span<const std::span<std::byte>> outputs);
/// One deadline for all waits of a run; a run stands still for long as far as its timeline tells.
runtime::WaitLimits limits_until(runtime::Deadline deadline);
/// What a run that ended with `status` means: one that is late is given as much time again; if it ends then it was slow, and
/// the device goes on, else it hangs and the device is lost.
Status end_run(Status status, runtime::QueuedDevice& queue, const runtime::WaitLimits& limits,
               const std::function<Status(const runtime::WaitLimits&)>& wait);

}  // namespace ignis::exec
