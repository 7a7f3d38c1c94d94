#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/captured.h"
#include "ignis/exec/linked_schedule.h"
#include "ignis/exec/machine.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ignis::exec {

/// Inputs of a replay that lie in memory which the replay writes, such as an output of the replay before: they are copied to
/// shadows first (capture spec 10, W-9). A shadow is made once for each input, and filled on the device in the order of its
/// queues. Not for several threads.
class Feedback {
 public:
  /// For a schedule as it was linked. Shadows of the link before are let go when they are complete.
  void reset(const Captured& captured, const LinkedSchedule& linked);
  void clear();
  /// Of all shadows.
  uint64_t size_bytes() const;

  /// Replaces inputs [0, captured.input_count()) of `bound` that lie over what `linked` names, or over `outputs`, by shadows
  /// that hold their bytes. Allocates nothing for an input that was copied before. Returns how many were copied.
  /// Errors: Unsupported with the reason NoShadowCopy when nobody knows how to copy an input; as link() and run().
  Result<int> apply(const Captured& captured, LinkedSchedule& linked,
                    std::span<const Placement> outputs, std::span<BoundInput> bound,
                    const runtime::WaitLimits& limits);

 private:
  struct Range {
    const void* space = nullptr;  ///< null: host addresses; else offsets in that memory
    uint64_t begin_bytes = 0, end_bytes = 0;
  };
  struct Shadow {
    std::vector<Placement> lanes;  ///< empty: not made
    std::shared_ptr<LinkedSchedule> copy;
    std::vector<BoundInput> bound;  ///< of the copy: the shadow, the input
  };

  static Range range_of(const Placement& at);
  bool is_written(const Placement& at, std::span<const Placement> outputs) const;
  Status make(const Captured& captured, Machine& machine, size_t input, Shadow& shadow);
  Status copy_on_host(LinkedSchedule& linked, const Shadow& shadow, const BoundInput& from,
                      const runtime::WaitLimits& limits);

  std::vector<Range> named_;  ///< sorted and disjoint
  std::vector<Shadow> shadows_;
};

}  // namespace ignis::exec
