#include "ignis/engine/eager/captured_plan.h"

#include "ignis/engine/eager/plan_schedule.h"
#include "ignis/engine/queues/compile_queues.h"
#include "ignis/engine/queues/encode.h"

#include <deque>
#include <limits>
#include <utility>
#include <vector>

namespace ignis::engine {
namespace {

// Inputs as a signature is made of them; it copies what it is shown.
class Inputs {
 public:
  explicit Inputs(const std::string& device) : device_{{device, 1}} {}

  void add(const exec::Port& port, uint64_t size_bytes) {
    std::vector<exec::SymbolicNumber>& shape = numbers_.emplace_back();
    std::vector<exec::SymbolicNumber>& strides = numbers_.emplace_back(port.shape.size());
    int64_t stride = 1;
    for (size_t axis = port.shape.size(); axis-- > 0;) {
      strides[axis] = {stride};
      stride *= port.shape[axis];
    }
    for (const int64_t extent : port.shape) shape.push_back({extent});
    exec::InputDescription& made = described_.emplace_back();
    made.name = port.name;
    made.devices = device_;
    made.memory_class = exec::MemoryClass::External;
    made.dtype = port.dtype;
    made.size_bytes = {static_cast<int64_t>(size_bytes)};
    made.base_bytes = size_bytes;
    made.shape = shape;
    made.strides = strides;
    made.alignment_bytes = static_cast<uint32_t>(size_bytes_of(port));
  }
  exec::Signature signature() const { return exec::Signature::make(described_); }

  /// Of one element: what a port's address must be a multiple of.
  static int size_bytes_of(const exec::Port& port) { return ignis::size_bytes(port.dtype); }

 private:
  std::vector<exec::InputDevice> device_;
  std::deque<std::vector<exec::SymbolicNumber>> numbers_;  // a deque: what is shown stays in place
  std::vector<exec::InputDescription> described_;
};

std::vector<exec::HeldBuffer> hold_constants(const exec::Plan& plan, const PlanSchedule& made) {
  std::vector<exec::HeldBuffer> held;
  for (const exec::BufferPlan& buffer : plan.buffers) {
    if (buffer.role != exec::BufferRole::Constant) continue;
    exec::HeldBuffer& constant = held.emplace_back();
    constant.buffer = made.constants[held.size() - 1];  // in the plan's order
    constant.kind = exec::HeldKind::Weights;
    constant.name = buffer.name;
    constant.bytes = {{{buffer.constant, static_cast<size_t>(buffer.size_bytes)}, buffer.owner}};
  }
  return held;
}

}  // namespace

Result<exec::CapturedRef> capture_plan(const exec::Plan& plan, const exec::Machine& machine,
                                       int threads) {
  PlanScheduleOptions options;
  options.device = machine.options().host_name;
  options.binds_outputs = true;
  options.threads = threads;
  IGNIS_TRY_ASSIGN(const PlanSchedule made, plan_schedule(plan, options));

  DeviceTable table;
  table.host = options.device;
  QueueOptions queue_options;
  // Ports move from run to run: no address may be baked.
  queue_options.link_time_threshold = std::numeric_limits<int>::max();
  IGNIS_TRY_ASSIGN(exec::QueueTemplate queues,
                   compile_queues(made.schedule, table, queue_options, {}));
  IGNIS_TRY(encode_template(queues, [&](std::string_view name) { return machine.find(name); }));

  exec::Captured parts;
  Inputs inputs(options.device);
  const auto bytes_of = [&](const exec::Port& port) {
    return static_cast<uint64_t>(plan.buffers[static_cast<size_t>(port.buffer)].size_bytes);
  };
  for (const exec::Port& port : plan.inputs) inputs.add(port, bytes_of(port));
  parts.signature = inputs.signature();
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const exec::Port& port = plan.outputs[i];
    parts.outputs.push_back({port.name,
                             port.dtype,
                             port.shape,
                             {made.outputs[i], 0, 0, bytes_of(port), 1},
                             static_cast<uint32_t>(Inputs::size_bytes_of(port))});
  }
  parts.output_mode = exec::OutputMode::Caller;
  parts.held = hold_constants(plan, made);
  // The arena is the only buffer that the link places, so it begins as zeros
  // and stays its own: halos rely on it.
  parts.peak_bytes = {{options.device, static_cast<uint64_t>(plan.arena_bytes)}};
  IGNIS_TRY_ASSIGN(parts.devices, exec::describe_devices(queues, machine));
  parts.queues = std::make_shared<const exec::SharedTemplate>(std::move(queues));
  return exec::Captured::make(std::move(parts));
}

}  // namespace ignis::engine
