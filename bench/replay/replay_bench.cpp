// A whole replay on the CPU as a user runs it, one call and many: what the host spends on each queued call.
#include "ignis/engine/session.h"
#include "ignis/tensor/tensor.h"

#include <benchmark/benchmark.h>

#include <array>

namespace ignis {
namespace {

// A chain of additions to 16 floats, each a kernel of its own.
void BM_Replay(benchmark::State& state) {
  const auto graph = std::make_shared<ir::Graph>();
  const tensor::Tensor x = tensor::Tensor::input(graph, 0, "x", DType::Float32, {16});
  tensor::Tensor y = x;
  for (int64_t i = 0; i < state.range(0); ++i) y = tensor::contiguous(y + 1.0f);
  SessionOptions options;
  options.threads = 1;
  auto session = Session::from_graph({{"x", x}}, {{"y", y}}, options);
  if (!session || session->kernel_count() != state.range(0)) {
    return state.SkipWithError("The graph has not become one kernel an addition.");
  }
  alignas(64) std::array<float, 16> in{}, out{};
  const void* const inputs = in.data();
  void* const outputs = out.data();
  for (auto _ : state) {
    if (!session->run_raw(&inputs, &outputs)) return state.SkipWithError("A run failed.");
  }
  if (out[0] != static_cast<float>(state.range(0))) state.SkipWithError("A wrong answer.");
  state.counters["s/call"] =
      benchmark::Counter(static_cast<double>(state.iterations() * state.range(0)),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_Replay)->Arg(1)->Arg(11)->Arg(101)->UseRealTime();

}  // namespace
}  // namespace ignis
