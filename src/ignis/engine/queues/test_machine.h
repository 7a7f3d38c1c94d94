#pragma once

// Runs schedules and templates on bytes: the schedule in order, the template as devices would, in an order drawn at random.

#include "ignis/engine/queues/test_world.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ignis::engine {

/// The memory of a schedule's buffers.
struct TestMemory {
  using Lanes = std::vector<std::vector<uint8_t>>;
  std::vector<Lanes> buffers;
  /// By buffer: the buffer whose bytes it uses, from which byte on. Empty: each its own.
  std::vector<std::pair<int, uint64_t>> bindings;

  Lanes& operator[](size_t buffer) { return buffers[buffer]; }
  const Lanes& operator[](size_t buffer) const { return buffers[buffer]; }
  /// Where a range lies really.
  exec::BufferRange bound(exec::BufferRange range) const;
};

/// Memory with bytes that differ from place to place.
TestMemory filled_memory(const std::vector<exec::ScheduleBuffer>& buffers);

/// The schedule's calls one after the other, each for all of its lanes: what every order of a template must come to.
void run_in_order(const exec::Schedule& schedule, TestMemory& memory);

/// The template as devices run it: batches are in flight while later steps are submitted, as far as `after` and the timelines
/// allow; a hardware queue takes batches first in, first out; a call reads when it starts and writes when it completes.
/// Returns what went wrong: nothing can go on.
std::optional<std::string> run_in_flight(const exec::QueueTemplate& made, const DeviceTable& table,
                                         TestMemory& memory, std::mt19937_64& rng);

}  // namespace ignis::engine
