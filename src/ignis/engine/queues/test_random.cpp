#include "ignis/engine/queues/test_random.h"

#include "ignis/engine/queues/enqueue.h"

#include <algorithm>
#include <cstdlib>

namespace ignis::engine {
namespace {

bool chance(std::mt19937_64& rng, int percent) { return static_cast<int>(rng() % 100) < percent; }

exec::BufferView reinterpret_as(exec::BufferView view, int item_bytes) {
  exec::ViewStep step;
  step.kind = exec::ViewStep::Kind::Reinterpret;
  step.item_bytes = item_bytes;
  view.steps.push_back(step);
  return view;
}

/// A part of `view` in items of `item_bytes`, reached by one step or by several.
exec::BufferView random_part(const exec::BufferView& view, int64_t begin, int64_t end,
                             int item_bytes, std::mt19937_64& rng) {
  exec::BufferView part = view;
  if (item_bytes > 1) part = reinterpret_as(part, item_bytes);
  if (chance(rng, 50)) return slice(part, begin, end);
  const int64_t outer = begin - static_cast<int64_t>(rng() % static_cast<uint64_t>(begin + 1));
  part = slice(part, outer, end);
  return slice(part, begin - outer, end - outer);
}

exec::BufferView random_view(const TestWorld& world, const exec::BufferView& buffer,
                             bool keeps_lanes, std::mt19937_64& rng) {
  const auto lanes = world.schedule.buffers[static_cast<size_t>(buffer.buffer)].devices.size();
  const bool selects = lanes > 1 && !keeps_lanes;
  const int lane = static_cast<int>(rng() % lanes);
  exec::BufferView view = buffer;
  const bool selects_first = chance(rng, 50);
  if (selects && selects_first) view = select_lane(view, lane);
  const int item = chance(rng, 30) ? 4 : 1;
  const int64_t count = 16 / item;
  const int64_t begin = static_cast<int64_t>(rng() % static_cast<uint64_t>(count));
  const int64_t end =
      begin + static_cast<int64_t>(rng() % static_cast<uint64_t>(count - begin + 1));
  view = random_part(view, begin, end, item, rng);
  if (selects && !selects_first) view = select_lane(view, lane);
  return view;
}

/// Whether the device that a kernel comes to reaches all of it.
bool is_reachable(const TestWorld& world, const exec::ScheduleCall& call) {
  std::vector<exec::BufferRange> ranges;
  int lanes = 1;
  for (const exec::BufferView& view : call.arguments) {
    ranges.push_back(resolve_view(world.schedule.buffers, view).value());
    if (ranges.back().lane == exec::kAllLanes) {
      lanes =
          static_cast<int>(world.schedule.buffers[static_cast<size_t>(view.buffer)].devices.size());
    }
  }
  for (int lane = 0; lane < lanes; ++lane) {
    std::vector<exec::BufferRange> of_lane = ranges;
    for (exec::BufferRange& range : of_lane) {
      if (range.lane == exec::kAllLanes) range.lane = lane;
    }
    const auto device = choose_device(world.table, world.schedule.buffers, call.kind, of_lane);
    if (!device) continue;
    for (const exec::BufferRange& range : of_lane) {
      const auto& buffer = world.schedule.buffers[static_cast<size_t>(range.buffer)];
      if (!can_reach(world.table, world.hooks, *device, buffer, range.lane).value()) return false;
    }
  }
  return true;
}

void add_random_kernel(TestWorld& world, const std::vector<exec::BufferView>& buffers,
                       std::mt19937_64& rng) {
  std::vector<exec::BufferView> writes, reads;
  size_t lanes = 1;
  for (uint64_t i = 0; i <= rng() % 3; ++i) {
    const exec::BufferView& buffer = buffers[rng() % buffers.size()];
    const size_t count = world.schedule.buffers[static_cast<size_t>(buffer.buffer)].devices.size();
    const bool keeps_lanes = count > 1 && (lanes == 1 || lanes == count) && chance(rng, 50);
    if (keeps_lanes) lanes = count;
    (chance(rng, 50) ? writes : reads).push_back(random_view(world, buffer, keeps_lanes, rng));
  }
  exec::ScheduleCall& call = world.kernel(writes, reads);
  if (chance(rng, 10)) call.wants_signal = true;
  if (!is_reachable(world, call)) world.schedule.calls.pop_back();
}

void add_random_copy(TestWorld& world, const std::vector<exec::BufferView>& buffers,
                     std::mt19937_64& rng) {
  const int item = chance(rng, 30) ? 4 : 1;
  const auto count = static_cast<uint64_t>(16 / item);
  const auto size = static_cast<int64_t>(rng() % (count + 1));
  const auto pick = [&] {
    exec::BufferView view = buffers[rng() % buffers.size()];
    const auto lanes = world.schedule.buffers[static_cast<size_t>(view.buffer)].devices.size();
    if (lanes > 1) view = select_lane(view, static_cast<int>(rng() % lanes));
    const auto begin = static_cast<int64_t>(rng() % (count - static_cast<uint64_t>(size) + 1));
    return random_part(view, begin, begin + size, item, rng);
  };
  const exec::BufferView to = pick(), from = pick();
  if (to.buffer == from.buffer) return;  // what a copy over itself comes to is nobody's promise
  world.copy(to, from);
}

}  // namespace

void add_random_devices(TestWorld& world, int groups, std::mt19937_64& rng) {
  const uint64_t count = 1 + rng() % 3;
  for (uint64_t i = 0; i < count; ++i) {
    auto& device =
        world.device("D" + std::string(1, static_cast<char>('A' + i)), static_cast<int>(rng() % 4));
    device.peer_group = "P" + std::to_string(rng() % static_cast<uint64_t>(groups));
    device.is_in_order = !chance(rng, 25);
    device.chains_launches = chance(rng, 25);
    device.has_network_card = chance(rng, 60);
    device.has_unified_memory = chance(rng, 10);
  }
}

std::vector<exec::BufferView> add_random_buffers(TestWorld& world, std::mt19937_64& rng) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : world.table.devices) names.push_back(name);
  std::vector<exec::BufferView> buffers;
  const uint64_t count = 2 + rng() % 5;
  for (uint64_t i = 0; i < count; ++i) {
    std::vector<std::string> devices = names;
    if (chance(rng, 25)) {
      devices = {"CPU"};
    } else if (!chance(rng, 20)) {
      devices = {names[rng() % names.size()]};
    }
    buffers.push_back(world.buffer("b" + std::to_string(i), devices));
  }
  return buffers;
}

