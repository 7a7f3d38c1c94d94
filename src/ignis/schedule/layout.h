#pragma once

#include "ignis/schedule/schedule.h"
#include "ignis/schedule/split.h"

#include <vector>

namespace ignis::schedule {

/// Replaces a range that is only used through `range / c` and `range % c` by two ranges, so that addresses become
/// affine again (a reshape between a reduce and its epilogue, a flatten before a matrix product).
void split_modular_ranges(ir::Graph& graph, Draft& draft);

/// Chooses the physical layout of every buffer the schedule owns, and inserts what that needs:
///  - buffers at convolutions and pools go channels-last; those connected to them by elementwise kernels follow;
///  - padding of a window becomes a halo of zeros around the buffer, so that inner loops have no gate;
///  - constant operands of contractions are re-laid once at load into the panels the register tile reads (Pack);
///  - an operand computed at run time whose vector axis is not contiguous is copied into panels before its kernel;
///  - graph inputs and outputs keep their row-major form: copies stand at the border where a kernel needs another.
///  - convolutions for which it pays are rewritten as Winograd's products (winograd.h).
/// Reduce ranges are put into loop order (largest stride of the streamed operand outermost).
void choose_layouts(Schedule& schedule, std::vector<Draft>& drafts, const Target& target,
                    const Options& options);

}  // namespace ignis::schedule
