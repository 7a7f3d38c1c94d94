// Queue spec, section 9.

#include "ignis/runtime/command_words.h"

#include "tests/queues/test_rig.h"
#include <gtest/gtest.h>

#include <cstring>

namespace ignis::testing {
namespace {

using exec::LinkMode;

/// A device G and a chain of kernels from an input to an input, over a placeholder.
struct LinkRig : Rig {
  runtime::QueuedDevice& device;
  int program;
  std::vector<exec::BoundInput> inputs;

  explicit LinkRig(vdev::WorldOptions world_options = {})
      : Rig(std::move(world_options)),
        device(add_device("G")),
        program(add_program("add_one", 2, float_map(4, [](float x) { return x + 1; }))) {}

  void add_kernel(const exec::BufferView& to, const exec::BufferView& from) {
    kernel({to}, {from});
    schedule.calls.back().program = program;
  }
  /// `calls` kernels; the placeholder between them has `size_bytes`.
  void chain(int calls, uint64_t size_bytes = 16) {
    const exec::BufferView in = buffer("in", {"G"}), out = buffer("out", {"G"});
    give(in);
    give(out);
    const exec::BufferView middle = buffer("middle", {"G"}, size_bytes);
    for (int i = 0; i < calls; ++i) {
      add_kernel(i + 1 < calls ? middle : out, i == 0 ? in : middle);
    }
  }
  exec::TemplateRef compiled(bool allow_cache) {
    inputs.clear();
    return compile_shared(allow_cache, allow_cache ? &inputs : nullptr).value();
  }
  std::shared_ptr<exec::LinkedSchedule> linked(const exec::TemplateRef& made, bool allow_cache) {
    return exec::link(machine, made, inputs, {.allow_cache = allow_cache}).value();
  }
};

const exec::LinkedBatch& batch_of(const exec::LinkedSchedule& linked) {
  return *linked.steps()[0].batch;
}
bool contains(const std::vector<std::byte>& words, uint64_t value) {
  for (size_t i = 0; i + sizeof value <= words.size(); i += 4) {
    if (std::memcmp(words.data() + i, &value, sizeof value) == 0) return true;
  }
  return false;
}

TEST(Link, LK1_AShortEagerLinkIsUsedAgain) {
  LinkRig rig;
  rig.chain(1);
  const exec::TemplateRef made = rig.compiled(true);
  const auto first = rig.linked(made, true);
  EXPECT_EQ(first->mode(), LinkMode::Own);
  const std::vector<exec::BoundInput> others = {exec::bind(rig.memory("G", 16)),
                                                exec::bind(rig.memory("G", 16))};
  EXPECT_EQ(exec::link(rig.machine, made, others, {.allow_cache = true}).value(), first);
  for (const auto& inputs : {rig.inputs, others}) {
    for (const exec::BoundInput& input : inputs) {
      const uint64_t address = rig.device.map(input.lanes[0].memory).value();
      for (const auto& words : batch_of(*first).stream_words) {
        EXPECT_FALSE(contains(words, address));
      }
    }
  }
}

TEST(Link, LK2_ALongEagerLinkLivesForOneRun) {
  LinkRig rig;
  rig.chain(65);
  const exec::TemplateRef made = rig.compiled(true);
  ASSERT_TRUE(made->queues().has_link_time_inputs);
  const auto first = rig.linked(made, true), second = rig.linked(made, true);
  EXPECT_NE(first, second);
  EXPECT_EQ(first->mode(), LinkMode::Ring);
  // Slots of one block.
  const int middle = 2;
  EXPECT_EQ(first->placement(middle).memory, second->placement(middle).memory);
  EXPECT_NE(first->placement(middle).offset_bytes, second->placement(middle).offset_bytes);
  EXPECT_EQ(first->placement(middle).memory->size_bytes(), uint64_t{64} << 20);
  ASSERT_TRUE(exec::run(*first));
  const Status again = exec::run(*first);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().reason(), "OneShot");
  ASSERT_TRUE(exec::run(*second));
}

TEST(Link, LK3_AJitLinkKeepsOffTheRing) {
  for (const int calls : {1, 65}) {
    LinkRig rig;
    rig.options.link_time_threshold = 0;
    rig.chain(calls);
    const auto eager = rig.linked(rig.compiled(true), true);
    ASSERT_EQ(eager->mode(), LinkMode::Ring);
    const auto jit = rig.linked(rig.compiled(false), false);
    EXPECT_EQ(jit->mode(), LinkMode::Jit);
    EXPECT_NE(batch_of(*jit).slots[0].memory, batch_of(*eager).slots[0].memory);
    if (calls > 1) {
      EXPECT_NE(jit->placement(2).memory, eager->placement(2).memory);
    }
    EXPECT_NE(rig.linked(rig.compiled(false), false), jit);
  }
}

/// A device whose calls are described in parts beside the commands: an outer one that points into an inner one.
class NestedDevice final : public runtime::QueuedDevice {
 public:
  explicit NestedDevice(runtime::QueuedDevice& inner) : inner_(inner) {}
  const std::string& name() const override { return inner_.name(); }
  const runtime::Capabilities& capabilities() const override { return inner_.capabilities(); }
  runtime::DeviceState state() const override { return inner_.state(); }
  runtime::Clock& clock() override { return inner_.clock(); }
  runtime::Timeline& timeline() override { return inner_.timeline(); }
  bool try_lock_submission(int64_t deadline_ns) override {
    return inner_.try_lock_submission(deadline_ns);
  }
  void unlock_submission() override { inner_.unlock_submission(); }
  Result<runtime::MemoryRef> allocate(uint64_t size_bytes, runtime::Purpose purpose) override {
    return inner_.allocate(size_bytes, purpose);
  }
  Result<uint64_t> map(const runtime::MemoryRef& memory) override { return inner_.map(memory); }
  Status encode(const runtime::Command& command, const Encoding& /*encoding*/,
                runtime::EncodedQueue& to) const override {
    if (command.kind != runtime::Command::Kind::Exec) return Status::ok();
    runtime::EncodedPart inner, outer;
    inner.bytes.resize(8);
    inner.bytes[4] = std::byte{42};
    outer.bytes.resize(8);
    outer.patches = {{.source = runtime::Patch::Source::Part, .index = 0, .addend = 4}};
    to.parts = {inner, outer};
    runtime::CommandWords words(to);
    words.hole({.source = runtime::Patch::Source::Part, .index = 1}, 8);
    return Status::ok();
  }
  uint64_t free_bytes(runtime::QueueId queue) const override { return inner_.free_bytes(queue); }
  uint64_t ring_bytes(runtime::QueueId queue) const override { return inner_.ring_bytes(queue); }
  Status submit(runtime::QueueId /*queue*/, std::span<const std::byte> /*words*/) override {
    return Error(ErrorCode::Unsupported, "It only links.");
  }
  std::string report_hang(const std::string& what) override { return inner_.report_hang(what); }
  Status reopen() override { return inner_.reopen(); }

