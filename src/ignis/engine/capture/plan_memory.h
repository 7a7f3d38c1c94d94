#pragma once

#include "ignis/base/result.h"
#include "ignis/exec/schedule.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ignis::engine {

/// Sizes and offsets in an arena are multiples of it.
inline constexpr uint64_t kPlanBlockBytes = 256;

struct MemoryPlanOptions {
  bool is_enabled = true;  ///< false: every buffer keeps memory of its own
  /// Buffers that something outside of the calls reaches: they have storage, or a live tensor holds them, or one-time calls
  /// wrote them. Inputs and buffers with memory are held in any case.
  std::vector<int> held;
  std::vector<std::string> devices_without_views;  ///< canonical names
};

/// Where a buffer lies, and from when to when.
struct PlannedBuffer {
  int buffer = 0;
  int arena = 0;
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;  ///< rounded up
  int64_t first = 0,
          free_at = 0;  ///< calls [first, free_at); a copy's buffer is held twice as long
};

/// One block of memory on each of its devices.
struct PlannedArena {
  std::vector<std::string> devices;  ///< as ScheduleBuffer::devices
  bool is_for_copies = false;
  uint64_t size_bytes = 0;       ///< on each device
  uint64_t unplanned_bytes = 0;  ///< what its buffers would take one by one, rounded up
};

struct MemoryPlan {
  std::vector<PlannedArena> arenas;
  std::vector<PlannedBuffer> buffers;  ///< by buffer number
  /// By device in name order: arenas, and buffers that were not planned and have no memory yet. Known before anything is
  /// allocated; memory of implicit inputs and of the caller is not in it.
  std::vector<std::pair<std::string, uint64_t>> peak_bytes;
};

/// Lets buffers whose lives do not meet share memory (capture spec 8): two arenas for each list of devices, one of them for
/// buffers of copies, so that a copy does not wait for kernels that once used its bytes. Equal schedules give equal plans: places
/// are taken in the order of first use or of size, whichever makes the arena smaller, ties by first use, then size, then index,
/// each at the lowest offset that fits.
///
/// Errors: InvalidArgument with the reason BadSchedule for numbers that name nothing, sizes whose sum has no 63 bits.
Result<MemoryPlan> plan_memory(const exec::Schedule& schedule,
                               const MemoryPlanOptions& options = {});

/// The schedule with planned buffers as views of their arenas, which are its last buffers. Numbers of buffers stay.
exec::Schedule apply_memory_plan(const exec::Schedule& schedule, const MemoryPlan& plan);

}  // namespace ignis::engine
