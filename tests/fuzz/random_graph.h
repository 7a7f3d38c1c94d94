#pragma once

#include "ignis/base/host_tensor.h"
#include "ignis/tensor/tensor.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ignis::fuzz {

/// A tensor of a random graph with what its values are known to be.
struct Value {
  tensor::Tensor tensor;
  double bound = 0;  ///< floats: no element is larger in magnitude
  double error =
      0;  ///< floats: how far any right answer may be from the exact one; 0: all are equal
  bool is_integral = false;  ///< floats: every element is a whole number
};

/// A random tensor graph: inputs with values, and the outputs to compare.
struct RandomGraph {
  std::shared_ptr<ir::Graph> graph;
  std::vector<tensor::Tensor> inputs;
  std::vector<HostTensor> input_values;
  std::vector<Value> outputs;
  std::vector<std::string> steps;  ///< one line for each operation, for messages
};

/// The graph of a seed, cut after `max_steps` operations: the same seed with fewer steps is a prefix, which is how a
/// failing graph is made small. Operations with steps in their result (comparisons, rounding, argmax) are applied to
/// exact values only, so that every output has a bound on its error.
RandomGraph make_random_graph(uint64_t seed, int max_steps = 1000);

/// Unit roundoff of a float dtype, doubled: one operation's relative error in any legal evaluation.
double epsilon(DType dtype);

}  // namespace ignis::fuzz
