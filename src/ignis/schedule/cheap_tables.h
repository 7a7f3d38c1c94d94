#pragma once

#include "ignis/ir/graph.h"

#include <unordered_set>
#include <vector>

namespace ignis::schedule {

/// Integers that come from constants and are better computed at each reading than once and stored: large, made of few
/// stored elements by few cheap operations, as the positions of a resampled picture are the sum of a column and a row.
/// Data would have to come from the file at each start and from memory at each run. Only integers: a contraction reads
/// its weights where they lie.
///
/// \param order  every node after its sources.
std::unordered_set<ir::Node> find_cheap_tables(const std::vector<ir::Node>& order);

}  // namespace ignis::schedule
