// What a replay's check of its inputs costs. Budget: 2 us for 8 inputs (capture spec 6).

#include "ignis/engine/capture/inputs.h"

#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <vector>

namespace ignis {
namespace {

/// `count` images of four dimensions, the first of which is a variable.
struct Images {
  std::array<exec::InputDevice, 1> devices = {exec::InputDevice{"CUDA", 1}};
  std::array<exec::SymbolicNumber, 4> shape = {
      exec::SymbolicNumber{2, "batch", 1, 8}, {3}, {224}, {224}};
  std::array<exec::SymbolicNumber, 4> strides = {exec::SymbolicNumber{150528}, {50176}, {224}, {1}};
  std::array<exec::VariableBinding, 1> variables = {exec::VariableBinding{"batch", 2, 1, 8}};
  std::vector<engine::ArgumentValue> arguments;

  explicit Images(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      engine::TensorArgument tensor;
      tensor.tensor = tensor.base = i + 1;
      tensor.variables = variables;
      tensor.description.devices = devices;
      tensor.description.layout = "RGB planar 224x224 stride 224";
      tensor.description.shape = shape;
      tensor.description.strides = strides;
      tensor.description.size_bytes = {1204224, "602112*batch", 602112, 4816896};
      tensor.description.base_bytes = 4816896;
      tensor.description.alignment_bytes = 256;
      arguments.emplace_back(tensor);
    }
  }
};

void check_signature(benchmark::State& state) {
  const Images images(static_cast<size_t>(state.range(0)));
  engine::InputCollector collector;
  if (!collector.collect(images.arguments)) state.SkipWithError("refused");
  const exec::Signature signature = collector.make_signature();
  for (auto _ : state) {
    benchmark::DoNotOptimize(signature.check(collector.inputs(), collector.variables()));
  }
}
BENCHMARK(check_signature)->Arg(1)->Arg(8)->Arg(64);

void collect_and_check(benchmark::State& state) {
  const Images images(static_cast<size_t>(state.range(0)));
  engine::InputCollector collector;
  if (!collector.collect(images.arguments)) state.SkipWithError("refused");
  const exec::Signature signature = collector.make_signature();
  for (auto _ : state) {
    benchmark::DoNotOptimize(collector.collect(images.arguments));
    benchmark::DoNotOptimize(signature.check(collector.inputs(), collector.variables()));
  }
}
BENCHMARK(collect_and_check)->Arg(1)->Arg(8)->Arg(64);

}  // namespace
}  // namespace ignis

BENCHMARK_MAIN();
