#include "ignis/engine/queues/plan_schedule.h"

#include "ignis/vdev/queue/world.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ignis::engine {
namespace {

using exec::BufferRole;

exec::BufferPlan make_buffer(BufferRole role, int64_t size_bytes, const std::string& name) {
  exec::BufferPlan buffer;
  buffer.role = role;
  buffer.size_bytes = size_bytes;
  buffer.name = name;
  return buffer;
}

// y = f(t = g(x, w), u = g(x, w)): two temporaries in an arena.
struct Model {
  std::shared_ptr<std::vector<std::byte>> weights =
      std::make_shared<std::vector<std::byte>>(100, std::byte{7});
  exec::Plan plan;

  Model() {
    plan.arena_bytes = 192;
    plan.buffers = {
        make_buffer(BufferRole::Input, 24, "x"), make_buffer(BufferRole::Constant, 100, "w"),
        make_buffer(BufferRole::Arena, 60, "t"), make_buffer(BufferRole::Arena, 128, "u"),
        make_buffer(BufferRole::Output, 24, "y")};
    plan.buffers[1].constant = weights->data();
    plan.buffers[1].owner = weights;
    plan.buffers[3].arena_offset = 64;
    plan.programs = {{"g", {}, "", 3}, {"f", {}, "", 3}};
    plan.calls = {{0, {2, 0, 1}, 8, "g", "", 100, 10, {0}},
                  {0, {3, 0, 1}, 8, "g", "", 100, 10, {0}},
                  {1, {2, 3, 4}, 4, "f", "", 5, 6, {2}}};
    plan.inputs = {{"x", DType::Float32, {6}, 0}};
    plan.outputs = {{"y", DType::Float32, {6}, 4}};
  }
};

PlanSchedule make(const Model& model, const PlanScheduleOptions& options = {}) {
  Result<PlanSchedule> made = plan_schedule(model.plan, options);
  EXPECT_TRUE(made) << (made ? "" : made.error().to_string());
  return made ? *std::move(made) : PlanSchedule();
}

TEST(PlanSchedule, MakesOneCallOfEach) {
  const PlanSchedule made = make({}, {.device = "CUDA"});
  ASSERT_EQ(made.schedule.calls.size(), 3u);
  ASSERT_EQ(made.schedule.programs.size(), 2u);
  const exec::ScheduleCall& last = made.schedule.calls[2];
  EXPECT_EQ(last.kind, exec::CallKind::Program);
  EXPECT_EQ(last.name, "f");
  EXPECT_EQ(last.program, 1);
  EXPECT_EQ(last.outs, std::vector<int>{2});
  EXPECT_EQ(last.ins, (std::vector<int>{0, 1}));
  EXPECT_TRUE(last.knows_writes);
  EXPECT_EQ(last.parts, 4);
  EXPECT_EQ(last.flops, 5);
  EXPECT_EQ(last.bytes, 6);
  for (const exec::ScheduleBuffer& buffer : made.schedule.buffers) {
    EXPECT_EQ(buffer.devices, std::vector<std::string>{"CUDA"});
    EXPECT_TRUE(buffer.memory.empty());
  }
}

TEST(PlanSchedule, ArenaIsOneBufferWithParts) {
  const PlanSchedule made = make({});
  ASSERT_EQ(made.schedule.buffers.size(), 4u);
  ASSERT_GE(made.arena, 0);
  EXPECT_EQ(made.schedule.buffers[static_cast<size_t>(made.arena)].size_bytes, 192u);
  const exec::BufferView& u = made.schedule.calls[1].arguments[0];
  EXPECT_EQ(u.buffer, made.arena);
  ASSERT_EQ(u.steps.size(), 1u);
  EXPECT_EQ(u.steps[0].begin, 64);
  EXPECT_EQ(u.steps[0].end, 192);
  EXPECT_FALSE(made.arena_reads_zeros);
}

TEST(PlanSchedule, SplitsAnArenaUnlessItReadsZeros) {
  Model model;
  const PlanSchedule split = make(model, {.splits_arena = true});
  EXPECT_EQ(split.arena, -1);
  EXPECT_EQ(split.schedule.buffers.size(), 5u);
  EXPECT_TRUE(split.schedule.calls[1].arguments[0].steps.empty());
  model.plan.buffers[3].reads_zeros = true;
  const PlanSchedule whole = make(model, {.splits_arena = true});
  EXPECT_TRUE(whole.arena_reads_zeros);
  EXPECT_GE(whole.arena, 0);
  EXPECT_EQ(whole.schedule.buffers.size(), 4u);
}

TEST(PlanSchedule, NumbersPorts) {
  const PlanSchedule bound = make({}, {.binds_outputs = true});
  const auto number = [](const PlanSchedule& made, int buffer) {
    return made.schedule.buffers[static_cast<size_t>(buffer)].input;
  };
  EXPECT_EQ(number(bound, bound.inputs[0]), 0);
  EXPECT_EQ(number(bound, bound.outputs[0]), 1);
  const PlanSchedule unbound = make({});
  EXPECT_EQ(number(unbound, unbound.outputs[0]), -1);
  EXPECT_EQ(number(unbound, unbound.constants[0]), -1);
}

TEST(PlanSchedule, UnknownWritesStayUnknown) {
  Model model;
  model.plan.calls[0].written.clear();
  EXPECT_FALSE(make(model).schedule.calls[0].knows_writes);
}

TEST(PlanSchedule, RefusesWhatDoesNotFit) {
  const auto refuse = [](const auto& damage) {
    Model model;
    damage(model.plan);
    const auto made = plan_schedule(model.plan, {});
    return made ? "accepted" : made.error().reason();
  };
  EXPECT_EQ(refuse([](exec::Plan& p) { p.calls[0].written = {3}; }), "BadPlan");
  EXPECT_EQ(refuse([](exec::Plan& p) { p.calls[0].written = {1}; }), "BadPlan") << "an input";
  EXPECT_EQ(refuse([](exec::Plan& p) { p.calls[0].written = {2}; }), "BadPlan") << "a constant";
  EXPECT_EQ(refuse([](exec::Plan& p) { p.buffers[3].arena_offset = 128; }), "BadPlan");
}

std::shared_ptr<exec::Machine> open(vdev::World& world) {
  exec::MachineOptions options;
  options.devices = world.devices();
  return exec::Machine::create(std::move(options));
}

TEST(ConstantStore, SharesHostMemoryAndUploadsOnce) {
  vdev::World world;
  vdev::DeviceSpec spec;
  spec.hides_memory = true;
  world.add(spec);
  const auto machine = open(world);
  ConstantStore store(machine);
  Model model;
  const exec::BufferPlan& w = model.plan.buffers[1];
  const auto on_host = store.place("CPU", w);
  ASSERT_TRUE(on_host) << on_host.error().to_string();
  EXPECT_EQ((*on_host)->host(), model.weights->data());
  auto first = store.place("CUDA", w);
  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ((*first)->owner(), "CUDA");
  const auto second = store.place("CUDA", w);
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(world.memory_in_use_bytes("CUDA"), 100u);
  const auto made =
      plan_schedule(model.plan, {.device = "CUDA", .constant_memory = store.hook()}).value();
  EXPECT_EQ(made.schedule.buffers[static_cast<size_t>(made.constants[0])].memory[0], *first);
}

TEST(ConstantStore, KeepsTheOwnerOfSharedMemory) {
  const auto machine = exec::Machine::create(exec::MachineOptions());
  ConstantStore store(machine);
  runtime::MemoryRef memory;
  std::weak_ptr<void> weights;
  {
    Model model;
    weights = model.weights;
    memory = store.place("CPU", model.plan.buffers[1]).value();
  }
  EXPECT_FALSE(weights.expired());
  memory.reset();
  EXPECT_TRUE(weights.expired());
}

TEST(PlanSchedule, ZeroedMemoryOfADeviceIsZero) {
  vdev::World world;
  world.add({});
  const auto machine = open(world);
  const auto memory = allocate_zeroed(*machine, "CUDA", 300).value();
  const std::vector<std::byte> ones(300, std::byte{1});
  EXPECT_TRUE(write_memory(*machine, memory, 0, ones));
  EXPECT_FALSE(write_memory(*machine, memory, 1, ones)) << "beyond its end";
  EXPECT_EQ(std::memcmp(memory->host(), ones.data(), 300), 0);
}

}  // namespace
}  // namespace ignis::engine
