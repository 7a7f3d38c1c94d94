// What filling the words of a run takes: by the loop over records, and by a submit program with its stores in the code or in a
// table; and what compiling such a program takes.

#include "ignis/codegen/codegen.h"
#include "ignis/exec/patch.h"
#include "ignis/exec/submit_program.h"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace ignis {
namespace {

/// A stream of `calls` calls with two input addresses each, behind a wait and before a store of the timeline: the words of a
/// simulated device, 44 bytes a call.
struct Stream {
  explicit Stream(size_t calls) : bytes(64 + 44 * calls), values(18, 0x1000) {
    patches.push_back({12, 8, 16, 0});
    for (size_t i = 0; i < calls; ++i) {
      const auto at = static_cast<uint32_t>(20 + 44 * i + 28);
      patches.push_back({at, 8, static_cast<uint32_t>(i % 16), static_cast<int64_t>(64 * i)});
      patches.push_back({at + 8, 8, static_cast<uint32_t>(i * 7 % 16), 0});
    }
    patches.push_back({static_cast<uint32_t>(20 + 44 * calls + 12), 8, 17, 1});
    for (const exec::PatchRecord& patch : patches) {
      stores.push_back({0, patch.offset_bytes, patch.value, static_cast<uint8_t>(patch.width_bytes),
                        false, patch.addend});
    }
    words.add({.words = bytes, .patches = patches});
  }

  void use_program(bool is_rolled) {
    const SubmitCode code = exec::make_submit_code(stores, is_rolled);
    const exec::SubmitProgram made{
        codegen::compile_submit_program(code, detect_host_target(), "submit").value(),
        exec::hash_submit_code(code), is_rolled};
    const Status used = words.use(made, cpu->load(made.image).value());
    IGNIS_CHECK(used) << used.error().to_string();
  }

  std::shared_ptr<runtime::Device> cpu = runtime::open_device("cpu").value();
  std::vector<std::byte> bytes;
  std::vector<uint64_t> values;
  std::vector<exec::PatchRecord> patches;
  std::vector<WordStore> stores;
  exec::RunTimeWords words;
};

void fill(benchmark::State& state, Stream& stream) {
  for (auto _ : state) {
    ++stream.values[16];
    benchmark::DoNotOptimize(stream.words.fill(stream.values));
    benchmark::ClobberMemory();
  }
  state.counters["s/store"] = benchmark::Counter(
      static_cast<double>(stream.stores.size()),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void BM_Loop(benchmark::State& state) {
  Stream stream(static_cast<size_t>(state.range(0)));
  fill(state, stream);
}
void BM_StoresInCode(benchmark::State& state) {
  Stream stream(static_cast<size_t>(state.range(0)));
  stream.use_program(false);
  fill(state, stream);
}
void BM_StoresInTable(benchmark::State& state) {
  Stream stream(static_cast<size_t>(state.range(0)));
  stream.use_program(true);
  fill(state, stream);
}

void compile(benchmark::State& state, bool is_rolled) {
  const Stream stream(static_cast<size_t>(state.range(0)));
  const Target target = detect_host_target();
  size_t object_bytes = 0;
  for (auto _ : state) {
    const SubmitCode code = exec::make_submit_code(stream.stores, is_rolled);
    const auto image = codegen::compile_submit_program(code, target, "submit");
    object_bytes = image->object.size();
  }
  state.counters["object_bytes"] = static_cast<double>(object_bytes);
}
void BM_CompileStoresInCode(benchmark::State& state) { compile(state, false); }
void BM_CompileStoresInTable(benchmark::State& state) { compile(state, true); }

BENCHMARK(BM_Loop)->Arg(1)->Arg(10)->Arg(30)->Arg(100)->Arg(1'000)->Arg(50'000);
BENCHMARK(BM_StoresInCode)->Arg(1)->Arg(10)->Arg(30)->Arg(100)->Arg(1'000);
BENCHMARK(BM_StoresInTable)->Arg(1)->Arg(10)->Arg(30)->Arg(100)->Arg(1'000)->Arg(50'000);
BENCHMARK(BM_CompileStoresInCode)->Arg(1)->Arg(5)->Arg(30)->Arg(100)->Arg(500);
BENCHMARK(BM_CompileStoresInTable)->Arg(5)->Arg(500)->Arg(50'000);

}  // namespace
}  // namespace ignis
