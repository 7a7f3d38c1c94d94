#include "ignis/engine/compile_graph.h"
#include "ignis/engine/eager/state.h"
#include "ignis/exec/run_linked.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace ignis::engine {

using ir::Node;

void place_storage(exec::Schedule& schedule, int buffer, const Storage& storage) {
  if (storage.lanes.size() == 1) return place_buffer(schedule, buffer, storage.placement());
  exec::ScheduleBuffer& to = schedule.buffers[static_cast<size_t>(buffer)];
  to.input = -1;
  to.devices.clear();
  to.memory.clear();
  for (const StorageLane& lane : storage.lanes) {
    to.devices.push_back(lane.device);
    to.memory.push_back(lane.memory);
  }
}

std::vector<exec::ScheduleCall> make_copies(const Storage& to, int to_buffer, const Storage& from,
                                            int from_buffer) {
  exec::ScheduleCall whole;
  whole.kind = exec::CallKind::Copy;
  whole.name = "copy";
  whole.outs = {0};
  whole.ins = {1};
  whole.arguments.resize(2);
  whole.arguments[0].buffer = to_buffer;
  whole.arguments[1].buffer = from_buffer;
  whole.bytes = static_cast<double>(std::min(to.size_bytes, from.size_bytes));
  if (to.lanes.size() == from.lanes.size()) return {whole};
  // Parts of the single one, one for each lane.
  const size_t many = to.lanes.size() > from.lanes.size() ? 0 : 1;
  const size_t count = std::max(to.lanes.size(), from.lanes.size());
  const auto part_bytes = static_cast<int64_t>(std::min(to.size_bytes, from.size_bytes));
  std::vector<exec::ScheduleCall> made(count, whole);
  for (size_t lane = 0; lane < count; ++lane) {
    const auto at = static_cast<int64_t>(lane);
    exec::ViewStep select, part;
    select.kind = exec::ViewStep::Kind::Lane;
    select.lane = static_cast<int>(lane);
    part.begin = at * part_bytes;
    part.end = (at + 1) * part_bytes;
    made[lane].arguments[many].steps = {select};
    made[lane].arguments[1 - many].steps = {part};
  }
  return made;
}

Result<std::vector<runtime::MemoryRef>> allocate_zeroed_lanes(exec::Machine& machine,
                                                              const std::string& devices,
                                                              uint64_t size_bytes) {
  std::vector<runtime::MemoryRef> lanes;
  for (const std::string& device : split_devices(devices)) {
    IGNIS_TRY_ASSIGN(runtime::MemoryRef memory, allocate_zeroed(machine, device, size_bytes));
    lanes.push_back(std::move(memory));
  }
  return lanes;
}

Status WorkspaceState::run(const exec::Schedule& schedule, std::vector<exec::BoundInput> inputs,
                           const std::vector<std::string>& names) {
  std::vector<int64_t> values;
  for (const std::string& name : names) values.push_back(variables.at(name).value);
  IGNIS_TRY_ASSIGN(const exec::TemplateRef made,
                   templates->compile(schedule, environment(), true, &inputs));
  IGNIS_TRY_ASSIGN(const std::shared_ptr<exec::LinkedSchedule> linked,
                   exec::link(machine, made, inputs, {.allow_cache = true}));
  ++counts.runs;
  Status status = exec::run(
      *linked, inputs, {.waits = options.waits, .variables = values, .limits = options.limits});
  if (!status && machine->host() != nullptr && !machine->host()->is_online()) {
    // A stuck thread of the host may still be at it.
    runtime::abandon(std::make_shared<std::vector<exec::BoundInput>>(std::move(inputs)));
  }
  return status;
}

Result<std::string> WorkspaceState::choose_device(const Expression& expression,
                                                  const std::string& asked) const {
  const Storage* first = nullptr;
  bool reads_external = false;
  for (const StorageRef& input : expression.inputs) {
    if (!input->variable.empty()) continue;
    if (input->memory_class == exec::MemoryClass::External) {
      reads_external = true;  // every device maps it, or says that it can't
      continue;
    }
    if (first == nullptr) first = input.get();
    if (first->device == input->device) continue;
    return Error(ErrorCode::InvalidArgument,
                 "The expression reads '" + first->name + "' on " + first->device + " and '" +
                     input->name + "' on " + input->device + "; copy one of them first.",
                 "WrongDevice");
  }
  if (first != nullptr) {
    if (asked.empty() || asked == first->device) return first->device;
    return Error(ErrorCode::InvalidArgument,
                 "The value is wanted on " + asked + " and reads '" + first->name + "' on " +
                     first->device + "; copy_to() moves it.",
                 "WrongDevice");
  }
  if (!asked.empty()) return asked;
  return reads_external ? machine->options().host_name : options.default_device;
}

