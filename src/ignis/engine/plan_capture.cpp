#include "ignis/engine/plan_capture.h"

#include "ignis/engine/queues/template_cache.h"
#include "ignis/engine/submit_compiler.h"
#include "ignis/exec/host_memory.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace ignis::engine {
namespace {

std::vector<exec::SymbolicNumber> numbers_of(const std::vector<int64_t>& values) {
  std::vector<exec::SymbolicNumber> made;
  for (const int64_t value : values) made.push_back({.value = value});
  return made;
}

std::vector<int64_t> dense_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

exec::Signature signature_of(const std::vector<exec::Port>& inputs, const std::string& device) {
  std::vector<std::vector<exec::SymbolicNumber>> shapes, strides;
  std::vector<exec::InputDescription> descriptions;
  const exec::InputDevice on{device, 1};
  for (const exec::Port& port : inputs) {
    shapes.push_back(numbers_of({port.shape.begin(), port.shape.end()}));
    strides.push_back(numbers_of(dense_strides(port.shape)));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const exec::Port& port = inputs[i];
    exec::InputDescription made;
    made.name = port.name;
    made.devices = {&on, 1};
    made.memory_class = exec::MemoryClass::External;
    made.dtype = port.dtype;
    made.size_bytes.value = element_count(port.shape) * size_bytes(port.dtype);
    made.base_bytes = static_cast<uint64_t>(made.size_bytes.value);
    made.shape = shapes[i];
    made.strides = strides[i];
    made.alignment_bytes = static_cast<uint32_t>(size_bytes(port.dtype));
    descriptions.push_back(made);
  }
  return exec::Signature::make(descriptions);
}

}  // namespace

Result<exec::TemplateRef> compile_for_host(const exec::Schedule& schedule, exec::Machine& machine,
                                           const PlanCaptureOptions& options) {
  const DeviceTable no_devices;
  QueueOptions queue_options;
  queue_options.is_profiled = options.is_profiled;
  queue_options.link_time_threshold = std::numeric_limits<int>::max();  // ports move
  const QueueHooks no_hooks;
  const DeviceFinder find = [&machine](std::string_view name) { return machine.find(name); };
  TemplateCache keeps_none(0);
  return keeps_none.compile(schedule,
                            {no_devices, queue_options, no_hooks, find, options.submit_compiler});
}

Result<PlanSchedule> schedule_for_host(exec::Plan plan, const exec::Machine& machine) {
  PlanScheduleOptions options;
  options.device = machine.options().host_name;
  options.binds_outputs = true;
  options.constant_memory = [](const std::string& device,
                               const exec::BufferPlan& constant) -> Result<runtime::MemoryRef> {
    // Programs take all memory as one kind of pointer; constants are only read.
    return exec::wrap_host_memory(device, const_cast<std::byte*>(constant.constant),
                                  static_cast<uint64_t>(constant.size_bytes), constant.owner);
  };
  return plan_schedule(std::move(plan), options);
}

Result<exec::CapturedRef> capture_plan(exec::Plan plan,
                                       const std::shared_ptr<exec::Machine>& machine,
                                       const PlanCaptureOptions& options) {
  exec::Captured parts;
  parts.signature = signature_of(plan.inputs, machine->options().host_name);
  parts.output_mode = exec::OutputMode::Caller;
  parts.peak_bytes = {{machine->options().host_name, static_cast<uint64_t>(plan.arena_bytes)}};
  const std::vector<exec::Port> outputs = plan.outputs;
  IGNIS_TRY_ASSIGN(const PlanSchedule scheduled, schedule_for_host(std::move(plan), *machine));
  IGNIS_TRY_ASSIGN(parts.queues, compile_for_host(scheduled.schedule, *machine, options));
  for (size_t i = 0; i < outputs.size(); ++i) {
    exec::CapturedOutput made;
    made.name = outputs[i].name;
    made.dtype = outputs[i].dtype;
    made.shape = {outputs[i].shape.begin(), outputs[i].shape.end()};
    made.alignment_bytes = static_cast<uint32_t>(size_bytes(made.dtype));
    made.range.buffer = scheduled.outputs[i];
    made.range.lane = 0;
    made.range.size_bytes =
        scheduled.schedule.buffers[static_cast<size_t>(made.range.buffer)].size_bytes;
    parts.outputs.push_back(std::move(made));
  }
  for (const int buffer : scheduled.constants) {
    const exec::ScheduleBuffer& from = scheduled.schedule.buffers[static_cast<size_t>(buffer)];
    exec::HeldBuffer held;
    held.buffer = buffer;
    held.kind = exec::HeldKind::Weights;
    held.name = from.name + "#" + std::to_string(buffer);  // names of constants may be equal
    held.lanes = {{from.memory.front(), 0, from.size_bytes}};
    held.bytes = {{{from.memory.front()->host(), from.size_bytes}, from.memory.front()}};
    parts.held.push_back(std::move(held));
  }
  IGNIS_TRY_ASSIGN(parts.devices, exec::describe_devices(parts.queues->queues(), *machine));
  return exec::Captured::make(std::move(parts));
}

Result<exec::CapturedRef> capture_plan(const exec::Plan& plan,
                                       const std::shared_ptr<runtime::Device>& device,
                                       const Target& target,
                                       const std::shared_ptr<ProgramCache>& program_cache) {
  exec::MachineOptions machine_options;
  machine_options.host = device;
  const SubmitCompiler compiler = submit_compiler(target, program_cache);
  return capture_plan(plan, exec::Machine::create(std::move(machine_options)),
                      {.submit_compiler = &compiler});
}

}  // namespace ignis::engine
