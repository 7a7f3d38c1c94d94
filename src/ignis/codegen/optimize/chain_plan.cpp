#include "ignis/codegen/optimize/chain_plan.h"

namespace ignis::codegen {

Result<ChainActions> split_chain_actions(const std::vector<std::string>& actions, size_t stages,
                                         const ir::Bands& most) {
  ChainActions split;
  split.bands = most;
  split.stages.resize(stages);
  size_t stage = 0;
  bool has_begun = false, has_bands = false;
  for (const std::string& text : actions) {
    const Error bad(ErrorCode::InvalidArgument,
                    "'" + text + "' has no place in the actions of a chain of " +
                        std::to_string(stages) + " stores.",
                    "IllegalAction");
    IGNIS_TRY_ASSIGN(const ParsedAction action, parse_action(text));
    if (has_bands) return bad;
    if (action.name == "STORE") {
      const size_t next = has_begun ? stage + 1 : 0;
      if (action.args.size() != 1 || action.args[0] != static_cast<int64_t>(next) || next >= stages)
        return bad;
      stage = next;
      has_begun = true;
    } else if (action.name == "BAND") {
      if (action.args.size() != 2 || action.args[0] < 1 || action.args[1] < 1 ||
          action.args[0] > most.rows || action.args[1] > most.units)
        return bad;
      split.bands = {action.args[0], action.args[1]};
      has_bands = true;
    } else {
      if (!has_begun) return bad;
      split.stages[stage].push_back(text);
    }
  }
  return split;
}

std::vector<std::string> join_chain_actions(const std::vector<std::vector<std::string>>& stages,
                                            const ir::Bands& bands) {
  std::vector<std::string> actions;
  for (size_t i = 0; i < stages.size(); ++i) {
    actions.push_back("STORE(" + std::to_string(i) + ")");
    actions.insert(actions.end(), stages[i].begin(), stages[i].end());
  }
  actions.push_back("BAND(" + std::to_string(bands.rows) + "," + std::to_string(bands.units) + ")");
  return actions;
}

Status verify_band(const Kernel& kernel, const LoopPlan& plan, const BandAxes& band) {
  const auto bad = [](int axis) {
    return Error(ErrorCode::InvalidArgument,
                 "Axis " + std::to_string(axis) +
                     " is walked by bands of a chain: no tile, SEGMENT or THREAD may take it"
                     " but a TILE_REG of rows that fits a band.",
                 "IllegalAction");
  };
  const auto extent = [&](int axis) { return kernel.axes()[static_cast<size_t>(axis)].extent; };
  if (!plan.thread_axes.empty()) return bad(plan.thread_axes[0]);
  if (band.holds(plan.vector_axis)) return bad(plan.vector_axis);
  if (band.holds(plan.tile_axis) && (plan.tile_axis != band.rows || plan.transposes ||
                                     cover(extent(band.rows), plan.tile).size > band.most_tile))
    return bad(plan.tile_axis);
  for (const LoopPlan::Loop& loop : plan.loops)
    if (band.holds(loop.axis) && loop.chunk != 0) return bad(loop.axis);
  for (const LoopPlan::Segment& segment : plan.segments)
    if (band.holds(segment.axis)) return bad(segment.axis);
  return Status::ok();
}

}  // namespace ignis::codegen