Result<std::shared_ptr<CompiledPlan>> WorkspaceState::find_plan(const Expression& expression,
                                                                const std::string& device,
                                                                std::string& key) {
  Pattern pattern = make_pattern(expression);
  key = device + '\n' + pattern.key;
  if (const auto found = plan_of.find(key); found != plan_of.end()) {
    ++counts.plan_hits;
    plans.splice(plans.begin(), plans, found->second);
    return found->second->plan;
  }
  const PatternGraph local = make_graph(expression);
  GraphOptions graph_options;
  graph_options.graph = local.graph;
  graph_options.float_level = options.float_level;
  graph_options.program_cache = options.program_cache;
  graph_options.timeout = std::chrono::nanoseconds(options.limits.deadline_ns);
  IGNIS_TRY_ASSIGN(PlannedGraph planned,
                   plan_graph(local.inputs, local.roots, host, graph_options));
  ++counts.plans_made;
  auto made = std::make_shared<CompiledPlan>();
  made->plan = std::move(planned.plan);
  made->held = std::move(pattern.held);
  plans.push_front({key, made});
  plan_of[key] = plans.begin();
  while (plans.size() > static_cast<size_t>(std::max(1, options.most_plans))) {
    plan_of.erase(plans.back().key);
    plans.pop_back();
  }
  return made;
}

void WorkspaceState::forget_lost_memory(CompiledPlan& plan, const std::string& device) const {
  std::vector<uint64_t> generations;
  for (const std::string& name : split_devices(device)) {
    const runtime::QueuedDevice* open = machine->find(name);
    generations.push_back(open == nullptr ? 1 : open->generation());
  }
  if (generations == plan.generations) return;
  plan.eager.reset();
  plan.split.reset();
  plan.generations = std::move(generations);
}

Status WorkspaceState::execute(CompiledPlan& plan, const std::string& key,
                               const Expression& expression, const std::vector<StorageRef>& outputs,
                               const std::string& device, bool draws_random) {
  for (const StorageRef& input : expression.inputs) IGNIS_TRY(check_usable(*input));
  forget_lost_memory(plan, device);
  PlanScheduleOptions schedule_options;
  schedule_options.device = device;
  schedule_options.constant_memory = constants->hook();
  std::vector<StorageRef> ports = expression.inputs;
  ports.insert(ports.end(), outputs.begin(), outputs.end());
  if (is_recording()) {
    if (!plan.split) {
      schedule_options.splits_arena = true;
      IGNIS_TRY_ASSIGN(plan.split, plan_schedule(plan.plan, schedule_options));
    }
    return recorder->add(*plan.split, key, ports, device, draws_random);
  }
  if (!plan.eager) {
    IGNIS_TRY_ASSIGN(PlanSchedule made, plan_schedule(plan.plan, schedule_options));
    if (made.arena >= 0) {
      exec::ScheduleBuffer& arena = made.schedule.buffers[static_cast<size_t>(made.arena)];
      IGNIS_TRY_ASSIGN(arena.memory, allocate_zeroed_lanes(*machine, device, arena.size_bytes));
    }
    plan.eager = std::move(made);
  }
  exec::Schedule schedule = plan.eager->schedule;
  std::vector<std::string> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    const size_t count = plan.eager->inputs.size();
    const int number = i < count ? plan.eager->inputs[i] : plan.eager->outputs[i - count];
    if (ports[i]->variable.empty()) {
      place_storage(schedule, number, *ports[i]);
      continue;
    }
    exec::ScheduleBuffer& cell = schedule.buffers[static_cast<size_t>(number)];
    cell.input = -1;
    cell.devices = {machine->options().host_name};
    cell.variable = static_cast<int>(names.size());
    names.push_back(ports[i]->variable);
  }
  return run(schedule, {}, names);
}

Status WorkspaceState::copy(const StorageRef& to, const StorageRef& from) {
  IGNIS_TRY(check_usable(*from));
  if (is_recording()) {
    recorder->add_copy(to, from);
    return {};
  }
  exec::Schedule schedule;
  schedule.buffers.resize(2);
  schedule.calls = make_copies(*to, 0, *from, 1);
  for (const int i : {0, 1}) {
    const Storage& storage = i == 0 ? *to : *from;
    exec::ScheduleBuffer& buffer = schedule.buffers[static_cast<size_t>(i)];
    buffer.name = storage.name;
    buffer.size_bytes = storage.size_bytes;
    place_storage(schedule, i, storage);
  }
  return run(schedule, {});
}

