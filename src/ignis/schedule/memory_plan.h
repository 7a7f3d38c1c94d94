#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ignis::schedule {

/// A temporary buffer's life: from the kernel that first writes it to the last that touches it, both included.
struct Lifetime {
  int first = 0, last = 0;
  int64_t size_bytes = 0;
  /// Buffers of one non-empty class share memory only among themselves: their halos are the same bytes, zero from the
  /// start and never written.
  std::string exclusive_class;
  int64_t offset = -1;  ///< result
};

/// Places buffers whose lives overlap at disjoint, 64-byte aligned offsets; returns the arena's size.
/// Largest first, each in the middle of an earlier one or at the lowest offset that fits: offline, so better than any
/// allocator that sees them in time order. In-place reuse (an input dying where an output is born) is not assumed: kernels may read late.
int64_t plan_memory(std::vector<Lifetime>& lifetimes);

}  // namespace ignis::schedule
