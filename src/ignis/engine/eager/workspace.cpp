#include "ignis/engine/eager/workspace.h"

#include "ignis/engine/eager/state.h"

#include <algorithm>
#include <utility>

namespace ignis::engine {

std::string describe_storage(const Storage& storage) {
  return storage.name.empty() ? "An array" : "Array '" + storage.name + "'";
}

Error no_array() {
  return Error(ErrorCode::InvalidArgument, "The array is empty: it was not made by a workspace.",
               "NoArray");
}

WorkspaceState::~WorkspaceState() {
  if (templates != nullptr) templates->clear();  // links hold the machine
}

Result<Workspace> Workspace::create(WorkspaceOptions options) {
  auto state = std::make_shared<WorkspaceState>();
  if (options.host == nullptr) {
    runtime::DeviceOptions device_options;
    device_options.threads = options.threads;
    IGNIS_TRY_ASSIGN(options.host, runtime::open_device(options.cpu, device_options));
  }
  if (options.host->target().renderer == "interp") {
    return Error(ErrorCode::Unsupported,
                 "Device '" + options.host->name() +
                     "' runs no programs; arrays need one that does, such as cpu:llvm.",
                 "NoPrograms");
  }
  if (options.program_cache == nullptr) options.program_cache = ProgramCache::open();
  state->host = options.host;
  state->leaves = std::make_shared<LeafTable>(std::make_shared<ir::Graph>());
  exec::MachineOptions machine_options;
  machine_options.devices = options.devices;
  machine_options.host = options.host;
  machine_options.clock = options.clock;
  machine_options.limits = options.limits;
  state->machine = exec::Machine::create(std::move(machine_options));
  for (runtime::QueuedDevice* device : options.devices) {
    state->table.devices[device->name()] = device->capabilities();
  }
  WorkspaceState* const raw = state.get();
  state->find_device = [raw](std::string_view name) { return raw->machine->find(name); };
  state->hooks.copy_program = [raw](const std::string&, uint64_t size_bytes) {
    return raw->copy_program(size_bytes);
  };
  state->templates = std::make_unique<TemplateCache>();
  state->constants = std::make_unique<ConstantStore>(state->machine);
  options.default_device = runtime::canonical_device_name(options.default_device);
  state->options = std::move(options);
  IGNIS_TRY(state->device_name(state->options.default_device));
  return Workspace(std::move(state));
}

const std::shared_ptr<ir::Graph>& Workspace::graph() const { return state_->leaves->graph(); }
const std::shared_ptr<exec::Machine>& Workspace::machine() const { return state_->machine; }
const WorkspaceOptions& Workspace::options() const { return state_->options; }
TemplateCache& Workspace::templates() const { return *state_->templates; }
TemplateCache::Environment Workspace::environment() const { return state_->environment(); }
WorkspaceCounts Workspace::counts() const {
  WorkspaceCounts counts = state_->counts;
  counts.templates = state_->templates->counts();
  return counts;
}

Result<std::string> WorkspaceState::device_name(const std::string& asked) const {
  if (asked.empty()) return options.default_device;
  std::string names;
  for (const std::string& one : split_devices(asked)) {
    const std::string name = runtime::canonical_device_name(one);
    if (name != machine->options().host_name && machine->find(name) == nullptr) {
      return Error(ErrorCode::NotFound, "Device '" + name + "' is not open in this workspace.",
                   "NoSuchDevice");
    }
    names += (names.empty() ? "" : ",") + name;
  }
  return names;
}

Array WorkspaceState::make_array(StorageRef storage) {
  auto made = std::make_shared<Array::State>();
  made->workspace = shared_from_this();
  made->id = new_array_id();
  made->set_storage(std::move(storage));
  return Array(std::move(made));
}

Status WorkspaceState::check_usable(const Storage& storage) const {
  if (storage.contents == Contents::Poisoned) {
    return Error(
        ErrorCode::InvalidArgument,
        describe_storage(storage) + " was to be written by a call that failed; assign() it anew.",
        "PoisonedTensor");
  }
  if (storage.contents == Contents::Recorded && !is_recording()) {
    return Error(
        ErrorCode::InvalidArgument,
        describe_storage(storage) + " is written by calls that were recorded and have not run.",
        recorder != nullptr ? "DataAccessDuringCapture" : "NotComputed");
  }
  for (const StorageLane& lane : storage.lanes) {
    const runtime::QueuedDevice* device = machine->find(lane.device);
    if (device == nullptr || lane.memory == nullptr || device->generation() == lane.generation ||
        device->is_whole(*lane.memory)) {
      continue;
    }
    return Error(ErrorCode::DeviceLost,
                 describe_storage(storage) + " was made in generation " +
                     std::to_string(lane.generation) + " of " + lane.device +
                     ", which is now in generation " + std::to_string(device->generation()) +
                     " and did not keep it; make it anew.",
                 "StorageLost");
  }
  return {};
}

Result<Array> Workspace::lazy(const tensor::Tensor& value, const std::string& device) const {
  if (!value) return no_array();
  auto made = std::make_shared<Array::State>();
  IGNIS_TRY_ASSIGN(Expression expression, read_expression(*state_->leaves, {value.node()}));
  std::string asked;
  if (!device.empty()) {
    IGNIS_TRY_ASSIGN(asked, state_->device_name(device));
  }
  made->is_virtual =
      value.constant_value().has_value() && (value.rank() == 0 || is_weak(value.dtype()));
  if (made->is_virtual) {
    made->expression = value;
    made->dtype = value.dtype();
  } else {
    IGNIS_TRY_ASSIGN(made->device, state_->choose_device(expression, asked));
    made->expression = tensor::commit(value);
    made->dtype = made->expression.dtype();
  }
  made->workspace = state_;
  made->id = new_array_id();
  made->name = value.name();
  made->shape = value.shape();
  made->held = std::move(expression.inputs);
  return Array(std::move(made));
}

Result<tensor::Tensor> Workspace::variable(const std::string& name, int64_t min,
                                           int64_t max) const {
  const auto known = state_->variables.find(name);
  if (known == state_->variables.end()) {
    if (name.empty() || min > max) {
      return Error(ErrorCode::InvalidArgument,
                   "Variable '" + name + "' in [" + std::to_string(min) + ", " +
                       std::to_string(max) + "] needs a name and a range that holds a value.",
                   "OutOfRange");
    }
    StorageRef storage = state_->leaves->make(DType::Int64, {}, "");
    storage->name = storage->variable = name;
    state_->variables[name] = {storage, min, min, max};
  } else if (known->second.min != min || known->second.max != max) {
    return Error(ErrorCode::InvalidArgument,
                 "Variable '" + name + "' has the range [" + std::to_string(known->second.min) +
                     ", " + std::to_string(known->second.max) + "]; [" + std::to_string(min) +
                     ", " + std::to_string(max) + "] is another.",
                 "VariableConflict");
  }
  return tensor::Tensor(graph(), state_->leaves->leaf(*state_->variables[name].storage), name);
}

Status Workspace::bind(const std::string& name, int64_t value) const {
  const auto known = state_->variables.find(name);
  if (known == state_->variables.end()) {
    return Error(ErrorCode::NotFound, "There is no variable '" + name + "'.", "NoVariable");
  }
  WorkspaceState::Variable& variable = known->second;
  if (value < variable.min || value > variable.max) {
    return Error(ErrorCode::InvalidArgument,
                 "Variable '" + name + "' is in [" + std::to_string(variable.min) + ", " +
                     std::to_string(variable.max) + "]; " + std::to_string(value) + " is not.",
                 "OutOfRange");
  }
  variable.value = value;
  return {};
}

Status Workspace::realize(Array& array) const {
  Array* const one[] = {&array};
  return realize(one);
}

Status Workspace::realize(std::span<Array* const> arrays) const {
  std::map<std::string, std::vector<Array::State*>> groups;  // by device
  for (Array* array : arrays) {
    if (array == nullptr || !*array) return no_array();
    IGNIS_TRY(array->check());
    Array::State& state = *array->state_;
    if (state.storage != nullptr || state.is_virtual) continue;
    if (state.workspace != state_) {
      return Error(ErrorCode::InvalidArgument, "The array belongs to another workspace.",
                   "OtherWorkspace");
    }
    std::vector<Array::State*>& group = groups[state.device];
    if (std::find(group.begin(), group.end(), &state) == group.end()) group.push_back(&state);
  }
  for (const auto& [device, group] : groups) {
    std::vector<ir::Node> roots;
    for (const Array::State* state : group) roots.push_back(state->expression.node());
    IGNIS_TRY_ASSIGN(std::vector<StorageRef> made, state_->compute(std::move(roots), device));
    for (size_t i = 0; i < group.size(); ++i) group[i]->set_storage(std::move(made[i]));
  }
  return {};
}

Result<Array> Workspace::compute(const tensor::Tensor& value, const std::string& device) const {
  IGNIS_TRY_ASSIGN(Array made, lazy(value, device));
  if (made.is_virtual()) return clone(made);
  IGNIS_TRY(realize(made));
  return made;
}

Status Workspace::assign(Array& to, const tensor::Tensor& value) const {
  if (!to || !value) return no_array();
  IGNIS_TRY(to.check());
  if (to.is_virtual()) {
    return Error(ErrorCode::InvalidArgument,
                 "A constant without device has no storage to assign to; clone() it first.",
                 "VirtualArray");
  }
  if ((value.rank() != 0 && value.shape() != to.shape()) ||
      (value.dtype() != to.dtype() && !is_weak(value.dtype()))) {
    return Error(ErrorCode::InvalidArgument,
                 std::string(to_string(to.dtype())) + " " + to_string(to.shape()) +
                     " is assigned " + value.describe() + "; cast or broadcast it.",
                 "WrongShape");
  }
  if (value.graph() != graph()) {
    return Error(ErrorCode::InvalidArgument, "The value belongs to the graph of another workspace.",
                 "OtherWorkspace");
  }
  IGNIS_TRY(realize(to));
  const Array::State& state = *to.state_;
  if (!state.storage->is_writable) {
    return Error(ErrorCode::InvalidArgument,
                 describe_storage(*state.storage) + " may only be read.", "ReadOnly");
  }
  return catch_graph_error([&]() -> Status {
    tensor::Tensor root = tensor::broadcast_to(tensor::cast(value, to.dtype()), to.shape());
    if (!state.view.empty()) {
      const tensor::Tensor is_seen =
          spread_view(state.view, tensor::Tensor::full_int(graph(), state.shape, 1, DType::Bool));
      root = tensor::where(is_seen, spread_view(state.view, root),
                           tensor::Tensor(graph(), state_->leaves->leaf(*state.storage)));
    }
    return state_->assign(state.storage, root.node());
  });
}

Status Workspace::assign(Array& to, const Array& value) const {
  if (!value) return no_array();
  IGNIS_TRY(value.check());
  return assign(to, value.value());
}

Result<Array> Workspace::clone(const Array& array) const {
  if (!array) return no_array();
  IGNIS_TRY(array.check());
  const Array::State& state = *array.state_;
  IGNIS_TRY_ASSIGN(std::vector<StorageRef> made,
                   state_->compute({tensor::commit(array.value()).node()}, state.device));
  return state_->make_array(std::move(made.front()));
}

Result<Array> Workspace::contiguous(const Array& array) const {
  if (!array) return no_array();
  IGNIS_TRY(array.check());
  Array same = array;
  if (!array.is_virtual()) IGNIS_TRY(realize(same));
  if (!same.is_contiguous() || same.offset_elements() != 0 ||
      element_count(same.shape()) != element_count(same.state_->storage->shape)) {
    return clone(array);
  }
  return same;
}

Status Workspace::set_recorder(Recorder* recorder) const {
  if (recorder != nullptr && state_->recorder != nullptr) {
    return Error(ErrorCode::InvalidArgument,
                 "Calls are recorded already: a capture within another is not possible.",
                 "NestedCapture");
  }
  state_->recorder = recorder;
  if (recorder != nullptr) recorder->machine_ = state_->machine;
  return {};
}

Workspace::Pause::Pause(const Workspace& workspace) : state_(workspace.state_) { ++state_->pauses; }
Workspace::Pause::~Pause() { --state_->pauses; }

Workspace::Keeper::Keeper(const Workspace& workspace)
    : state_(workspace.state_), outer_(state_->leaves->keeper) {
  state_->leaves->keeper = &kept_;
}
Workspace::Keeper::~Keeper() { state_->leaves->keeper = outer_; }

bool Workspace::is_recording() const { return state_->is_recording(); }

Status Workspace::run(const exec::Schedule& schedule, std::vector<exec::BoundInput> inputs) const {
  return state_->run(schedule, std::move(inputs));
}

Status Workspace::run(Recording recording) const {
  recording.place_parts();
  recording.note_replayed();
  return state_->run(recording.schedule, {}, recording.variables);
}

void Workspace::note_written(const Array& array) const {
  if (array && array.state_->storage != nullptr) state_->leaves->outdate(*array.state_->storage);
}

}  // namespace ignis::engine
