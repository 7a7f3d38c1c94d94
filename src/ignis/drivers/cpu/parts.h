#pragma once

#include <cstdint>

namespace ignis::cpu {

/// Nanoseconds that one core takes for so many operations and bytes, as an estimate; at least 1, and 0 when nothing is known
/// (both 0).
uint64_t estimate_ns(double flops, double bytes);

/// A run of so little work is not worth waking a thread for; one whose work is not known (0) may be.
bool is_short_run(uint64_t work_ns);

/// Parts that a call of `work_ns` (0: not known) is cut into: no more than `max_parts` and `threads`, each worth handing over.
int64_t choose_parts(int64_t max_parts, uint64_t work_ns, int threads);

}  // namespace ignis::cpu
