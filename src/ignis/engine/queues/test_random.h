#pragma once

// Random devices, schedules and batches.

#include "ignis/engine/queues/test_world.h"

#include "tests/support/seed.h"

#include <cstdint>
#include <random>

namespace ignis::engine {

using ignis::testing::test_seed;

/// 1 to 3 devices of random capabilities in `groups` peer groups at most.
void add_random_devices(TestWorld& world, int groups, std::mt19937_64& rng);

/// 2 to 6 buffers of 16 bytes on devices, on the host, or on several devices.
std::vector<exec::BufferView> add_random_buffers(TestWorld& world, std::mt19937_64& rng);

/// One batch of 1 to 7 calls of peers, each on a random queue, with views of any nesting. `world` gets its buffers.
exec::Batch random_batch(TestWorld& world, std::mt19937_64& rng);

/// A schedule of 1 to 7 calls: kernels, copies, host calls, over all devices of the world and the host. What a device cannot
/// map, it does not use in a kernel.
void add_random_calls(TestWorld& world, const std::vector<exec::BufferView>& buffers,
                      std::mt19937_64& rng);

/// IGNIS_TEST_BATCHES, or the default.
int64_t test_batches(int64_t otherwise);

}  // namespace ignis::engine
