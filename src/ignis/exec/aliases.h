#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/queue_template.h"
#include "ignis/exec/run_time_ring.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ignis::exec {

/// Memory that an input is bound to: one place for each lane of its buffer.
struct BoundInput {
  std::vector<Placement> lanes;
};
/// All of one block of memory, from `offset_bytes` on, as a single lane.
BoundInput bind(runtime::MemoryRef memory, uint64_t offset_bytes = 0);

/// Finds inputs that lie over each other (queue spec DP-13). Made once for a template; a check allocates nothing.
class AliasCheck {
 public:
  explicit AliasCheck(const QueueTemplate& queues);

  /// Errors: InvalidArgument with the reason AliasedArguments, naming both inputs, when one writes what another touches and
  /// the template does not count the two as one base. `inputs` have the lanes that the template uses.
  Status check(std::span<const BoundInput> inputs);

 private:
  friend std::vector<std::vector<int>> find_aliased_inputs(const QueueTemplate& queues,
                                                           std::span<const BoundInput> inputs);
  struct Range {
    const void* space;  ///< null: host addresses; else offsets in that memory
    uint64_t begin_bytes, end_bytes;
    const InputUse* use;
  };
  /// The next pair that must not be, or nulls.
  std::pair<const InputUse*, const InputUse*> find(std::span<const BoundInput> inputs);
  bool is_one_base(const InputUse& a, const InputUse& b) const;

  std::vector<InputUse> uses_;
  std::vector<int> set_of_;  ///< by input; -1: in none
  std::vector<Range> ranges_;
};

/// Sets of inputs for QueueOptions::aliased_inputs with which a template of the same schedule takes these inputs: for the
/// conservative template after AliasedArguments. Empty when nothing lies over anything.
std::vector<std::vector<int>> find_aliased_inputs(const QueueTemplate& queues,
                                                  std::span<const BoundInput> inputs);

}  // namespace ignis::exec
