#pragma once

// Schedules that are compiled, linked and run on simulated devices.

#include "ignis/engine/queues/template_cache.h"
#include "ignis/engine/queues/test_world.h"
#include "ignis/exec/run_linked.h"
#include "ignis/vdev/queue/world.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ignis::testing {

/// What a program of a test does to its buffers.
using TestFunction = std::function<void(std::span<std::byte* const> buffers)>;

/// A host whose queue is another's: of the simulated worker, say.
class TestHost final : public runtime::Device {
 public:
  explicit TestHost(runtime::QueuedDevice& queue) : Device("cpu", Target{}), queue_(queue) {}
  int threads() const override { return 1; }
  Result<runtime::DeviceMemory> allocate(uint64_t size_bytes) override;
  Result<std::shared_ptr<const runtime::Program>> load(const ProgramImage& image) override;
  Status run(std::span<const runtime::Launch> launches, runtime::Deadline deadline,
             std::span<runtime::LaunchTime> times) override;
  Status state() const override { return {}; }
  runtime::QueuedDevice* queue() override { return &queue_; }
  /// Loads submit programs; may be null where there are none.
  std::shared_ptr<runtime::Device> native;

 private:
  void release(std::byte* /*bytes*/, uint64_t /*size_bytes*/) noexcept override {}
  runtime::QueuedDevice& queue_;
};

/// What every Rig begins with: nothing, unless a test program has a compiler.
struct RigDefaults {
  const engine::SubmitCompiler* submit_compiler = nullptr;  ///< null: batches keep the loop
  std::shared_ptr<runtime::Device> native;
};
inline RigDefaults rig_defaults;

/// Devices, a schedule that grows by calls (TestWorld), and the whole chain behind it.
struct Rig : engine::TestWorld {
  vdev::World world;
  std::shared_ptr<TestHost> host = std::make_shared<TestHost>(world.add_host_worker());
  /// Makes a program of a function; the world's functions are the default.
  std::function<ProgramImage(const std::string& name, int buffer_count, TestFunction function)>
      make_program;
  std::shared_ptr<exec::Machine> machine;
  engine::TemplateCache cache;
  engine::DeviceFinder find = [this](std::string_view name) {
    return name == table.host ? host->queue() : world.find(name);
  };
  exec::MachineOptions machine_options;
  const engine::SubmitCompiler* submit_compiler = rig_defaults.submit_compiler;

  explicit Rig(vdev::WorldOptions world_options = {});

  /// A device of both worlds.
  runtime::QueuedDevice& add_device(const std::string& name, int copy_queues = 1,
                                    vdev::DeviceSpec spec = {});
  /// Devices of `table` that the simulated world does not have yet.
  void add_missing_devices();
  /// The CPU of the chain: the simulated worker, or what a test put there.
  runtime::QueuedDevice& worker() { return *host->queue(); }
  /// A program for devices and the host; its number.
  int add_program(const std::string& name, int buffer_count, TestFunction function);

  /// The devices as they are now. Called by compile() when it was not before.
  exec::Machine& start();
  Result<exec::TemplateRef> compile_shared(bool allow_cache = false,
                                           std::vector<exec::BoundInput>* inputs = nullptr);
  /// Compiles as for a JIT and links.
  Result<std::shared_ptr<exec::LinkedSchedule>> link(std::span<const exec::BoundInput> inputs = {});

  /// Memory of a device or the host.
  runtime::MemoryRef memory(const std::string& owner, uint64_t size_bytes);
  /// Gives a buffer memory that is known at compile.
  runtime::MemoryRef give(const exec::BufferView& view);
};

/// Adds 1 to, multiplies, … each of `count` floats: buffers destination, source.
TestFunction float_map(size_t count, std::function<float(float)> function);

std::vector<float> read_floats(const exec::Placement& placement, size_t count);
void write_floats(const exec::Placement& placement, const std::vector<float>& values);
inline exec::Placement whole(const runtime::MemoryRef& memory) {
  return {memory, 0, memory->size_bytes()};
}

}  // namespace ignis::testing
