#pragma once

#include "ignis/engine/eager/expression.h"
#include "ignis/engine/eager/workspace.h"
#include "ignis/tensor/tensor.h"

#include <list>
#include <map>
#include <optional>
#include <unordered_map>

/// What a workspace and its arrays are made of; for the sources of this folder only.
namespace ignis::engine {

/// One step of a view. `from` is the shape before it.
struct ArrayStep {
  enum class Kind : uint8_t { Slice, Permute, Reshape };
  Kind kind = Kind::Slice;
  Shape from;
  std::vector<std::pair<int64_t, int64_t>> bounds;  ///< Slice
  std::vector<int64_t> numbers;                     ///< Permute: axes; Reshape: extents
};

struct Array::State {
  std::shared_ptr<WorkspaceState> workspace;
  uint64_t id = 0;
  std::string name, device;
  DType dtype = DType::Float32;
  Shape shape;

  // With storage.
  StorageRef storage;
  std::vector<ArrayStep> view;
  std::vector<int64_t> strides;  // in elements
  int64_t offset = 0;            // in elements
  std::vector<exec::SymbolicNumber> shape_numbers, stride_numbers;
  ir::Node viewed_leaf;  // that `viewed` was made of
  tensor::Tensor viewed;

  // Without.
  tensor::Tensor expression;
  std::vector<StorageRef> held;  // that the expression reads
  bool is_virtual = false, is_constant = false;

  void set_storage(StorageRef to);
  bool is_contiguous() const;
};

uint64_t new_array_id();
Error no_array();
/// "Array 'weights'", for messages.
std::string describe_storage(const Storage& storage);
/// Gives a buffer the memory of a storage.
void place_storage(exec::Schedule& schedule, int buffer, const Storage& storage);
/// Copies between storages that are buffers of a schedule.
std::vector<exec::ScheduleCall> make_copies(const Storage& to, int to_buffer, const Storage& from,
                                            int from_buffer);
/// Zeroed memory on each device. Errors: as allocate_zeroed().
Result<std::vector<runtime::MemoryRef>> allocate_zeroed_lanes(exec::Machine& machine,
                                                              const std::string& devices,
                                                              uint64_t size_bytes);

/// The view of `value`, a tensor of the base's shape.
tensor::Tensor apply_view(const std::vector<ArrayStep>& view, tensor::Tensor value);
/// A tensor of the base's shape that has `value` where the view looks, and zeros elsewhere.
tensor::Tensor spread_view(const std::vector<ArrayStep>& view, tensor::Tensor value);

/// A compiled expression on one device.
struct CompiledPlan {
  exec::Plan plan;
  std::optional<PlanSchedule> eager, split;  // with the arena whole and placed, or in parts
  /// Of its devices when memory was placed for it.
  std::vector<uint64_t> generations;
  std::vector<ir::BufferData> held;
};

struct WorkspaceState : std::enable_shared_from_this<WorkspaceState> {
  WorkspaceOptions options;
  std::shared_ptr<runtime::Device> host;
  std::shared_ptr<exec::Machine> machine;
  std::shared_ptr<LeafTable> leaves;
  DeviceTable table;
  QueueHooks hooks;
  DeviceFinder find_device;
  std::unique_ptr<TemplateCache> templates;
  std::unique_ptr<ConstantStore> constants;
  WorkspaceCounts counts;

  Recorder* recorder = nullptr;
  int pauses = 0;

  struct Entry {
    std::string key;
    std::shared_ptr<CompiledPlan> plan;
  };
  std::list<Entry> plans;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> plan_of;
  std::map<std::string, std::shared_ptr<CompiledPlan>> copy_programs;  // by size

  struct Variable {
    StorageRef storage;
    int64_t value = 0, min = 0, max = 0;
  };
  std::map<std::string, Variable> variables;
  struct Generator {
    StorageRef key, counter;
  };
  std::map<std::string, Generator> generators;  // by device

  ~WorkspaceState();
  bool is_recording() const { return recorder != nullptr && pauses == 0; }
  TemplateCache::Environment environment() const {
    return {table, options.queues, hooks, find_device};
  }

  // workspace.cpp
  Result<std::string> device_name(const std::string& asked) const;
  Array make_array(StorageRef storage);
  Status check_usable(const Storage& storage) const;

  // memory.cpp
  Status allocate(Storage& storage);
  Result<Array> make_from_bytes(std::span<const std::byte> bytes, DType dtype, const Shape& shape,
                                const std::string& device);
  /// Waits until the host may read, or write, the memory of a storage.
  Status wait_for(const Storage& storage) const;

  // compute.cpp
  /// Forgets memory of a plan that a reopened device has lost.
  void forget_lost_memory(CompiledPlan& plan, const std::string& device) const;
  /// `variables` are the names of the schedule's run-time variables, by number.
  Status run(const exec::Schedule& schedule, std::vector<exec::BoundInput> inputs,
             const std::vector<std::string>& variables = {});
  Result<std::string> choose_device(const Expression& expression, const std::string& asked) const;
  Result<std::shared_ptr<CompiledPlan>> find_plan(const Expression& expression,
                                                  const std::string& device, std::string& key);
  /// Runs a plan, or records it. `outputs` follow its outputs.
  Status execute(CompiledPlan& plan, const std::string& key, const Expression& expression,
                 const std::vector<StorageRef>& outputs, const std::string& device,
                 bool draws_random = false);
  /// Dense bytes from lane to lane; from several lanes into the parts of one, or the other way.
  Status copy(const StorageRef& to, const StorageRef& from);
  /// Storages with the values of the roots on one device.
  Result<std::vector<StorageRef>> compute(std::vector<ir::Node> roots, const std::string& device,
                                          bool draws_random = false);
  Status assign(const StorageRef& to, const ir::Node& value);
  Result<ProgramImage> copy_program(uint64_t size_bytes);

  // random.cpp
  Result<Generator*> generator(const std::string& device);
};

/// Calls `work`, whose tensor functions throw, and returns what they say as an error.
template <typename Work>
auto catch_graph_error(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const tensor::GraphError& error) {
    return error.error();
  }
}

}  // namespace ignis::engine
