#pragma once

#include "ignis/ir/graph.h"
#include "ignis/schedule/schedule.h"

#include <memory>
#include <vector>

namespace ignis::schedule {

/// A kernel before layouts: its Params carry logical shapes only.
struct Draft {
  ir::Node sink;                 ///< Sink(Store(Index(param, i…), value))
  std::vector<int> buffers;      ///< slot -> Schedule::buffers; slot 0 is the stored one
  std::vector<ir::Node> ranges;  ///< output ranges, in the order of the stored value's axes
  std::vector<ir::Node> layers;  ///< tensor nodes computed here
  uint32_t order = 0;            ///< id of the tensor node it realises: a topological key
  bool at_load = false;
  Notes why;  ///< as Kernel::why
};

/// Decides which nodes of the tensor graph are materialised and writes one draft for each (tensor-ir.md section 8).
/// Fills `schedule.buffers`, `inputs` and `outputs`, with logical shapes and planar layouts.
///
/// Nodes are visited users first. A node that all its users read at one index, without repeating work, is computed
/// inside their kernel; any other is materialised. So a reduce takes its elementwise users as its epilogue, and a
/// reduce over trailing axes whose result is broadcast back (softmax, layer norm) shares the kernel with them.
Result<std::vector<Draft>> split_kernels(const std::vector<ir::Node>& inputs,
                                         const std::vector<ir::Node>& outputs,
                                         const Options& options, Schedule& schedule);

}  // namespace ignis::schedule
