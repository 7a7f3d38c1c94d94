#pragma once

#include "ignis/codegen/optimize/loop_plan.h"
#include "ignis/ir/row_chain.h"

#include <string>
#include <vector>

namespace ignis::codegen {

/// The actions of a chain in text: `STORE(i)` before those of its i-th store, then `BAND(rows,units)`.
struct ChainActions {
  std::vector<std::vector<std::string>> stages;
  ir::Bands bands;
};
/// `most`: what there is memory for, and what runs without a BAND. Errors: InvalidArgument naming the action.
Result<ChainActions> split_chain_actions(const std::vector<std::string>& actions, size_t stages,
                                         const ir::Bands& most);

/// The other way round.
std::vector<std::string> join_chain_actions(const std::vector<std::vector<std::string>>& stages,
                                            const ir::Bands& bands);

/// Checks a stage's plan: the rows have a plain loop or one of tiles of at most `most_tile`, the ranges around them a
/// plain one, and no loops are for threads. Errors: InvalidArgument.
Status verify_band(const Kernel& kernel, const LoopPlan& plan, const BandAxes& band);

}  // namespace ignis::codegen
