#pragma once

#include "ignis/base/host_tensor.h"
#include "ignis/ir/graph.h"

#include <functional>
#include <span>
#include <vector>

namespace ignis::interp {

struct Options {
  bool round_to_dtype =
      true;  ///< false: floats stay float64 to the end (error measurement); results are float64
  int64_t max_elements = int64_t{1} << 31;  ///< of one intermediate value
};

/// Computes the values of `roots` of a tensor graph node by node: floats in float64 then rounded to the node's
/// dtype, integers exactly with wrapping. `inputs[slot]` is the value of Param `slot`. Shares no lowering with the
/// compiler; this is the reference device `cpu:interp`.
/// Errors: InvalidArgument when an input's dtype or shape differs from its Param, OutOfMemory over max_elements.
Result<std::vector<HostTensor>> evaluate(std::span<const ir::Node> roots,
                                         std::span<const HostTensor> inputs,
                                         const Options& options = {});

/// Takes the value of roots[index] as soon as it is known. An error ends the evaluation.
using Sink = std::function<Status(size_t index, HostTensor value)>;

/// The same, one value at a time in the graph's order, so that the values of all layers of a model never exist at
/// once. Equal roots are reported for each index.
Status evaluate_each(std::span<const ir::Node> roots, std::span<const HostTensor> inputs,
                     const Sink& sink, const Options& options = {});

}  // namespace ignis::interp
