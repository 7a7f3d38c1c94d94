#pragma once

#include "ignis/schedule/schedule.h"

namespace ignis::schedule {

/// Joins kernels into one of several stores that runs by bands of rows, where the buffer between them is
/// read by the next kernel only, row by row through a window, and is too large to stay in L2 as a whole: an expansion,
/// its depthwise window and the projection; the scores of an attention, their softmax and the sums of values, for each batch
/// and head. A band's rows of every buffer, and the constants, fit L2 together.
void chain_rows(Schedule& schedule, const Target& target, Choice mode);

}  // namespace ignis::schedule
