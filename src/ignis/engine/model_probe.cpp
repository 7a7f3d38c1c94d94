#include "ignis/engine/model_probe.h"

#include "ignis/engine/plan_capture.h"
#include "ignis/exec/external_memory.h"
#include "ignis/exec/run_linked.h"

#include <chrono>
#include <utility>
#include <vector>

namespace ignis::engine {

using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

namespace {

std::vector<exec::BoundInput> bind_ports(const exec::Machine& machine,
                                         std::span<const ConstBytes> given_inputs,
                                         std::span<const Bytes> given_outputs) {
  const std::string& host = machine.options().host_name;
  std::vector<exec::BoundInput> made;
  const auto add = [&](std::byte* bytes, size_t size) {
    const auto memory = std::make_shared<exec::ExternalMemory>(host, bytes, size);
    made.push_back({{{memory, 0, size}}});
  };
  for (const ConstBytes bytes : given_inputs) {
    add(const_cast<std::byte*>(bytes.data()), bytes.size());
  }
  for (const Bytes bytes : given_outputs) add(bytes.data(), bytes.size());
  return made;
}

}  // namespace

Status ModelProbe::profile(std::span<const ConstBytes> inputs, std::span<const Bytes> outputs,
                           runtime::Deadline deadline, std::span<runtime::LaunchTime> times) {
  exec::Machine& machine = *model_.machine();
  runtime::QueuedDevice& queue = *model_.device()->queue();
  IGNIS_CHECK(times.size() == model_.plan().calls.size());
  IGNIS_TRY(exec::check_ports(model_.plan(), inputs, outputs));
  if (profiled_ == nullptr) {
    IGNIS_TRY_ASSIGN(const PlanSchedule scheduled, schedule_for_host(model_.plan(), machine));
    IGNIS_TRY_ASSIGN(const exec::TemplateRef made,
                     compile_for_host(scheduled.schedule, machine, {.is_profiled = true}));
    IGNIS_TRY_ASSIGN(profiled_, exec::link(model_.machine(), made, {}));
  }
  const runtime::WaitLimits limits = exec::limits_until(deadline);
  const std::vector<exec::BoundInput> bound = bind_ports(machine, inputs, outputs);
  IGNIS_TRY(exec::end_run(
      exec::run(*profiled_, bound, {.limits = limits}), queue, limits,
      [&](const runtime::WaitLimits& again) { return exec::wait(*profiled_, again); }));
  const auto stamp = [](uint64_t ticks) {
    return std::chrono::steady_clock::time_point(
        std::chrono::nanoseconds(static_cast<int64_t>(ticks)));
  };
  size_t next = 0;
  for (const exec::CallRecord& record : exec::take_records(*profiled_)) {
    if (next < times.size()) times[next++] = {stamp(record.start_ticks), stamp(record.end_ticks)};
  }
  IGNIS_CHECK(next == times.size());
  return {};
}

Status ModelProbe::run_stepwise(std::span<const ConstBytes> inputs, std::span<const Bytes> outputs,
                                runtime::Deadline deadline, const AfterCall& after) {
  exec::Machine& machine = *model_.machine();
  runtime::QueuedDevice& queue = *model_.device()->queue();
  IGNIS_TRY(exec::check_ports(model_.plan(), inputs, outputs));
  IGNIS_TRY_ASSIGN(PlanSchedule scheduled, schedule_for_host(model_.plan(), machine));
  exec::Schedule& schedule = scheduled.schedule;
  // All memory is known, so that each call is a schedule of its own on the same bytes.
  const std::vector<exec::BoundInput> bound = bind_ports(machine, inputs, outputs);
  for (exec::ScheduleBuffer& buffer : schedule.buffers) {
    if (buffer.input >= 0) {
      buffer.memory = {bound[static_cast<size_t>(buffer.input)].lanes.front().memory};
      buffer.input = -1;
    } else if (buffer.memory.empty()) {
      IGNIS_TRY_ASSIGN(buffer.memory.emplace_back(),
                       allocate_zeroed(machine, buffer.devices.front(), buffer.size_bytes));
    }
  }
  const std::vector<exec::ScheduleCall> calls = std::move(schedule.calls);
  for (size_t i = 0; i < calls.size(); ++i) {
    schedule.calls = {calls[i]};
    IGNIS_TRY_ASSIGN(const exec::TemplateRef made, compile_for_host(schedule, machine, {}));
    IGNIS_TRY_ASSIGN(const auto linked, exec::link(model_.machine(), made, {}));
    const runtime::WaitLimits limits = exec::limits_until(deadline);
    IGNIS_TRY(exec::end_run(
        exec::run(*linked, {}, {.limits = limits}), queue, limits,
        [&](const runtime::WaitLimits& again) { return exec::wait(*linked, again); }));
    std::vector<void*> addresses;
    for (const exec::BufferView& view : calls[i].arguments) {
      std::byte* at = schedule.buffers[static_cast<size_t>(view.buffer)].memory.front()->host();
      if (!view.steps.empty()) at += view.steps.front().begin;  // of the arena, in bytes
      addresses.push_back(at);
    }
    IGNIS_TRY(after(i, addresses));
  }
  return {};
}

}  // namespace ignis::engine