 private:
  runtime::QueuedDevice& inner_;
};

TEST(Link, LK4_PartsPointAtParts) {
  LinkRig rig;
  rig.chain(1);
  NestedDevice nested(rig.device);
  rig.find = [&](std::string_view) { return &nested; };
  rig.machine_options.devices = {&nested};
  rig.machine = exec::Machine::create(rig.machine_options);
  const auto linked = rig.linked(rig.compiled(false), false);
  const exec::LinkedBatch& batch = batch_of(*linked);
  ASSERT_EQ(batch.parts.size(), 2u);
  const auto host = [](const exec::Placement& at) { return at.memory->host() + at.offset_bytes; };
  const uint64_t inner = nested.map(batch.parts[0].memory).value() + batch.parts[0].offset_bytes;
  EXPECT_EQ(host(batch.parts[0])[4], std::byte{42});
  uint64_t word = 0;
  std::memcpy(&word, host(batch.parts[1]), sizeof word);
  EXPECT_EQ(word, inner + 4);
}

TEST(Link, LK5_AnImageCountsAsUploadedAfterSuccessOnly) {
  LinkRig rig;
  rig.chain(1);
  const exec::TemplateRef made = rig.compiled(false);
  rig.world.inject("G", {.kind = vdev::FaultKind::HalfUpload});
  const auto failed = exec::link(rig.machine, made, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::DeviceLost);
  EXPECT_EQ(rig.machine->counts().uploads, 0u);
  const auto linked = exec::link(rig.machine, made, {});
  ASSERT_TRUE(linked) << linked.error().to_string();
  EXPECT_EQ(rig.machine->counts().uploads, 1u);
  ASSERT_TRUE(exec::link(rig.machine, made, {}));
  EXPECT_EQ(rig.machine->counts().uploads, 1u);
  ASSERT_TRUE(exec::run(**linked));
}

TEST(Link, ImagesThatNoLinkUsesGoWhenThereAreTooMany) {
  LinkRig rig;
  rig.machine_options.image_bytes = 1;
  const int other = rig.add_program("other", 2, float_map(4, [](float x) { return x; }));
  rig.chain(1);
  const exec::TemplateRef first = rig.compiled(false);
  rig.schedule.calls[0].program = other;
  const exec::TemplateRef second = rig.compiled(false);
  auto held = rig.linked(first, false);
  rig.linked(second, false);
  EXPECT_EQ(rig.machine->counts().uploads, 2u);
  rig.linked(first, false);
  EXPECT_EQ(rig.machine->counts().uploads, 2u) << "A link holds it.";
  held.reset();
  rig.linked(second, false);  // evicts nothing: it is there itself
  EXPECT_EQ(rig.machine->counts().uploads, 2u);
  rig.schedule.calls[0].program = rig.add_program("third", 2, [](std::span<std::byte* const>) {});
  rig.linked(rig.compiled(false), false);
  EXPECT_EQ(rig.machine->counts().uploads, 3u);
  held = rig.linked(first, false);
  EXPECT_EQ(rig.machine->counts().uploads, 4u);
  EXPECT_TRUE(exec::run(*held));
}

TEST(Link, LK6_PlaceholdersOfOneClassSharePartsOfABlock) {
  LinkRig rig;
  const exec::BufferView in = rig.buffer("in", {"G"});
  rig.give(in);
  const exec::BufferView a = rig.buffer("a", {"G"}, 100), b = rig.buffer("b", {"G"}, 40);
  rig.add_kernel(a, in);
  rig.add_kernel(b, a);
  const auto linked = rig.linked(rig.compiled(false), false);
  EXPECT_EQ(linked->placement(a.buffer).memory, linked->placement(b.buffer).memory);
  EXPECT_EQ(linked->placement(a.buffer).offset_bytes, 0u);
  EXPECT_EQ(linked->placement(b.buffer).offset_bytes, 128u);
  EXPECT_EQ(linked->placement(b.buffer).memory->size_bytes(), 168u);
}

TEST(Link, LK7_AFullRingIsWaitedForAndThenRefused) {
  LinkRig rig({.serves_on_sleep = false});
  rig.machine_options.ring_bytes = 1 << 20;
  rig.machine_options.limits = {50'000'000, 50'000'000};
  rig.options.link_time_threshold = 0;
  rig.chain(2, 400 << 10);
  const exec::TemplateRef made = rig.compiled(true);
  std::vector<std::shared_ptr<exec::LinkedSchedule>> links;
  for (int i = 0; i < 2; ++i) {
    links.push_back(rig.linked(made, true));
    const exec::Placement& slot = links.back()->placement(2);
    std::memset(slot.memory->host() + slot.offset_bytes, 0x40 + i, slot.size_bytes);
    ASSERT_TRUE(exec::run(*links.back(), {}, {.waits = false}));
  }
  const int64_t begin_ns = rig.world.clock().now_ns();
  const auto third = exec::link(rig.machine, made, rig.inputs, {.allow_cache = true});
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().reason(), "RingExhausted");
  EXPECT_GE(rig.world.clock().now_ns() - begin_ns, 50'000'000);
  EXPECT_LE(rig.world.clock().now_ns() - begin_ns, 100'000'000);
  for (int i = 0; i < 2; ++i) {
    const exec::Placement& slot = links[static_cast<size_t>(i)]->placement(2);
    for (uint64_t k = 0; k < slot.size_bytes; ++k) {
      ASSERT_EQ(slot.memory->host()[slot.offset_bytes + k], static_cast<std::byte>(0x40 + i));
    }
  }
  // When the devices have worked there is room, dropped links or not.
  links.clear();
  ASSERT_FALSE(exec::link(rig.machine, made, rig.inputs, {.allow_cache = true}));
  ASSERT_TRUE(rig.world.run_until_idle());
  EXPECT_TRUE(exec::link(rig.machine, made, rig.inputs, {.allow_cache = true}));
}

