// Queue spec, section 8.

#include "tests/queues/test_rig.h"
#include <gtest/gtest.h>

#include <thread>

namespace ignis::testing {
namespace {

/// A rig with a device G and a chain of kernels, each reading what the one before wrote. Buffers are new each time.
struct ChainRig : Rig {
  runtime::QueuedDevice& device = add_device("G");
  int program = add_program("add_one", 2, float_map(4, [](float x) { return x + 1; }));

  /// The same calls on other buffers; returns their memory.
  std::vector<runtime::MemoryRef> chain(int calls) {
    schedule.calls.clear();
    schedule.buffers.clear();
    std::vector<exec::BufferView> views;
    std::vector<runtime::MemoryRef> memories;
    for (int i = 0; i < 4; ++i) {
      views.push_back(buffer("b" + std::to_string(names++), {"G"}));
      memories.push_back(give(views.back()));
    }
    for (int i = 0; i < calls; ++i) {
      kernel({views[static_cast<size_t>(i + 1) % 4]}, {views[static_cast<size_t>(i) % 4]});
      schedule.calls.back().name = "k" + std::to_string(i);
      schedule.calls.back().program = program;
    }
    return memories;
  }
  exec::TemplateRef compiled(bool allow_cache = true) {
    inputs.clear();
    Result<exec::TemplateRef> made = compile_shared(allow_cache, &inputs);
    EXPECT_TRUE(made) << (made ? "" : made.error().to_string());
    return made ? *made : nullptr;
  }
  std::vector<exec::BoundInput> inputs;
  int names = 0;
};

TEST(TemplateCache, TC1_TheSameScheduleOnOtherBuffersIsOneTemplate) {
  ChainRig rig;
  rig.chain(3);
  const exec::TemplateRef first = rig.compiled();
  const auto memory = rig.inputs[0].lanes[0].memory;
  rig.chain(3);
  EXPECT_EQ(rig.compiled(), first);
  EXPECT_NE(rig.inputs[0].lanes[0].memory, memory);
  EXPECT_EQ(rig.inputs.size(), 4u);
  EXPECT_EQ(rig.cache.counts().hits, 1u);
  EXPECT_EQ(rig.cache.counts().misses, 1u);
}

TEST(TemplateCache, TC1_ABufferThatIsSeenTwiceKeepsItsNumber) {
  ChainRig rig;
  const auto memories = rig.chain(5);  // the fifth kernel reads and writes what the first did
  const exec::TemplateRef made = rig.compiled();
  EXPECT_EQ(rig.inputs.size(), 4u);
  EXPECT_EQ(made->queues().input_count, 4);
  // In the order of first appearance: the first kernel's destination, then its source.
  EXPECT_EQ(rig.inputs[0].lanes[0].memory, memories[1]);
  EXPECT_EQ(rig.inputs[1].lanes[0].memory, memories[0]);
  EXPECT_EQ(rig.inputs[2].lanes[0].memory, memories[2]);
}

TEST(TemplateCache, TC2_ProfilingIsPartOfTheKey) {
  ChainRig rig;
  rig.chain(3);
  const exec::TemplateRef plain = rig.compiled();
  rig.options.is_profiled = true;
  EXPECT_NE(rig.compiled(), plain);
  EXPECT_EQ(rig.cache.counts().templates, 2u);
}

TEST(TemplateCache, TC3_AllToAllIsOnOrOff) {
  ChainRig rig;
  rig.chain(3);
  rig.options.queues.all_to_all = 0;
  const exec::TemplateRef off = rig.compiled();
  rig.options.queues.all_to_all = 1;
  const exec::TemplateRef on = rig.compiled();
  EXPECT_NE(on, off);
  rig.options.queues.all_to_all = 2;
  EXPECT_EQ(rig.compiled(), on);
}

TEST(TemplateCache, TC4_LongSchedulesBakeTheirInputs) {
  ChainRig rig;
  rig.chain(63);
  EXPECT_FALSE(rig.compiled()->queues().has_link_time_inputs);
  rig.chain(64);
  EXPECT_TRUE(rig.compiled()->queues().has_link_time_inputs);
}

TEST(TemplateCache, TC5_WithoutAListOfInputsNothingIsKept) {
  ChainRig rig;
  rig.chain(3);
  ASSERT_TRUE(rig.compile_shared(true, nullptr));
  EXPECT_EQ(rig.cache.counts().templates, 0u);
  rig.compiled(false);
  EXPECT_EQ(rig.cache.counts().templates, 0u);
}

TEST(TemplateCache, TC6_WhatIsCompiledOrLinkedStays) {
  ChainRig rig;
  rig.chain(3);
  const exec::TemplateRef made = rig.compiled();
  const size_t count = rig.inputs.size();
  EXPECT_EQ(engine::TemplateCache::compile(made), made);
  const auto linked = exec::link(rig.machine, made, rig.inputs).value();
  EXPECT_EQ(engine::TemplateCache::compile(linked), linked);
  EXPECT_EQ(exec::link(linked), linked);
  EXPECT_EQ(rig.inputs.size(), count);
}

TEST(TemplateCache, TC7_AThresholdOfZeroBakesAll) {
  ChainRig rig;
  rig.options.link_time_threshold = 0;
  rig.chain(1);
  EXPECT_TRUE(rig.compiled()->queues().has_link_time_inputs);
}

TEST(TemplateCache, TC8_ATemplateHoldsNoBuffer) {
  ChainRig rig;
  rig.start();
  rig.chain(3);
  const exec::TemplateRef made = rig.compiled();
  auto linked = exec::link(rig.machine, made, rig.inputs, {.allow_cache = true}).value();
  ASSERT_TRUE(exec::run(*linked, rig.inputs));
  rig.inputs.clear();
  rig.schedule = {};
  const uint64_t without_buffers = rig.world.memory_in_use_bytes("G");
  rig.schedule.programs = made->queues().programs;
  rig.program = 0;
  rig.chain(3);
  EXPECT_EQ(rig.compiled(), made);
  linked = exec::link(rig.machine, made, rig.inputs, {.allow_cache = true}).value();
  ASSERT_TRUE(exec::run(*linked, rig.inputs));
  EXPECT_GT(rig.world.memory_in_use_bytes("G"), without_buffers);
  rig.inputs.clear();
  rig.schedule = {};
  EXPECT_EQ(rig.world.memory_in_use_bytes("G"), without_buffers);
}

TEST(TemplateCache, CapabilitiesSwitchesAndGenerationsArePartOfTheKey) {
  ChainRig rig;
  rig.chain(3);
  const exec::TemplateRef first = rig.compiled();
  rig.table.devices["G"].chains_launches = true;
  const exec::TemplateRef chained = rig.compiled();
  EXPECT_NE(chained, first);
  rig.table.devices["G"].chains_launches = false;
  EXPECT_EQ(rig.compiled(), first);
  rig.table.switched_off.insert("AMD");
  EXPECT_NE(rig.compiled(), first);
  rig.table.switched_off.clear();
  rig.options.queues.copy_queues = 3;
  EXPECT_NE(rig.compiled(), first);
  rig.options.queues.copy_queues = 0;
  rig.device.report_hang("a test");
  ASSERT_TRUE(rig.device.reopen());
  EXPECT_NE(rig.compiled(), first);
}

TEST(TemplateCache, OtherProgramsAndSizesAreOtherTemplates) {
  ChainRig rig;
  rig.chain(3);
  const exec::TemplateRef first = rig.compiled();
  rig.program = rig.add_program("add_two", 2, float_map(4, [](float x) { return x + 2; }));
  rig.chain(3);
  EXPECT_NE(rig.compiled(), first);
}

TEST(TemplateCache, TheLeastRecentlyUsedGoFirst) {
  ChainRig rig;
  for (const int calls : {1, 2, 3}) {
    rig.chain(calls);
    rig.compiled();
  }
  const uint64_t bound = rig.cache.counts().size_bytes - 1;  // holds any two of the three
  engine::TemplateCache small(bound);
  const auto compile = [&](int calls) {
    rig.chain(calls);
    std::vector<exec::BoundInput> inputs;
    return small.compile(rig.schedule, {rig.table, rig.options, rig.hooks, rig.find}, true, &inputs)
        .value();
  };
  const exec::TemplateRef a = compile(3);
  const exec::TemplateRef b = compile(2);
  EXPECT_EQ(compile(3), a);  // used last
  compile(1);
  EXPECT_EQ(small.counts().evictions, 1u);
  EXPECT_EQ(compile(3), a);
  EXPECT_NE(compile(2), b);
  EXPECT_LE(small.counts().size_bytes, bound);
}

TEST(TemplateCache, ThreadsGetOneTemplate) {
  ChainRig rig;
  rig.chain(3);
  rig.start();
  std::vector<exec::TemplateRef> made(4);
  std::vector<std::thread> threads;
  for (exec::TemplateRef& to : made) {
    threads.emplace_back([&rig, &to] {
      std::vector<exec::BoundInput> inputs;
      to = rig.cache
               .compile(rig.schedule, {rig.table, rig.options, rig.hooks, rig.find}, true, &inputs)
               .value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const exec::TemplateRef& one : made) EXPECT_EQ(one, made[0]);
}

}  // namespace
}  // namespace ignis::testing
