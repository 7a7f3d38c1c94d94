#include "ignis/engine/capture/plan_memory.h"

#include "ignis/base/math.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>

namespace ignis::engine {
namespace {

using exec::BufferView;
using exec::Schedule;
using exec::ScheduleBuffer;
using exec::ViewStep;

/// What the calls say of a buffer.
struct Life {
  int64_t first = -1, last = -1;  ///< calls; -1: none names it
  bool is_copied = false;
  bool is_fixed = false;  ///< cannot lie in an arena
};

std::optional<uint64_t> round_up(uint64_t size_bytes) {
  const auto padded = checked_add(size_bytes, kPlanBlockBytes - 1);
  if (!padded) return std::nullopt;
  return *padded / kPlanBlockBytes * kPlanBlockBytes;
}

/// An element must not lie across two places of its item's grid, whatever offset the buffer gets.
bool has_odd_item(const BufferView& view) {
  const auto is_odd = [](int item_bytes) {
    return item_bytes <= 0 || kPlanBlockBytes % static_cast<uint64_t>(item_bytes) != 0;
  };
  return is_odd(view.item_bytes) ||
         std::any_of(view.steps.begin(), view.steps.end(), [&](const ViewStep& step) {
           return step.kind == ViewStep::Kind::Reinterpret && is_odd(step.item_bytes);
         });
}

Error bad_schedule(const std::string& what) {
  return Error(ErrorCode::InvalidArgument, what, "BadSchedule");
}

Result<std::vector<Life>> find_lives(const Schedule& schedule, const MemoryPlanOptions& options) {
  std::vector<Life> lives(schedule.buffers.size());
  for (size_t i = 0; i < lives.size(); ++i) {
    const ScheduleBuffer& buffer = schedule.buffers[i];
    const auto has_no_views = [&](const std::string& device) {
      const auto& names = options.devices_without_views;
      return std::find(names.begin(), names.end(), device) != names.end();
    };
    lives[i].is_fixed = buffer.input >= 0 || buffer.variable >= 0 || !buffer.memory.empty() ||
                        buffer.is_wire || !buffer.stage_for.empty() || buffer.size_bytes == 0 ||
                        buffer.devices.empty() ||
                        std::any_of(buffer.devices.begin(), buffer.devices.end(), has_no_views);
  }
  for (const int held : options.held) {
    if (held < 0 || static_cast<size_t>(held) >= lives.size()) {
      return bad_schedule("Buffer " + std::to_string(held) + " is held; there are " +
                          std::to_string(lives.size()) + ".");
    }
    lives[static_cast<size_t>(held)].is_fixed = true;
  }
  for (size_t call = 0; call < schedule.calls.size(); ++call) {
    for (const BufferView& view : schedule.calls[call].arguments) {
      if (view.buffer < 0 || static_cast<size_t>(view.buffer) >= lives.size()) {
        return bad_schedule("Call '" + schedule.calls[call].name + "' names buffer " +
                            std::to_string(view.buffer) + " of " + std::to_string(lives.size()) +
                            ".");
      }
      Life& life = lives[static_cast<size_t>(view.buffer)];
      if (life.first < 0) life.first = static_cast<int64_t>(call);
      life.last = static_cast<int64_t>(call);
      life.is_copied |= schedule.calls[call].kind == exec::CallKind::Copy;
      life.is_fixed |= has_odd_item(view);
    }
  }
  return lives;
}

using Order = bool (*)(const PlannedBuffer&, const PlannedBuffer&);

bool by_first_use(const PlannedBuffer& a, const PlannedBuffer& b) {
  return std::tuple(a.first, b.size_bytes, a.buffer) < std::tuple(b.first, a.size_bytes, b.buffer);
}
bool by_size(const PlannedBuffer& a, const PlannedBuffer& b) {
  return std::tuple(b.size_bytes, a.first, a.buffer) < std::tuple(a.size_bytes, b.first, b.buffer);
}

/// Places `buffers` of one arena in `order`; the arena's size, which the sum of their sizes bounds.
uint64_t place(std::vector<PlannedBuffer>& buffers, Order order) {
  std::sort(buffers.begin(), buffers.end(), order);
  uint64_t arena_bytes = 0;
  std::vector<std::pair<uint64_t, uint64_t>> taken;
  for (size_t i = 0; i < buffers.size(); ++i) {
    PlannedBuffer& buffer = buffers[i];
    taken.clear();
    for (size_t k = 0; k < i; ++k) {
      const PlannedBuffer& other = buffers[k];
      if (other.first < buffer.free_at && buffer.first < other.free_at) {
        taken.emplace_back(other.offset_bytes, other.offset_bytes + other.size_bytes);
      }
    }
    std::sort(taken.begin(), taken.end());
    uint64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (begin >= offset + buffer.size_bytes) break;
      offset = std::max(offset, end);
    }
    buffer.offset_bytes = offset;
    arena_bytes = std::max(arena_bytes, offset + buffer.size_bytes);
  }
  return arena_bytes;
}

/// The better of two orders, which are both good: size for buffers of unlike sizes, time for chains.
uint64_t place_well(std::vector<PlannedBuffer>& buffers) {
  std::vector<PlannedBuffer> other = buffers;
  const uint64_t in_time = place(buffers, by_first_use);
  const uint64_t in_size = place(other, by_size);
  if (in_size >= in_time) return in_time;
  buffers = std::move(other);
  return in_size;
}

}  // namespace

