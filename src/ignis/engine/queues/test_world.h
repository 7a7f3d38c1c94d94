#pragma once

// Schedules and devices for the tests of this folder, written in few words.

#include "ignis/engine/queues/compile_queues.h"
#include "ignis/engine/queues/streams.h"
#include "ignis/engine/queues/view.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace ignis::engine {

/// Devices, a schedule that grows by calls of its functions, and options.
struct TestWorld {
  DeviceTable table;
  exec::Schedule schedule;
  QueueOptions options;
  QueueHooks hooks;

  TestWorld() {
    schedule.programs.resize(1);
    schedule.programs[0].name = "kernel";
    options.is_checked = true;
    hooks.copy_program = [](const std::string&, uint64_t size_bytes) -> Result<ProgramImage> {
      ProgramImage image;
      image.name = "copy_" + std::to_string(size_bytes);
      image.buffer_count = 2;
      return image;
    };
  }

  runtime::Capabilities& device(const std::string& name, int copy_queues = 1) {
    runtime::Capabilities& made = table.devices[name];
    made.is_queued = true;
    made.copy_queues = copy_queues;
    return made;
  }
  /// G, G1, … : peers.
  void peers(int count, int copy_queues = 1) {
    for (int i = 0; i < count; ++i) {
      device(i == 0 ? "G" : "G" + std::to_string(i), copy_queues).peer_group = "G";
    }
  }

  /// A buffer; its view shows bytes.
  exec::BufferView buffer(const std::string& name, std::vector<std::string> devices,
                          uint64_t size_bytes = 16, int item_bytes = 1) {
    exec::ScheduleBuffer made;
    made.name = name;
    made.devices = std::move(devices);
    made.size_bytes = size_bytes;
    exec::BufferView view;
    view.buffer = static_cast<int>(schedule.buffers.size());
    view.item_bytes = item_bytes;
    schedule.buffers.push_back(std::move(made));
    return view;
  }
  exec::BufferView input(int number, const std::string& device, uint64_t size_bytes = 16) {
    exec::BufferView view = buffer("in" + std::to_string(number), {device}, size_bytes);
    schedule.buffers.back().input = number;
    return view;
  }

  exec::ScheduleCall& kernel(const std::vector<exec::BufferView>& writes,
                             const std::vector<exec::BufferView>& reads = {}) {
    exec::ScheduleCall call;
    call.name = "k" + std::to_string(schedule.calls.size());
    call.program = 0;
    for (const exec::BufferView& view : writes) {
      call.outs.push_back(static_cast<int>(call.arguments.size()));
      call.arguments.push_back(view);
    }
    for (const exec::BufferView& view : reads) {
      call.ins.push_back(static_cast<int>(call.arguments.size()));
      call.arguments.push_back(view);
    }
    schedule.calls.push_back(std::move(call));
    return schedule.calls.back();
  }
  exec::ScheduleCall& copy(const exec::BufferView& destination, const exec::BufferView& source) {
    exec::ScheduleCall call;
    call.kind = exec::CallKind::Copy;
    call.name = "c" + std::to_string(schedule.calls.size());
    call.arguments = {destination, source};
    call.outs = {0};
    call.ins = {1};
    schedule.calls.push_back(std::move(call));
    return schedule.calls.back();
  }
  exec::ScheduleCall& other(const std::vector<exec::BufferView>& arguments) {
    exec::ScheduleCall& call = kernel(arguments);
    call.kind = exec::CallKind::Other;
    call.program = -1;
    return call;
  }

  Result<exec::QueueTemplate> compile() const {
    return compile_queues(schedule, table, options, hooks);
  }
  /// The template; a failure is the test's.
  exec::QueueTemplate made() const {
    Result<exec::QueueTemplate> result = compile();
    EXPECT_TRUE(result) << (result ? "" : result.error().to_string());
    return result ? *std::move(result) : exec::QueueTemplate();
  }
  /// The streams of the only batch.
  std::string streams() const {
    const exec::QueueTemplate result = made();
    EXPECT_EQ(result.steps.size(), 1u);
    if (result.steps.empty()) return "";
    return to_text(result.steps[0].batch);
  }
};

/// "batch a b | host c | batch d no-wait": the names of the calls of each step.
inline std::string steps_text(const exec::QueueTemplate& made) {
  std::string text;
  for (const exec::TemplateStep& step : made.steps) {
    if (!text.empty()) text += " | ";
    text += step.is_host ? "host" : "batch";
    for (const exec::BatchCall& call : step.batch.calls) {
      text += " " + call.name;
    }
    if (!step.batch.waits) text += " no-wait";
  }
  return text;
}

}  // namespace ignis::engine
