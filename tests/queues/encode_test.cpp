// Queue spec, section 7: words and patches of a template, and what a backend may not write.

#include "ignis/engine/queues/encode.h"

#include "ignis/runtime/command_words.h"

#include "tests/queues/test_rig.h"
#include <gtest/gtest.h>

#include <functional>

namespace ignis::testing {
namespace {

using runtime::Patch;

/// A device that writes what the test says for every call, and nothing else.
class ScriptedDevice final : public runtime::QueuedDevice {
 public:
  using Script = std::function<void(runtime::EncodedQueue& to)>;
  explicit ScriptedDevice(Script script) : script_(std::move(script)) {
    capabilities_.is_queued = true;
    capabilities_.copy_queues = 1;
  }
  const std::string& name() const override { return name_; }
  const runtime::Capabilities& capabilities() const override { return capabilities_; }
  runtime::DeviceState state() const override { return {}; }
  runtime::Clock& clock() override { return runtime::Clock::real(); }
  runtime::Timeline& timeline() override { return timeline_; }
  bool try_lock_submission(int64_t /*deadline_ns*/) override { return true; }
  void unlock_submission() override {}
  Result<runtime::MemoryRef> allocate(uint64_t /*size_bytes*/, runtime::Purpose /*why*/) override {
    return Error(ErrorCode::Unsupported, "It only encodes.");
  }
  Result<uint64_t> map(const runtime::MemoryRef& /*memory*/) override { return uint64_t{0}; }
  Status encode(const runtime::Command& command, const Encoding& /*encoding*/,
                runtime::EncodedQueue& to) const override {
    if (command.kind == runtime::Command::Kind::Exec) script_(to);
    return Status::ok();
  }
  uint64_t free_bytes(runtime::QueueId /*queue*/) const override { return 64; }
  uint64_t ring_bytes(runtime::QueueId /*queue*/) const override { return 64; }
  Status submit(runtime::QueueId /*queue*/, std::span<const std::byte> /*words*/) override {
    return Error(ErrorCode::Unsupported, "It only encodes.");
  }
  std::string report_hang(const std::string& what) override { return what; }
  Status reopen() override { return Status::ok(); }

 private:
  Script script_;
  std::string name_ = "G";
  runtime::Capabilities capabilities_;
  runtime::Timeline timeline_;
};

/// One kernel on G that reads input 0, and a placeholder that it writes.
exec::QueueTemplate one_kernel() {
  engine::TestWorld world;
  world.device("G");
  world.kernel({world.buffer("out", {"G"})}, {world.input(0, "G")});
  return world.made();
}

Status encode_with(const ScriptedDevice::Script& script) {
  ScriptedDevice device(script);
  exec::QueueTemplate made = one_kernel();
  return engine::encode_template(made, [&](std::string_view) { return &device; });
}
std::string reason_of(const Status& status) { return status ? "ok" : status.error().reason(); }

/// 16 bytes with patches.
ScriptedDevice::Script with(std::vector<Patch> patches) {
  return [patches = std::move(patches)](runtime::EncodedQueue& to) {
    to.bytes.resize(16);
    to.patches = patches;
  };
}

TEST(HostFence, FN6_WordsThatAreNotKnownLeaveZerosAndPatches) {
  ScriptedDevice device([](runtime::EncodedQueue& to) {
    runtime::CommandWords words(to);
    words.u32(1);
    words.address(0);
    words.u32(2);
  });
  exec::QueueTemplate made = one_kernel();
  ASSERT_TRUE(engine::encode_template(made, [&](std::string_view) { return &device; }));
  const runtime::EncodedQueue& encoded = made.steps[0].batch.streams[0].encoded;
  std::vector<int> bytes;
  for (const std::byte byte : encoded.bytes) bytes.push_back(std::to_integer<int>(byte));
  EXPECT_EQ(bytes, (std::vector<int>{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0}));
  ASSERT_EQ(encoded.patches.size(), 1u);
  EXPECT_EQ(encoded.patches[0].offset_bytes, 4u);
  EXPECT_EQ(encoded.patches[0].width_bytes, 8);
  EXPECT_FALSE(encoded.patches[0].is_run_time());
}

TEST(Encode, APatchIsLinkTimeOrRunTime) {
  Rig rig;
  rig.add_device("G");
  const int program = rig.add_program("f", 2, float_map(4, [](float x) { return x; }));
  rig.kernel({rig.buffer("out", {"G"})}, {rig.input(0, "G")}).program = program;
  const exec::TemplateRef made = rig.compile_shared().value();
  const exec::Batch& batch = made->queues().steps[0].batch;
  ASSERT_EQ(batch.table.size(), 1u);
  EXPECT_EQ(batch.table[0], (exec::TableEntry{0, 0, 0}));
  int inputs = 0, timelines = 0, addresses = 0;
  for (const Patch& patch : batch.streams[0].encoded.patches) {
    inputs += patch.source == Patch::Source::Input;
    timelines += patch.source == Patch::Source::Timeline;
    addresses += patch.source == Patch::Source::Address;
  }
  EXPECT_EQ(inputs, 1);
  EXPECT_EQ(timelines, 2) << "The wait for N and the store of N + 1.";
  EXPECT_EQ(addresses, 4) << "The program, the placeholder, and the timeline twice.";
}

TEST(Encode, WhatABackendWritesIsChecked) {
  using Source = Patch::Source;
  EXPECT_EQ(reason_of(encode_with(with({{.offset_bytes = 0}, {.offset_bytes = 8}}))), "ok");
  EXPECT_EQ(reason_of(encode_with(with({{.offset_bytes = 9}}))), "BadPatch");
  EXPECT_EQ(reason_of(encode_with(with({{.offset_bytes = 0}, {.offset_bytes = 4}}))), "BadPatch");
  EXPECT_EQ(reason_of(encode_with(with({{.offset_bytes = 8}, {.offset_bytes = 0}}))), "BadPatch");
  EXPECT_EQ(reason_of(encode_with(with({{.width_bytes = 3}}))), "BadPatch");
  EXPECT_EQ(reason_of(encode_with(with({{.width_bytes = 4}}))), "BadPatch") << "half an address";
  EXPECT_EQ(reason_of(encode_with(with({{.index = 99}}))), "BadPatch");
  EXPECT_EQ(reason_of(encode_with(with({{.index = -1}}))), "BadPatch");
  EXPECT_EQ(reason_of(encode_with(with({{.source = Source::Input, .index = 1}}))), "BadPatch");
  EXPECT_EQ(reason_of(encode_with(with({{.source = Source::Part}}))), "BadPatch");
  EXPECT_EQ(reason_of(encode_with(with({{.source = Source::Variable}}))), "BadPatch");
  EXPECT_EQ(reason_of(encode_with(with({{.width_bytes = 4, .source = Source::Timeline}}))), "ok");
}

TEST(Encode, MoreThanARingHoldsIsRefusedWhenItIsCompiled) {
  EXPECT_EQ(reason_of(encode_with([](runtime::EncodedQueue& to) { to.bytes.resize(64); })), "ok");
  const Status refused = encode_with([](runtime::EncodedQueue& to) { to.bytes.resize(65); });
  EXPECT_EQ(reason_of(refused), "SubmitTooLarge");
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidArgument);
}

TEST(Encode, ADeviceThatIsNotOpenIsNamed) {
  exec::QueueTemplate made = one_kernel();
  const Status refused = engine::encode_template(
      made, [](std::string_view) -> runtime::QueuedDevice* { return nullptr; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::NotFound);
  EXPECT_NE(refused.error().message().find("'G'"), std::string::npos);
}

}  // namespace
}  // namespace ignis::testing