Result<MemoryPlan> plan_memory(const Schedule& schedule, const MemoryPlanOptions& options) {
  IGNIS_TRY_ASSIGN(const std::vector<Life> lives, find_lives(schedule, options));
  // Arenas are numbered in the order of the first buffer that lies in each.
  std::map<std::pair<std::vector<std::string>, bool>, size_t> arena_of;
  std::vector<std::vector<PlannedBuffer>> members;
  std::map<std::string, uint64_t> peak;
  MemoryPlan plan;
  uint64_t total = 0;  // of everything: no sum below can be larger
  for (size_t i = 0; i < lives.size(); ++i) {
    const Life& life = lives[i];
    const ScheduleBuffer& buffer = schedule.buffers[i];
    if (life.first < 0 || buffer.input >= 0 || buffer.variable >= 0 || !buffer.memory.empty()) {
      continue;
    }
    const auto rounded = round_up(buffer.size_bytes);
    const auto lanes = static_cast<uint64_t>(buffer.devices.size());
    const auto on_all = rounded ? checked_mul(*rounded, lanes) : std::nullopt;
    const auto sum = on_all ? checked_add(total, *on_all) : std::nullopt;
    if (!sum || *sum > static_cast<uint64_t>(INT64_MAX)) {
      return bad_schedule("Buffer '" + buffer.name + "' of " + std::to_string(buffer.size_bytes) +
                          " bytes makes more than 2^63 bytes with those before it.");
    }
    total = *sum;
    if (life.is_fixed || !options.is_enabled) {
      for (const std::string& device : buffer.devices) peak[device] += *rounded;
      continue;
    }
    const auto [at, is_new] =
        arena_of.emplace(std::pair(buffer.devices, life.is_copied), plan.arenas.size());
    if (is_new) {
      plan.arenas.push_back({buffer.devices, life.is_copied, 0, 0});
      members.emplace_back();
    }
    plan.arenas[at->second].unplanned_bytes += *rounded;
    const int64_t calls = life.last - life.first + 1;
    members[at->second].push_back({static_cast<int>(i), static_cast<int>(at->second), 0, *rounded,
                                   life.first, life.last + 1 + (life.is_copied ? calls : 0)});
  }
  for (size_t i = 0; i < members.size(); ++i) {
    plan.arenas[i].size_bytes = place_well(members[i]);
    for (const std::string& device : plan.arenas[i].devices) {
      peak[device] += plan.arenas[i].size_bytes;
    }
    plan.buffers.insert(plan.buffers.end(), members[i].begin(), members[i].end());
  }
  std::sort(plan.buffers.begin(), plan.buffers.end(),
            [](const PlannedBuffer& a, const PlannedBuffer& b) { return a.buffer < b.buffer; });
  plan.peak_bytes.assign(peak.begin(), peak.end());
  return plan;
}

Schedule apply_memory_plan(const Schedule& schedule, const MemoryPlan& plan) {
  Schedule result = schedule;
  const auto first_arena = static_cast<int>(result.buffers.size());
  for (size_t i = 0; i < plan.arenas.size(); ++i) {
    ScheduleBuffer arena;
    arena.name =
        std::string(plan.arenas[i].is_for_copies ? "copy_arena_" : "arena_") + std::to_string(i);
    arena.devices = plan.arenas[i].devices;
    arena.size_bytes = plan.arenas[i].size_bytes;
    result.buffers.push_back(std::move(arena));
  }
  std::vector<const PlannedBuffer*> planned(schedule.buffers.size());
  for (const PlannedBuffer& buffer : plan.buffers) {
    planned[static_cast<size_t>(buffer.buffer)] = &buffer;
  }
  for (exec::ScheduleCall& call : result.calls) {
    for (BufferView& view : call.arguments) {
      const PlannedBuffer* at = planned[static_cast<size_t>(view.buffer)];
      if (at == nullptr) continue;
      const uint64_t size_bytes = schedule.buffers[static_cast<size_t>(view.buffer)].size_bytes;
      ViewStep slice, reinterpret;
      slice.kind = ViewStep::Kind::Slice;
      slice.begin = static_cast<int64_t>(at->offset_bytes);
      slice.end = static_cast<int64_t>(at->offset_bytes + size_bytes);
      reinterpret.kind = ViewStep::Kind::Reinterpret;
      reinterpret.item_bytes = view.item_bytes;
      view.buffer = first_arena + at->arena;
      view.item_bytes = 1;
      view.steps.insert(view.steps.begin(), {slice, reinterpret});
    }
  }
  return result;
}

}  // namespace ignis::engine
