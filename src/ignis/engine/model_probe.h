#pragma once

#include "ignis/exec/linked_schedule.h"
#include "ignis/exec/model.h"

#include <functional>
#include <memory>
#include <span>

namespace ignis::engine {

/// Runs a model in ways that look into it. The model outlives it.
class ModelProbe {
 public:
  explicit ModelProbe(const exec::Model& model) : model_(model) {}

  /// As Model::run(), and fills times[i] with when call i began and ended, by the device's stamps; one entry for each call.
  Status profile(std::span<const std::span<const std::byte>> inputs,
                 std::span<const std::span<std::byte>> outputs, runtime::Deadline deadline,
                 std::span<runtime::LaunchTime> times);
  /// As Model::run(), but one call at a time on memory of its own; after each, `after` may read the call's buffers (one address
  /// for each of the program's slots) and may end the run with an error. For comparing kernels with a reference.
  using AfterCall = std::function<Status(size_t call, std::span<void* const> buffers)>;
  Status run_stepwise(std::span<const std::span<const std::byte>> inputs,
                      std::span<const std::span<std::byte>> outputs, runtime::Deadline deadline,
                      const AfterCall& after);

 private:
  const exec::Model& model_;
  std::shared_ptr<exec::LinkedSchedule> profiled_;  // made when it is first asked for
};

}  // namespace ignis::engine
