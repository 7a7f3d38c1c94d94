#pragma once

// Captures that are written by hand, and their replays on simulated devices.

#include "ignis/engine/capture/group.h"
#include "ignis/engine/capture/plan_memory.h"
#include "ignis/engine/capture/prune.h"
#include "ignis/engine/capture/shadow_copies.h"
#include "ignis/exec/replay.h"

#include "tests/queues/test_rig.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace ignis::testing {

inline constexpr runtime::WaitLimits kNoWait{0, 0};
inline constexpr runtime::WaitLimits kLong{20'000'000'000, 20'000'000'000};

/// A schedule on device G whose ports have names. Ports of 4-byte items: inputs first, then outputs.
struct CaptureRig : Rig {
  exec::Captured parts;
  bool plans_memory = true, copies_to_shadows = true;
  std::vector<exec::BufferView> input_views;
  std::vector<exec::InputDescription> described;
  std::vector<exec::GuardValue> guards;
  std::span<const exec::VariableBinding> variables{};
  std::vector<int> one_time_calls;
  std::string device = "G";

  explicit CaptureRig(int copy_queues = 1, vdev::DeviceSpec spec = {},
                      vdev::WorldOptions world_options = {})
      : Rig(std::move(world_options)) {
    add_device("G", copy_queues, std::move(spec));
  }

  exec::BufferView in(const std::string& name, int64_t count) {
    const auto size_bytes = static_cast<uint64_t>(count) * sizeof(float);
    input_views.push_back(input(static_cast<int>(described.size()), device, size_bytes));
    exec::InputDescription made;
    made.name = texts_.emplace_back(name);
    std::vector<exec::InputDevice>& lanes = devices_.emplace_back();
    lanes = {{texts_.emplace_back(device), generation()}};
    made.devices = lanes;
    made.size_bytes = {static_cast<int64_t>(size_bytes)};
    made.base_bytes = size_bytes;
    made.shape = numbers_.emplace_back(std::vector<exec::SymbolicNumber>{{count}});
    made.strides = numbers_.emplace_back(std::vector<exec::SymbolicNumber>{{1}});
    described.push_back(made);
    return input_views.back();
  }
  uint64_t generation() const {
    const runtime::QueuedDevice* found = world.find(device);
    return found == nullptr ? 1 : found->generation();
  }
  /// Inputs as they are described after a device was opened anew.
  void describe_again() {
    for (std::vector<exec::InputDevice>& lanes : devices_) {
      for (exec::InputDevice& lane : lanes) {
        const runtime::QueuedDevice* found = world.find(lane.name);
        if (found != nullptr) lane.generation = found->generation();
      }
    }
  }
  /// Of the mode that is set.
  exec::BufferView out(const std::string& name, int64_t count) {
    const auto size_bytes = static_cast<uint64_t>(count) * sizeof(float);
    const auto number = static_cast<int>(described.size() + parts.outputs.size());
    const exec::BufferView made = parts.output_mode == exec::OutputMode::Borrow
                                      ? buffer(name, {device}, size_bytes)
                                      : input(number, device, size_bytes);
    parts.outputs.push_back({name, DType::Float32, {count}, {made.buffer, 0, 0, size_bytes, 1}, 1});
    return made;
  }
  exec::BufferView temporary(const std::string& name, int64_t count) {
    return buffer(name, {device}, static_cast<uint64_t>(count) * sizeof(float));
  }
  /// Memory that lives outside, as of a tensor that the function reaches.
  exec::BufferView state(const std::string& name, const std::vector<float>& values) {
    const exec::BufferView made = temporary(name, static_cast<int64_t>(values.size()));
    write_floats(whole(give(made)), values);
    return made;
  }
  exec::Placement place_of(const exec::BufferView& view) const {
    return whole(schedule.buffers[static_cast<size_t>(view.buffer)].memory.front());
  }
  /// Held as said: its bytes are the host's, or `count` items that nobody has yet.
  exec::BufferView held(const std::string& name, exec::HeldKind kind,
                        const std::vector<float>& values, int64_t count = 0) {
    const exec::BufferView made =
        temporary(name, values.empty() ? count : static_cast<int64_t>(values.size()));
    const std::vector<float>& kept = floats_.emplace_back(values);
    exec::HeldBuffer buffer;
    buffer.buffer = made.buffer;
    buffer.kind = kind;
    buffer.name = name;
    if (!values.empty()) buffer.bytes = {{std::as_bytes(std::span(kept)), nullptr}};
    parts.held.push_back(std::move(buffer));
    return made;
  }
  void call(int program, const exec::BufferView& to, const std::vector<exec::BufferView>& from) {
    kernel({to}, from);
    schedule.calls.back().program = program;
  }

