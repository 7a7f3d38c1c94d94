#include "tests/queues/test_rig.h"

#include <cstring>
#include <utility>

namespace ignis::testing {
namespace {

Error only_a_queue() { return Error(ErrorCode::Unsupported, "A test's host is a queue."); }

}  // namespace

Result<runtime::DeviceMemory> TestHost::allocate(uint64_t /*size_bytes*/) { return only_a_queue(); }
Result<std::shared_ptr<const runtime::Program>> TestHost::load(const ProgramImage& image) {
  if (native == nullptr) return only_a_queue();
  return native->load(image);
}
Status TestHost::run(std::span<const runtime::Launch> /*launches*/, runtime::Deadline /*deadline*/,
                     std::span<runtime::LaunchTime> /*times*/) {
  return only_a_queue();
}

Rig::Rig(vdev::WorldOptions world_options) : world(std::move(world_options)) {
  schedule.programs.clear();
  hooks.copy_program = [this](const std::string&, uint64_t size_bytes) -> Result<ProgramImage> {
    const std::string name = "copy_" + std::to_string(size_bytes);
    TestFunction copy = [size_bytes](std::span<std::byte* const> buffers) {
      std::memmove(buffers[0], buffers[1], size_bytes);
    };
    return make_program(name, 2, std::move(copy));
  };
  make_program = [this](const std::string& name, int buffer_count, TestFunction function) {
    return world.add_function(name, buffer_count,
                              [function = std::move(function)](const vdev::FunctionCall& call) {
                                function(call.buffers);
                              });
  };
  machine_options.clock = &world.clock();
  host->native = rig_defaults.native;
}

runtime::QueuedDevice& Rig::add_device(const std::string& name, int copy_queues,
                                       vdev::DeviceSpec spec) {
  spec.name = name;
  spec.capabilities.is_queued = true;
  spec.capabilities.copy_queues = copy_queues;
  table.devices[name] = spec.capabilities;
  return world.add(std::move(spec));
}

void Rig::add_missing_devices() {
  for (const auto& [name, capabilities] : table.devices) {
    if (world.find(name) != nullptr) continue;
    vdev::DeviceSpec spec;
    spec.name = name;
    spec.capabilities = capabilities;
    world.add(std::move(spec));
  }
}

int Rig::add_program(const std::string& name, int buffer_count, TestFunction function) {
  schedule.programs.push_back(make_program(name, buffer_count, std::move(function)));
  return static_cast<int>(schedule.programs.size()) - 1;
}

exec::Machine& Rig::start() {
  if (machine == nullptr) {
    machine_options.devices = world.devices();
    std::erase(machine_options.devices, world.find(table.host));
    machine_options.host = host;
    machine = exec::Machine::create(machine_options);
  }
  return *machine;
}

Result<exec::TemplateRef> Rig::compile_shared(bool allow_cache,
                                              std::vector<exec::BoundInput>* inputs) {
  start();
  return cache.compile(schedule, {table, options, hooks, find, submit_compiler}, allow_cache,
                       inputs);
}

Result<std::shared_ptr<exec::LinkedSchedule>> Rig::link(std::span<const exec::BoundInput> inputs) {
  IGNIS_TRY_ASSIGN(const exec::TemplateRef made, compile_shared());
  return exec::link(machine, made, inputs);
}

runtime::MemoryRef Rig::memory(const std::string& owner, uint64_t size_bytes) {
  Result<runtime::MemoryRef> made =
      owner == table.host ? world.host_memory(size_bytes)
                          : world.find(owner)->allocate(size_bytes, runtime::Purpose::Data);
  EXPECT_TRUE(made) << (made ? "" : made.error().to_string());
  return made ? *std::move(made) : nullptr;
}

runtime::MemoryRef Rig::give(const exec::BufferView& view) {
  exec::ScheduleBuffer& buffer = schedule.buffers[static_cast<size_t>(view.buffer)];
  for (const std::string& device : buffer.devices) {
    buffer.memory.push_back(memory(device, buffer.size_bytes));
  }
  return buffer.memory.front();
}

TestFunction float_map(size_t count, std::function<float(float)> function) {
  return [count, function](std::span<std::byte* const> buffers) {
    for (size_t i = 0; i < count; ++i) {
      float value = 0;
      std::memcpy(&value, buffers[1] + i * sizeof value, sizeof value);
      value = function(value);
      std::memcpy(buffers[0] + i * sizeof value, &value, sizeof value);
    }
  };
}

std::vector<float> read_floats(const exec::Placement& placement, size_t count) {
  std::vector<float> values(count);
  std::memcpy(values.data(), placement.memory->host() + placement.offset_bytes,
              count * sizeof(float));
  return values;
}

void write_floats(const exec::Placement& placement, const std::vector<float>& values) {
  std::memcpy(placement.memory->host() + placement.offset_bytes, values.data(),
              values.size() * sizeof(float));
}

}  // namespace ignis::testing