exec::Batch random_batch(TestWorld& world, std::mt19937_64& rng) {
  add_random_devices(world, 1, rng);
  for (auto& [name, device] : world.table.devices) device.copy_queues = 2;
  const std::vector<exec::BufferView> buffers = add_random_buffers(world, rng);
  std::vector<std::string> names;
  for (const auto& [name, unused] : world.table.devices) names.push_back(name);
  std::vector<PlacedCall> calls;
  std::vector<int> group;
  const uint64_t count = 1 + rng() % 7;
  for (uint64_t i = 0; i < count; ++i) {
    PlacedCall placed;
    placed.call.name = std::to_string(i);
    placed.device = names[rng() % names.size()];
    const bool is_copy = chance(rng, 45);
    placed.call.kind = is_copy ? exec::CallKind::Copy : exec::CallKind::Program;
    const uint64_t arguments = is_copy ? 2 : 1 + rng() % 3;
    for (uint64_t k = 0; k < arguments; ++k) {
      const exec::BufferView view =
          random_view(world, buffers[rng() % buffers.size()], chance(rng, 20), rng);
      placed.call.arguments.push_back(resolve_view(world.schedule.buffers, view).value());
      const bool is_out = is_copy ? k == 0 : chance(rng, 50);
      (is_out ? placed.call.outs : placed.call.ins).push_back(static_cast<int>(k));
    }
    placed.call.is_marked = chance(rng, 10);
    group.push_back(static_cast<int>(calls.size()));
    calls.push_back(std::move(placed));
  }
  exec::Batch batch = make_batch(world.table, QueueChoice(), world.schedule.buffers, calls, group);
  for (exec::BatchCall& call : batch.calls) {
    if (call.kind == exec::CallKind::Copy) call.queue.index = static_cast<int>(rng() % 2);
  }
  return batch;
}

void add_random_calls(TestWorld& world, const std::vector<exec::BufferView>& buffers,
                      std::mt19937_64& rng) {
  const uint64_t count = 1 + rng() % 7;
  for (uint64_t i = 0; i < count; ++i) {
    if (chance(rng, 40)) {
      add_random_copy(world, buffers, rng);
    } else {
      add_random_kernel(world, buffers, rng);
      if (chance(rng, 8) && !world.schedule.calls.empty() &&
          world.schedule.calls.back().kind == exec::CallKind::Program) {
        world.schedule.calls.back().kind = exec::CallKind::Other;
      }
    }
  }
}

int64_t test_batches(int64_t otherwise) {
  const char* text = std::getenv("IGNIS_TEST_BATCHES");
  return text != nullptr ? std::strtoll(text, nullptr, 10) : otherwise;
}

}  // namespace ignis::engine
