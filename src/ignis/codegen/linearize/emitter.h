#pragma once

#include "ignis/codegen/codegen.h"
#include "ignis/codegen/optimize/loop_plan.h"
#include "ignis/codegen/program.h"
#include "ignis/ir/row_chain.h"

#include <cstdint>
#include <vector>

namespace ignis::codegen {

/// Writes the program of a kernel whose values are scalar and legal for the target, following a loop plan: vectors,
/// register tiles, accumulators, edge tiles and thread bounds appear here and nowhere else.
///
/// The kernel's addresses are detached. `parallel_units` receives the number of independent units of the thread loops.
Result<Program> emit_program(const Kernel& kernel, const LoopPlan& plan, FloatLevel level,
                             int64_t* parallel_units);

/// One store of a chain (ir/row_chain.h).
struct ChainStage {
  ir::RowStage rows;
  Kernel kernel;
  LoopPlan plan;
  BandAxes axes;
};
/// Writes the program of a chain. Plans of stages cut nothing between threads; those that tile rows have `tile` of them.
/// `most`: the bands that buffers between stages have memory for.
Result<Program> emit_chain(const std::vector<ChainStage>& stages, const ir::Bands& bands,
                           const ir::Bands& most, int64_t tile, const Config& config);

}  // namespace ignis::codegen