  engine::TemplateCache::Environment environment() {
    options.link_time_threshold = 1 << 30;  // inputs move from run to run
    return {table, options, hooks, find};
  }
  Result<exec::CapturedRef> try_capture() {
    start();
    exec::Captured made = parts;
    exec::Schedule captured = schedule;
    std::vector<int> held;
    for (const exec::HeldBuffer& buffer : parts.held) held.push_back(buffer.buffer);
    for (const exec::CapturedOutput& output : parts.outputs) held.push_back(output.range.buffer);
    const engine::TemplateCache::Environment environment = this->environment();
    if (!one_time_calls.empty()) {
      std::vector<int> kept;
      for (int i = 0; i < static_cast<int>(schedule.calls.size()); ++i) {
        if (std::find(one_time_calls.begin(), one_time_calls.end(), i) == one_time_calls.end()) {
          kept.push_back(i);
        }
      }
      IGNIS_TRY_ASSIGN(
          made.one_time,
          cache.compile(engine::select_one_time(schedule, one_time_calls), environment));
      captured = engine::select_calls(schedule, kept);
    }
    if (plans_memory) {
      engine::MemoryPlanOptions plan_options;
      plan_options.held = held;
      IGNIS_TRY_ASSIGN(const engine::MemoryPlan plan, engine::plan_memory(captured, plan_options));
      captured = engine::apply_memory_plan(captured, plan);
      made.peak_bytes = plan.peak_bytes;
    }
    IGNIS_TRY_ASSIGN(made.queues, cache.compile(captured, environment));
    if (copies_to_shadows) {
      IGNIS_TRY_ASSIGN(made.shadow_copies,
                       engine::make_shadow_copies(captured, described.size(), environment));
    }
    made.group_report = engine::report_batches(made.queues->queues()).to_text();
    made.signature = exec::Signature::make(described, variables);
    IGNIS_TRY_ASSIGN(made.guards, exec::GuardSet::make(guards));
    IGNIS_TRY_ASSIGN(made.devices, exec::describe_devices(made.queues->queues(), *machine));
    return exec::Captured::make(std::move(made));
  }
  exec::CapturedRef capture() {
    Result<exec::CapturedRef> made = try_capture();
    EXPECT_TRUE(made) << (made ? "" : made.error().to_string());
    return made ? *std::move(made) : nullptr;
  }
  std::shared_ptr<exec::Replay> replay() {
    exec::CapturedRef captured = capture();  // starts the machine
    return exec::Replay::create(std::move(captured), machine).value();
  }
  exec::Placement block(const std::vector<float>& values) {
    const exec::Placement at = whole(memory(device, values.size() * sizeof(float)));
    write_floats(at, values);
    return at;
  }

 private:
  std::deque<std::string> texts_;
  std::deque<std::vector<exec::SymbolicNumber>> numbers_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<exec::InputDevice>> devices_;
};

/// A call of a rig's capture on these places; it lives as long as its run.
struct TestCall {
  std::vector<exec::BoundInput> memory;
  exec::ReplayCall call;

  TestCall(const CaptureRig& rig, const std::vector<exec::Placement>& places) {
    for (const exec::Placement& at : places) memory.push_back({{at}});
    call.inputs = rig.described;
    call.memory = memory;
    call.guards = rig.guards;
    call.variables = rig.variables;
    call.limits = kLong;
  }
  TestCall(const TestCall&) = delete;
};

inline exec::OutputHandle run(const CaptureRig& rig, exec::Replay& replay,
                              const std::vector<exec::Placement>& places, bool waits = true) {
  TestCall call(rig, places);
  call.call.waits = waits;
  Result<exec::OutputHandle> made = replay.run(call.call);
  EXPECT_TRUE(made) << (made ? "" : made.error().to_string());
  return *std::move(made);
}
inline Error run_error(const CaptureRig& rig, exec::Replay& replay,
                       const std::vector<exec::Placement>& places) {
  const Result<exec::OutputHandle> made = replay.run(TestCall(rig, places).call);
  EXPECT_FALSE(made) << "a replay that should fail";
  return made ? Error(ErrorCode::Internal, "none") : made.error();
}

inline std::vector<float> read(const exec::OutputHandle& handle, int output, size_t count) {
  std::vector<float> values(count);
  const Status status = handle.read(output, std::as_writable_bytes(std::span(values)), kLong);
  EXPECT_TRUE(status) << (status ? "" : status.error().to_string());
  return values;
}

inline float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }

}  // namespace ignis::testing
