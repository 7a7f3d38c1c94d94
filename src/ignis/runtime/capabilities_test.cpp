#include "ignis/runtime/capabilities.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

namespace ignis::runtime {
namespace {

TEST(Capabilities, NamesAreCapitalsWithoutIndexZero) {
  EXPECT_EQ(canonical_device_name("cuda:1"), "CUDA:1");
  EXPECT_EQ(canonical_device_name("Cuda:0"), "CUDA");
  EXPECT_EQ(canonical_device_name("amd"), "AMD");
  EXPECT_EQ(canonical_device_name("AMD:10"), "AMD:10");
  EXPECT_EQ(canonical_device_name("amd:00"), "AMD");
  EXPECT_EQ(canonical_device_name(""), "");
  EXPECT_EQ(device_kind("CUDA:1"), "CUDA");
  EXPECT_EQ(device_kind("CPU"), "CPU");
}

TEST(Capabilities, QueuesAreNamedByKindAndIndex) {
  EXPECT_EQ((QueueId{QueueId::Kind::Compute, 0}).to_string(), "COMPUTE:0");
  EXPECT_EQ((QueueId{QueueId::Kind::Copy, 3}).to_string(), "COPY:3");
}

TEST(Capabilities, EveryFieldChangesTheFingerprint) {
  const std::vector<std::function<void(Capabilities&)>> changes = {
      [](Capabilities& c) { c.is_queued = true; },
      [](Capabilities& c) { c.has_unified_memory = true; },
      [](Capabilities& c) { c.copy_queues = 2; },
      [](Capabilities& c) { c.has_network_card = true; },
      [](Capabilities& c) { c.is_in_order = false; },
      [](Capabilities& c) { c.chains_launches = true; },
      [](Capabilities& c) { c.has_device_graphs = true; },
      [](Capabilities& c) { c.crosses_host_memory = true; },
      [](Capabilities& c) { c.can_recover = true; },
      [](Capabilities& c) { c.is_host_coherent = false; },
      [](Capabilities& c) { c.signal_bits = 32; },
      [](Capabilities& c) { c.ticks_per_us = 100; },
      [](Capabilities& c) { c.peer_group = "GPU"; },
  };
  std::set<uint64_t> seen = {Capabilities().fingerprint()};
  for (const auto& change : changes) {
    Capabilities capabilities;
    change(capabilities);
    EXPECT_TRUE(seen.insert(capabilities.fingerprint()).second) << seen.size();
    EXPECT_NE(capabilities, Capabilities());
  }
  EXPECT_EQ(Capabilities().fingerprint(), Capabilities().fingerprint());
}

}  // namespace
}  // namespace ignis::runtime
