#pragma once

#include "ignis/base/host_tensor.h"
#include "ignis/base/result.h"
#include "ignis/exec/plan.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace ignis::pipeline {

/// A program that is ready to run, wherever it came from: compiled a moment ago, or out of an artifact.
class StageProgram {
 public:
  virtual ~StageProgram() = default;
  virtual const std::vector<exec::Port>& inputs() const = 0;
  virtual const std::vector<exec::Port>& outputs() const = 0;
  /// Runs once: one pointer for each input and output, allocating nothing. Errors: as Stage::run().
  virtual Status run(std::span<const void* const> inputs, std::span<void* const> outputs,
                     std::chrono::steady_clock::time_point deadline) = 0;
  /// The device is lost, by a run of its own or of another program on the same threads.
  virtual bool is_lost() const = 0;
};

/// A program with the memory it writes. A run allocates nothing.
class Stage {
 public:
  explicit Stage(std::unique_ptr<StageProgram> program);

  const std::vector<exec::Port>& inputs() const { return program_->inputs(); }
  const std::vector<exec::Port>& outputs() const { return program_->outputs(); }
  /// Runs once: one pointer for each input. After Timeout or DeviceLost an abandoned thread may still read the inputs and
  /// write the outputs: the outputs' memory is kept for it here, the inputs' is the caller's part (runtime::abandon), and
  /// the stage is of no further use.
  Status run(std::span<const void* const> inputs, std::chrono::steady_clock::time_point deadline);
  /// Bytes of output `index` from the last run.
  std::span<const std::byte> output(size_t index) const { return (*memory_)[index].bytes; }
  std::span<const float> floats(size_t index) const;
  /// Of no further use: after a run of its own, or because another program's run took the threads they share along.
  bool is_lost() const { return is_lost_ || program_->is_lost(); }
  /// Keeps the outputs' memory for the rest of the process: somebody else's abandoned thread may read it.
  void abandon();

 private:
  std::unique_ptr<StageProgram> program_;
  std::shared_ptr<std::vector<HostTensor>>
      memory_;  // of the outputs; shared with abandoned threads
  std::vector<void*> pointers_;
  bool is_lost_ = false;
};

}  // namespace ignis::pipeline
