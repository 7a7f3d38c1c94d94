#pragma once

#include "ignis/codegen/codegen.h"
#include "ignis/interp/interp.h"
#include "ignis/schedule/schedule.h"
#include "ignis/tensor/tensor.h"

#include <random>
#include <string>
#include <vector>

namespace ignis::test {

/// Runs a schedule kernel by kernel on the host. `parts`: how many pieces each kernel is cut into.
/// `actions_of` may state the scheduling actions of a kernel by its index; empty lists leave them to the heuristics.
struct RunOptions {
  codegen::Config config;
  int parts = 3;
  std::vector<std::vector<std::string>> actions;
};
Result<std::vector<HostTensor>> run_schedule(const schedule::Schedule& schedule,
                                             const std::vector<HostTensor>& inputs,
                                             const RunOptions& options);

/// A small graph with its inputs' values.
struct Case {
  std::string name;
  std::vector<tensor::Tensor> inputs, outputs;
  std::vector<HostTensor> values;

  std::vector<ir::Node> input_nodes() const;
  std::vector<ir::Node> output_nodes() const;
  /// Values of the outputs by the interpreter.
  std::vector<HostTensor> expected() const;
};

/// Values in about [-2, 2], the same for the same seed.
HostTensor random_tensor(Shape shape, uint64_t seed, DType dtype = DType::Float32);
/// Largest |a - b| / (1 + |b|) over all elements; infinite when shapes, dtypes or NaNs differ.
double max_error(const HostTensor& a, const HostTensor& b);

}  // namespace ignis::test
