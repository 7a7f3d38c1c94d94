#pragma once

#include "ignis/base/target.h"
#include "ignis/schedule/schedule.h"
#include "ignis/schedule/split.h"

#include <vector>

namespace ignis::schedule {

/// Long reductions to few values (the mean of a plane for each channel) in two kernels: one value for each row first, which
/// threads compute of the rows that lie in their caches, and then those. Nothing for a target with one thread.
void split_reduces(Schedule& schedule, std::vector<Draft>& drafts, const Target& target);

}  // namespace ignis::schedule
