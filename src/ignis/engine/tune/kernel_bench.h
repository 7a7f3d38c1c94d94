#pragma once

#include "ignis/base/compare.h"
#include "ignis/codegen/codegen.h"
#include "ignis/engine/tune/search.h"
#include "ignis/runtime/device.h"
#include "ignis/schedule/schedule.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace ignis::engine {

/// What a result computed in another order is held to: a share of the tensor's largest value; integers are exact.
Tolerance tolerance_of(const HostTensor& want);
/// Floats in [-1, 1) or [0.25, 1.25), integers in [0, 10).
void store_random(HostTensor& tensor, int64_t index, std::mt19937_64& random, bool is_signed);

/// One kernel of a schedule with memory of its own: compiles it one way or another, checks its numbers and times it.
/// What it reads is random: once numbers of both signs, once positive ones only.
class KernelBench {
 public:
  /// The reference is the same kernel as it stands, loop by loop, without vectors, tiles or regrouped sums.
  /// Errors: OutOfMemory; as codegen::lower and Device::run for the reference.
  static Result<KernelBench> create(const schedule::Schedule& schedule, size_t kernel,
                                    const codegen::Config& config,
                                    const std::shared_ptr<runtime::Device>& device);

  /// One way to compile it.
  struct Made {
    ProgramImage image;
    std::shared_ptr<const runtime::Program> program;
    int64_t parts = 1;
  };
  /// `has_fault`: for tests, a program that stores wrong numbers. Any thread may call it.
  /// Errors: as codegen::lower, compile_llvm and Device::load.
  Result<Made> make(const std::vector<std::string>& actions, bool has_fault = false) const;
  /// Errors: Internal "WrongNumbers" naming the first element that differs from the reference.
  Status check(const Made& made);
  /// Runs it `count` times; what one took, in ns. Errors: as Device::run.
  Result<double> time_ns(const Made& made, int count);

 private:
  KernelBench(const schedule::Schedule& schedule, size_t kernel, codegen::Config config,
              std::shared_ptr<runtime::Device> device);
  std::vector<std::byte> random_values(const schedule::Buffer& buffer, bool is_signed) const;
  void fill(bool is_signed);
  Status run(const Made& made, int count);
  std::vector<HostTensor> written() const;

  const schedule::Schedule* schedule_;
  const schedule::Kernel* kernel_;
  codegen::Config config_;
  std::shared_ptr<runtime::Device> device_;
  std::vector<runtime::DeviceMemory>
      memory_;                   // by slot; empty where a slot's buffer has an earlier slot
  std::vector<void*> pointers_;  // by slot
  std::vector<std::vector<std::byte>>
      values_[2];                        // by slot: positive numbers, numbers of both signs
  std::vector<HostTensor> expected_[2];  // storage of the written slots, with its padding
};

}  // namespace ignis::engine
