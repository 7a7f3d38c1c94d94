#pragma once

#include "ignis/engine/session.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ignis::pipeline {

/// A compiled program with the memory it writes. A run allocates nothing.
class Stage {
 public:
  explicit Stage(Session session);

  const Session& session() const { return session_; }
  /// Runs once: one pointer for each input. After Timeout or DeviceLost an abandoned thread may still read the inputs and
  /// write the outputs: the outputs' memory is kept for it here, the inputs' is the caller's part (runtime::abandon), and
  /// the stage is of no further use.
  Status run(std::span<const void* const> inputs, std::chrono::steady_clock::time_point deadline);
  /// Bytes of output `index` from the last run.
  std::span<const std::byte> output(size_t index) const { return (*outputs_)[index].bytes; }
  std::span<const float> floats(size_t index) const;
  /// Of no further use: after a run of its own, or because another session's run took the threads they share along.
  bool is_lost() const { return is_lost_ || session_.is_lost(); }
  /// Keeps the outputs' memory for the rest of the process: somebody else's abandoned thread may read it.
  void abandon();

 private:
  Session session_;
  std::shared_ptr<std::vector<HostTensor>> outputs_;  // shared with abandoned threads
  std::vector<void*> pointers_;
  bool is_lost_ = false;
};

}  // namespace ignis::pipeline