TEST(Link, LK7_MoreThanTheRingIsRefusedAtOnce) {
  LinkRig rig;
  rig.machine_options.ring_bytes = 1 << 20;
  rig.options.link_time_threshold = 0;
  rig.chain(2, (1 << 20) + 1);
  const exec::TemplateRef made = rig.compiled(true);
  const auto refused = exec::link(rig.machine, made, rig.inputs, {.allow_cache = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "RingTooSmall");
}

TEST(Link, LK8_ProgramsAreNoArgumentsOfASubmit) {
  std::vector<size_t> values;
  for (const int programs : {2, 12}) {
    LinkRig rig;
    rig.chain(12);
    for (int i = 1; i < programs; ++i) {
      const auto add = [i](float x) { return x + static_cast<float>(i + 1); };
      const int program = rig.add_program("add_" + std::to_string(i), 2, float_map(4, add));
      rig.schedule.calls[static_cast<size_t>(i)].program = program;
    }
    const auto linked = rig.linked(rig.compiled(true), true);
    EXPECT_EQ(rig.machine->counts().uploads, static_cast<uint64_t>(programs));
    values.push_back(batch_of(*linked).values.size());
  }
  EXPECT_EQ(values[0], values[1]);
}

TEST(Link, NoLinkTimePatchIsLeft) {
  LinkRig rig;
  rig.options.link_time_threshold = 0;
  rig.chain(1);
  const exec::TemplateRef made = rig.compiled(true);
  rig.inputs.pop_back();
  const auto refused = exec::link(rig.machine, made, rig.inputs, {.allow_cache = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "UnresolvedPatch");
  EXPECT_NE(refused.error().message().find("'input 1'"), std::string::npos);
}

TEST(Link, WhatIsTooSmallIsRefused) {
  LinkRig rig;
  rig.options.link_time_threshold = 0;
  rig.chain(1);
  const exec::TemplateRef made = rig.compiled(true);
  rig.inputs[1].lanes[0].size_bytes = 15;
  const auto refused = exec::link(rig.machine, made, rig.inputs, {.allow_cache = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "InputTooSmall");
}

TEST(Link, BakedMemoryIsKeptAlive) {
  LinkRig rig;
  rig.chain(1);
  const auto linked = rig.linked(rig.compiled(false), false);
  const std::weak_ptr<runtime::Memory> out = rig.schedule.buffers[1].memory[0];
  rig.schedule = {};
  EXPECT_FALSE(out.expired());
  ASSERT_TRUE(exec::run(*linked));
}

TEST(Link, ADroppedLinkUnderWayKeepsItsMemory) {
  LinkRig rig({.serves_on_sleep = false});
  rig.chain(3);
  auto linked = rig.linked(rig.compiled(false), false);
  const std::weak_ptr<runtime::Memory> middle = linked->placement(2).memory;
  ASSERT_TRUE(exec::run(*linked, {}, {.waits = false}));
  linked.reset();
  rig.machine->collect();
  EXPECT_FALSE(middle.expired());
  ASSERT_TRUE(rig.world.run_until_idle());
  rig.machine->collect();
  EXPECT_TRUE(middle.expired());
}

TEST(Link, WT6_AnOldLinkIsStaleAndANewOneRuns) {
  LinkRig rig;
  rig.chain(1);
  const exec::TemplateRef made = rig.compiled(true);
  const auto old = rig.linked(made, true);
  ASSERT_TRUE(exec::run(*old, rig.inputs));
  rig.device.report_hang("a test");
  const Status lost = exec::run(*old, rig.inputs);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().reason(), "DeviceUnavailable");
  ASSERT_TRUE(rig.device.reopen());
  const Status stale = exec::run(*old, rig.inputs);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().reason(), "StaleLink");
  const auto fresh = rig.linked(made, true);
  EXPECT_NE(fresh, old);
  EXPECT_TRUE(exec::run(*fresh, rig.inputs));
  EXPECT_EQ(rig.machine->counts().uploads, 2u) << "An image of another generation is none.";
}

}  // namespace
}  // namespace ignis::testing
