#pragma once

#include <span>
#include <vector>

#include "ignis/base/host_tensor.h"
#include "ignis/ir/graph.h"

namespace ignis::interp {

struct Options {
  bool round_to_dtype = true;   ///< false: floats stay float64 to the end (error measurement)
  int64_t max_elements = int64_t{1} << 31;  ///< of one intermediate value
};

/// Computes the values of `roots` of a tensor graph node by node: floats in float64 then rounded to the node's
/// dtype, integers exactly with wrapping. `inputs[slot]` is the value of Param `slot`. Shares no lowering with the
/// compiler; this is the reference device `cpu:interp`.
/// Errors: InvalidArgument when an input's dtype or shape differs from its Param, OutOfMemory over max_elements.
Result<std::vector<HostTensor>> evaluate(std::span<const ir::Node> roots, std::span<const HostTensor> inputs,
                                         const Options& options = {});

}  // namespace ignis::interp