Result<std::vector<StorageRef>> WorkspaceState::compute(std::vector<Node> roots,
                                                        const std::string& device,
                                                        bool draws_random) {
  // Every value has storage of its own, also one that is asked for twice or that lies in a storage already.
  const std::vector<Node> asked = roots;
  std::unordered_set<Node> seen;
  ir::Graph& graph = *leaves->graph();
  for (Node& root : roots) {
    if (root.is(ir::Op::Param) || leaves->computed(root) != nullptr) {
      root = graph.make(ir::Op::Contiguous, root.dtype(), {root});
    }
    while (!seen.insert(root).second) {
      root = graph.make(ir::Op::Contiguous, root.dtype(), {root});
    }
  }
  IGNIS_TRY_ASSIGN(const Expression expression, read_expression(*leaves, roots));
  IGNIS_TRY_ASSIGN(const std::string where, choose_device(expression, device));
  std::string key;
  IGNIS_TRY_ASSIGN(const std::shared_ptr<CompiledPlan> plan, find_plan(expression, where, key));
  std::vector<StorageRef> made;
  for (const Node& root : roots) {
    made.push_back(leaves->make(root.dtype(), root.shape(), where));
    if (!is_recording()) IGNIS_TRY(allocate(*made.back()));
  }
  IGNIS_TRY(execute(*plan, key, expression, made, where, draws_random));
  // Numbers that read no array are worth no more than their expression, which any device has.
  // What a run-time variable went into has another value when it is bound anew.
  const bool is_lasting =
      !draws_random && !expression.inputs.empty() &&
      std::none_of(expression.inputs.begin(), expression.inputs.end(),
                   [](const StorageRef& input) { return !input->variable.empty(); });
  for (size_t i = 0; i < made.size() && is_lasting; ++i) {
    leaves->note_computed(*made[i], asked[i], expression.inputs);
  }
  return made;
}

Status WorkspaceState::assign(const StorageRef& to, const Node& value) {
  Node root = value;
  if (root.is(ir::Op::Param)) {
    root = leaves->graph()->make(ir::Op::Contiguous, root.dtype(), {root});
  }
  IGNIS_TRY_ASSIGN(const Expression expression, read_expression(*leaves, {root}));
  IGNIS_TRY_ASSIGN(const std::string where, choose_device(expression, to->device));
  if (to->contents == Contents::Poisoned && expression.reads(*to)) return check_usable(*to);
  if (to->contents == Contents::Recorded && !is_recording()) return check_usable(*to);
  std::string key;
  IGNIS_TRY_ASSIGN(const std::shared_ptr<CompiledPlan> plan, find_plan(expression, where, key));
  // In place when each element is read before it is written, and by nobody else: one call, element by element.
  const bool is_in_place =
      !expression.reads(*to) || (expression.reads_aligned(*to) && plan->plan.calls.size() == 1);
  StorageRef target = to;
  if (!is_in_place) {
    target = leaves->make(to->dtype, to->shape, where);
    if (!is_recording()) IGNIS_TRY(allocate(*target));
  }
  const uint64_t runs = counts.runs;
  Status status = execute(*plan, key, expression, {target}, where);
  // What did not begin, or wrote elsewhere, has not touched it.
  if (!status && (!is_in_place || counts.runs == runs)) return status;
  if (!is_in_place) status = copy(to, target);
  leaves->outdate(*to);
  if (!is_recording()) to->contents = status ? Contents::Known : Contents::Poisoned;
  return status;
}

Result<ProgramImage> WorkspaceState::copy_program(uint64_t size_bytes) {
  const std::string key = std::to_string(size_bytes);
  std::shared_ptr<CompiledPlan>& known = copy_programs[key];
  if (known == nullptr) {
    const auto graph = std::make_shared<ir::Graph>();
    const tensor::Tensor from =
        tensor::Tensor::input(graph, 0, "from", DType::UInt8, {static_cast<int64_t>(size_bytes)});
    GraphOptions graph_options;
    graph_options.program_cache = options.program_cache;
    IGNIS_TRY_ASSIGN(
        PlannedGraph planned,
        plan_graph({from.node()}, {tensor::contiguous(from).node()}, host, graph_options));
    known = std::make_shared<CompiledPlan>();
    known->plan = std::move(planned.plan);
  }
  const exec::Plan& plan = known->plan;
  const bool fits = plan.calls.size() == 1 && plan.calls[0].buffers.size() == 2 &&
                    plan.calls[0].written == std::vector<int>{0};
  if (!fits) {
    return Error(ErrorCode::Internal, "A copy of " + key +
                                          " bytes is no single program with the slots destination, "
                                          "source.");
  }
  return plan.programs[0];
}

}  // namespace ignis::engine
