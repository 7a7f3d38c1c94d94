#pragma once

#include "ignis/base/target.h"
#include "ignis/ir/graph.h"
#include "ignis/ir/rule.h"

#include <span>
#include <string_view>
#include <vector>

namespace ignis::opt {

struct PassOptions {
  FloatLevel level = FloatLevel::Strict;
  ir::RuleStats stats;  ///< added up over the passes that count
};

using Roots = std::vector<ir::Node>;

/// One named pass: the roots of the parsed text to other roots.
struct Pass {
  std::string_view name;
  std::string_view help;
  Result<Roots> (*run)(ir::Graph& graph, const Roots& roots, PassOptions& options);
};

/// Every pass by name. New passes are added to the table in passes.cpp.
std::span<const Pass> passes();
/// Null when there is none of that name.
const Pass* find_pass(std::string_view name);

}  // namespace ignis::opt
