// What the code generator makes of hand-built register tiles, and how long it takes.
//
// The tiles are those of the matrix-product recipe (docs/codegen.md): their speed is the ceiling of every
// contraction, and is to be compared with the machine's fused multiply-adds a second.

#include "ignis/codegen/codegen.h"
#include "ignis/codegen/compile/test_program.h"

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace ignis::codegen {
namespace {

using testing::LoadedImage;
using testing::TileShape;

struct TileCase {
  const char* name;
  Isa isa;
  TileShape shape;
};

const std::vector<TileCase>& tiles() {
  static const std::vector<TileCase> list = {
      {"sse2_2x16", Isa::Sse2, {2, 16, 256, 1, 4}},
      {"avx2_6x16", Isa::Avx2, {6, 16, 256, 1, 8}},
      {"avx2_6x16_u4", Isa::Avx2, {6, 16, 256, 4, 8}},
      {"avx2_4x24", Isa::Avx2, {4, 24, 256, 1, 8}},
      {"avx512_14x32", Isa::Avx512, {14, 32, 256, 1, 16}},
      {"avx512_8x48", Isa::Avx512, {8, 48, 256, 1, 16}},
      {"neon_8x12", Isa::Neon, {8, 12, 256, 1, 4}},
  };
  return list;
}

void run_tile(benchmark::State& state, const TileCase& tile) {
  if (!testing::machine_has(tile.isa)) return state.SkipWithError("not on this machine");
  const auto image = compile_llvm(tile_program(tile.shape), make_target(tile.isa));
  if (!image) return state.SkipWithError(image.error().to_string().c_str());
  const auto loaded = LoadedImage::load(*image);
  if (!loaded) return state.SkipWithError(loaded.error().to_string().c_str());
  const auto& [rows, columns, depth, unroll, lanes] = tile.shape;
  std::vector<float> c(static_cast<size_t>(rows * columns)),
      a(static_cast<size_t>(rows * depth), 1.0f), b(static_cast<size_t>(depth * columns), 1.0f);
  for (auto step : state) loaded->run({c.data(), a.data(), b.data()});
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * static_cast<double>(rows * columns * depth),
                                                benchmark::Counter::kIsIterationInvariantRate,
                                                benchmark::Counter::kIs1000);
}

void compile_tile(benchmark::State& state, const TileCase& tile) {
  const Program program = tile_program(tile.shape);
  const Target target = make_target(tile.isa);
  for (auto step : state) {
    auto image = compile_llvm(program, target);
    benchmark::DoNotOptimize(image);
  }
  state.counters["nodes"] = static_cast<double>(program.list.size());
}

void register_all() {
  for (const TileCase& tile : tiles()) {
    const std::string name = tile.name;
    benchmark::RegisterBenchmark(("run/" + name).c_str(),
                                 [&tile](benchmark::State& s) { run_tile(s, tile); });
    benchmark::RegisterBenchmark(("compile/" + name).c_str(), [&tile](benchmark::State& s) {
      compile_tile(s, tile);
    })->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace ignis::codegen

int main(int argc, char** argv) {
  ignis::codegen::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
