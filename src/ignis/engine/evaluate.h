#pragma once

#include "ignis/base/host_tensor.h"
#include "ignis/base/target.h"
#include "ignis/schedule/schedule.h"
#include "ignis/tensor/core.h"

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ignis {

class ProgramCache;

struct EvaluateOptions {
  std::string device = "cpu";  ///< SPEC: "cpu", "cpu:llvm:sse2", "cpu:c", "cpu:interp"
  int threads = 0;             ///< 0: what the affinity mask and the cgroup quota allow
  FloatLevel float_level = FloatLevel::Finite;
  Choice winograd = Choice::Auto;
  bool choose_layouts = true;   ///< off: every buffer is row-major
  bool fuse = true;             ///< off: a kernel for each elementwise and reduce node
  Choice chain = Choice::Auto;  ///< whether kernels run by bands of rows together
  bool optimize = true;         ///< off: plain loops
  bool fold_constants = true;   ///< off: what depends on constants only is compiled as well
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  /// Where compiled kernels are looked up and kept; null: every kernel is compiled.
  std::shared_ptr<ProgramCache> program_cache = nullptr;
};

/// The values of a tensor without inputs: compiled and run once.
/// Errors: InvalidArgument when it depends on an input, and as Session::load and Session::run.
Result<HostTensor> evaluate(const tensor::Tensor& value, const EvaluateOptions& options = {});

/// The values of several tensors of one graph at once. `inputs` are its inputs in slot order, with one value each.
/// Errors: InvalidArgument naming the input whose value has another dtype or shape.
Result<std::vector<HostTensor>> evaluate(std::span<const tensor::Tensor> values,
                                         std::span<const tensor::Tensor> inputs,
                                         std::span<const HostTensor> input_values,
                                         const EvaluateOptions& options = {});

}  // namespace ignis
