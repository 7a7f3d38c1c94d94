#include "ignis/engine/session.h"

#include "ignis/engine/compile_graph.h"
#include "ignis/engine/model_probe.h"
#include "ignis/engine/pack.h"
#include "ignis/engine/plan_capture.h"
#include "ignis/engine/session_graph.h"
#include "ignis/exec/artifact.h"
#include "ignis/interp/interp.h"
#include "ignis/onnx/import.h"
#include "ignis/runtime/device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <unordered_map>

namespace ignis {
namespace {

using Clock = std::chrono::steady_clock;
using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

int64_t byte_count(const PortInfo& port) {
  return element_count(port.shape) * size_bytes(port.dtype);
}

PortInfo port_of(std::string name, const ir::Node& node) {
  return {std::move(name), strong(node.dtype()), node.shape()};
}

// Finds each tap among the layers. Errors: NotFound.
Result<std::vector<ir::Node>> find_taps(const onnx::Model& model,
                                        const std::vector<std::string>& taps) {
  std::vector<ir::Node> nodes;
  for (const std::string& tap : taps) {
    const onnx::Layer* found = nullptr;
    for (const onnx::Layer& layer : model.layers) {
      if (layer.name != tap && layer.output != tap) continue;
      found = &layer;
      if (layer.output == tap) break;  // outputs are unique, names need not be
    }
    if (found == nullptr) {
      return Error(ErrorCode::NotFound, "The model has no layer or layer output '" + tap + "'.",
                   "UnknownTap");
    }
    nodes.push_back(found->value);
  }
  return nodes;
}

}  // namespace

struct Session::State {
  SessionOptions options;
  onnx::Model model;  // empty when made from tensors
  std::shared_ptr<ir::Graph> graph;
  std::vector<ir::Node> input_nodes, output_nodes;  // outputs: the model's, then the taps
  size_t model_output_count = 0;
  std::vector<PortInfo> inputs, outputs;
  std::shared_ptr<runtime::Device> device;
  Target target;                            // of the programs
  std::optional<exec::Plan> plan_only;      // after compile_for
  std::optional<exec::Model> program;       // absent on the reference device and after compile_for
  std::optional<exec::Model> tap_program;   // absent without taps
  std::optional<engine::ModelProbe> probe;  // of the program, when it was asked for
  engine::GraphReport report;               // of the program; lookups of the taps', too
  bool has_run = false;
  // Filled anew at each run; sized once, so that a run allocates nothing.
  std::vector<ConstBytes> input_bytes;
  std::vector<Bytes> output_bytes;

  bool is_reference() const { return device->target().renderer == "interp"; }
  Status open();
  Status take_artifact(const exec::Artifact& artifact, const std::string& path,
                       const std::string& part);
  Status import(const std::string& path);
  Status take_graph(const std::vector<NamedTensor>& given_inputs,
                    const std::vector<NamedTensor>& given_outputs);
  Status compile();
  Status compile_plan_only();
  void take_report(engine::GraphReport made);
  Status check_can_run() const;
  const exec::Plan* plan() const {
    return plan_only ? &*plan_only : program ? &program->plan() : nullptr;
  }
  engine::GraphOptions graph_options(size_t first_port, size_t count) const;
  Result<exec::Model> compile_outputs(std::span<const ir::Node> nodes, size_t first_port,
                                      bool is_main);
  Status check_inputs(const std::vector<HostTensor>& given) const;
  Status run_bytes(std::span<runtime::LaunchTime> stamps, runtime::Deadline deadline);
  Status run_programs(std::span<runtime::LaunchTime> stamps, runtime::Deadline deadline);
  Status profile(const void* const* given_inputs, void* const* given_outputs,
                 std::vector<CallInfo>* calls, RunStages* stages, runtime::Deadline deadline);
  Status run_reference();
};

Status Session::State::open() {
  runtime::DeviceOptions device_options;
  device_options.threads = options.threads;
  device_options.spin = options.spin;
  device_options.shares_threads = options.shares_threads;
  IGNIS_TRY_ASSIGN(device, runtime::open_device(options.device, device_options));
  target = device->target();
  return {};
}

Status Session::State::take_artifact(const exec::Artifact& artifact, const std::string& path,
                                     const std::string& part) {
  if (!options.dims.empty() || !options.shapes.empty() || !options.constants.empty() ||
      !options.taps.empty() || options.seeded_fault >= 0) {
    return Error(ErrorCode::InvalidArgument,
                 "'" + path +
                     "' is compiled already: its dims, shapes and constants are bound, and it has "
                     "no layers to tap. Compile the model again with the options.",
                 "WrongOption");
  }
  if (is_reference()) {
    return Error(ErrorCode::Unsupported,
                 "'" + path + "' holds programs, and the reference device runs graphs.",
                 "TargetMismatch");
  }
  const Clock::time_point begin = Clock::now();
  Result<exec::Plan> plan = artifact.plan_for(device->target(), part);
  if (!plan) return std::move(plan).error().with_context(path);
  report.times.import_s += seconds_since(begin);
  const Clock::time_point link_begin = Clock::now();
  IGNIS_TRY_ASSIGN(exec::Model executable, exec::Model::create(*std::move(plan), device));
  report.times.upload_s = 1e-9 * static_cast<double>(executable.prepared().uploaded.took_ns);
  report.times.link_s = seconds_since(link_begin) - report.times.upload_s;
  program.emplace(std::move(executable));
  for (const exec::Port& port : program->plan().inputs) {
    inputs.push_back({port.name, port.dtype, port.shape});
  }
  for (const exec::Port& port : program->plan().outputs) {
    outputs.push_back({port.name, port.dtype, port.shape});
  }
  model_output_count = outputs.size();
  input_bytes.resize(inputs.size());
  output_bytes.resize(outputs.size());
  return {};
}

Status Session::State::take_graph(const std::vector<NamedTensor>& given_inputs,
                                  const std::vector<NamedTensor>& given_outputs) {
  if (!options.dims.empty() || !options.shapes.empty() || !options.constants.empty() ||
      !options.taps.empty()) {
    return Error(ErrorCode::InvalidArgument,
                 "A session of tensors takes no dims, shapes, constants or taps: write them into "
                 "the tensors.",
                 "WrongOption");
  }
  if (given_outputs.empty()) {
    return Error(ErrorCode::InvalidArgument, "The session is given no output.", "WrongCount");
  }
  graph = given_outputs.front().value.graph();
  for (size_t i = 0; i < given_inputs.size(); ++i) {
    const ir::Node& node = given_inputs[i].value.node();
    if (!node || !node.is(ir::Op::Param) ||
        ir::decode_param(node).slot != static_cast<int64_t>(i)) {
      return Error(ErrorCode::InvalidArgument,
                   "'" + given_inputs[i].name + "' is not the graph's input of slot " +
                       std::to_string(i) + ".",
                   "NotAnInput");
    }
    input_nodes.push_back(node);
    inputs.push_back(port_of(given_inputs[i].name, node));
  }
  for (const NamedTensor& output : given_outputs) {
    if (!output.value || output.value.graph() != graph) {
      return Error(ErrorCode::InvalidArgument,
                   "Output '" + output.name + "' is no tensor of the first output's graph.",
                   "WrongGraph");
    }
    output_nodes.push_back(tensor::commit(output.value).node());
    outputs.push_back(port_of(output.name, output_nodes.back()));
  }
  for (const ir::Node& node : ir::toposort(output_nodes)) {
    if (!node.is(ir::Op::Param)) continue;
    if (std::find(input_nodes.begin(), input_nodes.end(), node) != input_nodes.end()) continue;
    return Error(
        ErrorCode::InvalidArgument,
        "The outputs depend on '" + ir::decode_param(node).name + "', which is no given input.",
        "MissingInput");
  }
  model_output_count = output_nodes.size();
  input_bytes.resize(inputs.size());
  output_bytes.resize(outputs.size());
  return {};
}

Status Session::State::import(const std::string& path) {
  const Clock::time_point begin = Clock::now();
  IGNIS_TRY_ASSIGN(model, engine::import_for_session(path, options));
  graph = model.graph;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    input_nodes.push_back(model.inputs[i].node());
    inputs.push_back(port_of(model.input_names[i], input_nodes.back()));
  }
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    output_nodes.push_back(model.outputs[i].node());
    outputs.push_back(port_of(model.output_names[i], output_nodes.back()));
  }
  model_output_count = output_nodes.size();
  IGNIS_TRY_ASSIGN(const std::vector<ir::Node> taps, find_taps(model, options.taps));
  for (size_t i = 0; i < taps.size(); ++i) {
    output_nodes.push_back(taps[i]);
    outputs.push_back(port_of(options.taps[i], taps[i]));
  }
  input_bytes.resize(inputs.size());
  output_bytes.resize(outputs.size());
  report.times.import_s = seconds_since(begin);
  if (options.progress) options.progress("import", 1, 1);
  return {};
}

engine::GraphOptions Session::State::graph_options(size_t first_port, size_t count) const {
  engine::GraphOptions graph_options = engine::graph_options_of(options, model);
  graph_options.graph = graph;
  for (const PortInfo& port : inputs) graph_options.input_names.push_back(port.name);
  for (size_t i = 0; i < count; ++i) {
    graph_options.output_names.push_back(outputs[first_port + i].name);
  }
  return graph_options;
}

// The file was read before.
void Session::State::take_report(engine::GraphReport made) {
  made.times.import_s = report.times.import_s;
  report = std::move(made);
}

// Compiles `nodes`, which are the session's outputs from `first_port` on. The main program's times are the session's.
Result<exec::Model> Session::State::compile_outputs(std::span<const ir::Node> nodes,
                                                    size_t first_port, bool is_main) {
  engine::GraphOptions compile_options = graph_options(first_port, nodes.size());
  compile_options.seeded_fault = is_main ? options.seeded_fault : -1;
  IGNIS_TRY_ASSIGN(
      engine::CompiledGraph compiled,
      engine::compile_graph(input_nodes, {nodes.begin(), nodes.end()}, device, compile_options));
  if (is_main) {
    take_report(std::move(compiled.report));
  } else {
    std::ranges::move(compiled.report.lookups, std::back_inserter(report.lookups));
  }
  return std::move(compiled.executable);
}

Status Session::State::compile() {
  if (is_reference()) return {};
  const std::span<const ir::Node> nodes(output_nodes);
  IGNIS_TRY_ASSIGN(exec::Model main, compile_outputs(nodes.first(model_output_count), 0, true));
  program.emplace(std::move(main));
  if (nodes.size() == model_output_count) return {};
  IGNIS_TRY_ASSIGN(exec::Model tapped,
                   compile_outputs(nodes.subspan(model_output_count), model_output_count, false));
  tap_program.emplace(std::move(tapped));
  return {};
}

Status Session::State::compile_plan_only() {
  if (is_reference()) {
    return Error(ErrorCode::Unsupported,
                 "Programs for " + target.name() + " are wanted, and '" + options.device +
                     "' is the reference device, which has none.",
                 "TargetMismatch");
  }
  engine::GraphOptions compile_options = graph_options(0, output_nodes.size());
  compile_options.target = target;
  IGNIS_TRY_ASSIGN(engine::PlannedGraph compiled,
                   engine::plan_graph(input_nodes, output_nodes, device, compile_options));
  take_report(std::move(compiled.report));
  IGNIS_TRY_ASSIGN(compiled.plan.captured,
                   engine::capture_plan(compiled.plan, device, target, options.program_cache));
  plan_only.emplace(std::move(compiled.plan));
  return {};
}

Status Session::State::check_can_run() const {
  if (!plan_only) return {};
  return Error(ErrorCode::Unsupported,
               "The session was compiled for " + target.name() +
                   " and for its plan only; load the model to run it here, on " +
                   device->target().name() + ".",
               "TargetMismatch");
}

Status Session::State::check_inputs(const std::vector<HostTensor>& given) const {
  IGNIS_TRY(check_can_run());
  if (given.size() != inputs.size()) {
    return Error(ErrorCode::InvalidArgument,
                 std::to_string(given.size()) + " inputs are given; the model has " +
                     std::to_string(inputs.size()) + ".",
                 "WrongCount");
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const PortInfo& port = inputs[i];
    if (given[i].dtype != port.dtype || given[i].shape != port.shape) {
      return Error(ErrorCode::InvalidArgument,
                   "Input '" + port.name + "' is " + std::string(to_string(given[i].dtype)) + " " +
                       to_string(given[i].shape) + "; the model takes " +
                       std::string(to_string(port.dtype)) + " " + to_string(port.shape) + ".",
                   "WrongShape");
    }
    if (static_cast<int64_t>(given[i].bytes.size()) != byte_count(port)) {
      return Error(ErrorCode::InvalidArgument,
                   "Input '" + port.name + "' has " + std::to_string(given[i].bytes.size()) +
                       " bytes; its shape needs " + std::to_string(byte_count(port)) + ".",
                   "WrongSize");
    }
  }
  return {};
}

Status Session::State::run_programs(std::span<runtime::LaunchTime> stamps,
                                    runtime::Deadline deadline) {
  const std::span<const Bytes> all(output_bytes);
  const std::span<const Bytes> main = all.first(model_output_count);
  if (stamps.empty()) {
    IGNIS_TRY(program->run(input_bytes, main, deadline));
  } else {
    if (!probe) probe.emplace(*program);
    IGNIS_TRY(probe->profile(input_bytes, main, deadline, stamps));
  }
  if (!tap_program) return {};
  return tap_program->run(input_bytes, all.subspan(model_output_count), deadline);
}

// The reference works on tensors of its own: it copies, and it is not made for speed.
Status Session::State::run_reference() {
  std::vector<HostTensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    HostTensor value;
    value.dtype = inputs[i].dtype;
    value.shape = inputs[i].shape;
    value.bytes.assign(input_bytes[i].begin(), input_bytes[i].end());
    values.push_back(std::move(value));
  }
  IGNIS_TRY_ASSIGN(const std::vector<HostTensor> results, interp::evaluate(output_nodes, values));
  for (size_t i = 0; i < results.size(); ++i) {
    IGNIS_CHECK(results[i].bytes.size() == output_bytes[i].size());
    if (!results[i].bytes.empty()) {
      std::memcpy(output_bytes[i].data(), results[i].bytes.data(), results[i].bytes.size());
    }
  }
  return {};
}

Status Session::State::run_bytes(std::span<runtime::LaunchTime> stamps,
                                 runtime::Deadline deadline) {
  const Clock::time_point begin = Clock::now();
  IGNIS_TRY(is_reference() ? run_reference() : run_programs(stamps, deadline));
  if (!has_run) report.times.first_run_s = seconds_since(begin);
  has_run = true;
  return {};
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::load(const std::string& path, const SessionOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  IGNIS_TRY(state->open());
  if (exec::is_artifact(path)) {
    const Clock::time_point begin = Clock::now();
    IGNIS_TRY_ASSIGN(const exec::Artifact artifact, exec::Artifact::open(path));
    state->report.times.import_s = seconds_since(begin);
    IGNIS_TRY(state->take_artifact(artifact, path, ""));
    return Session(std::move(state));
  }
  IGNIS_TRY(state->import(path));
  IGNIS_TRY(state->compile());
  return Session(std::move(state));
}

Result<Session> Session::compile_for(const std::string& path, const Target& target,
                                     const SessionOptions& options) {
  if (exec::is_artifact(path)) {
    return Error(ErrorCode::InvalidArgument,
                 "'" + path + "' is compiled already; a target is chosen when a model is compiled.",
                 "WrongOption");
  }
  if (!options.taps.empty()) {
    return Error(ErrorCode::InvalidArgument,
                 "Tap '" + options.taps.front() +
                     "' is asked for where a model is compiled for its plan only: taps are values "
                     "of a run.",
                 "WrongOption");
  }
  auto state = std::make_unique<State>();
  state->options = options;
  IGNIS_TRY(state->open());
  state->target = target;
  IGNIS_TRY(state->import(path));
  IGNIS_TRY(state->compile_plan_only());
  return Session(std::move(state));
}

Result<Session> Session::from_artifact(const exec::Artifact& artifact, const std::string& name,
                                       const SessionOptions& options, const std::string& part) {
  auto state = std::make_unique<State>();
  state->options = options;
  IGNIS_TRY(state->open());
  IGNIS_TRY(state->take_artifact(artifact, name, part));
  return Session(std::move(state));
}

Result<Session> Session::from_graph(const std::vector<NamedTensor>& inputs,
                                    const std::vector<NamedTensor>& outputs,
                                    const SessionOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  IGNIS_TRY(state->open());
  IGNIS_TRY(state->take_graph(inputs, outputs));
  IGNIS_TRY(state->compile());
  return Session(std::move(state));
}

Result<Session> Session::compile_graph_for(const std::vector<NamedTensor>& inputs,
                                           const std::vector<NamedTensor>& outputs,
                                           const Target& target, const SessionOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  IGNIS_TRY(state->open());
  state->target = target;
  IGNIS_TRY(state->take_graph(inputs, outputs));
  IGNIS_TRY(state->compile_plan_only());
  return Session(std::move(state));
}

const std::vector<PortInfo>& Session::inputs() const { return state_->inputs; }
const std::vector<PortInfo>& Session::outputs() const { return state_->outputs; }

Result<std::vector<HostTensor>> Session::run(const std::vector<HostTensor>& inputs) {
  State& state = *state_;
  IGNIS_TRY(state.check_inputs(inputs));
  // Shared: after a lost device an abandoned thread may still read and write these.
  struct Kept {
    std::vector<HostTensor> inputs, outputs;
  };
  const auto kept = std::make_shared<Kept>();
  for (const PortInfo& port : state.outputs) {
    kept->outputs.push_back(HostTensor::zeros(port.dtype, port.shape));
  }
  kept->inputs = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) state.input_bytes[i] = kept->inputs[i].bytes;
  for (size_t i = 0; i < kept->outputs.size(); ++i) state.output_bytes[i] = kept->outputs[i].bytes;
  Status status = state.run_bytes({}, runtime::deadline_after(state.options.timeout));
  if (!status && !state.device->state()) runtime::abandon(kept);
  IGNIS_TRY(std::move(status));
  return std::move(kept->outputs);
}

Status Session::run_raw(const void* const* inputs, void* const* outputs,
                        std::optional<Clock::time_point> deadline) {
  return state_->profile(inputs, outputs, nullptr, nullptr,
                         deadline ? *deadline : runtime::deadline_after(state_->options.timeout));
}

Status Session::profile(const void* const* inputs, void* const* outputs,
                        std::vector<CallInfo>* calls, RunStages* stages) {
  return state_->profile(inputs, outputs, calls, stages,
                         runtime::deadline_after(state_->options.timeout));
}

Status Session::State::profile(const void* const* given_inputs, void* const* given_outputs,
                               std::vector<CallInfo>* calls, RunStages* stages,
                               runtime::Deadline deadline) {
  IGNIS_TRY(check_can_run());
  for (size_t i = 0; i < inputs.size(); ++i) {
    input_bytes[i] = {static_cast<const std::byte*>(given_inputs[i]),
                      static_cast<size_t>(byte_count(inputs[i]))};
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    output_bytes[i] = {static_cast<std::byte*>(given_outputs[i]),
                       static_cast<size_t>(byte_count(outputs[i]))};
  }
  if (calls == nullptr) return run_bytes({}, deadline);
  calls->clear();
  if (is_reference()) return run_bytes({}, deadline);
  const std::vector<exec::Call>& planned = program->plan().calls;
  std::vector<runtime::LaunchTime> stamps(planned.size());
  const Clock::time_point begin = Clock::now();
  IGNIS_TRY(run_bytes(stamps, deadline));
  const Clock::time_point end = Clock::now();
  const auto in_seconds = [](runtime::LaunchTime time) {
    return std::chrono::duration<double>(time.end - time.begin).count();
  };
  for (size_t i = 0; i < planned.size(); ++i) {
    calls->push_back({planned[i].name, planned[i].layer, planned[i].flops, planned[i].bytes,
                      in_seconds({stamps.front().begin, stamps[i].begin}), in_seconds(stamps[i])});
    if (i >= report.calls.size()) continue;
    calls->back().schedule = report.calls[i].schedule;
    calls->back().why = report.calls[i].why;
  }
  if (stages != nullptr && !stamps.empty()) {
    *stages = {in_seconds({begin, stamps.front().begin}),
               in_seconds({stamps.front().begin, stamps.back().end}),
               in_seconds({stamps.back().end, end})};
  }
  return {};
}

Status Session::compare_kernels(const std::vector<HostTensor>& inputs,
                                const std::function<Status(KernelComparison)>& each) {
  State& state = *state_;
  IGNIS_TRY(state.check_inputs(inputs));
  if (state.is_reference()) return {};
  if (state.graph == nullptr) {
    return Error(ErrorCode::Unsupported,
                 "An artifact holds programs, not the graph to compare them with; verify the model "
                 "it was made from.",
                 "NoGraph");
  }
  std::vector<ConstBytes> input_bytes;
  for (const HostTensor& input : inputs) input_bytes.emplace_back(input.bytes);
  std::vector<HostTensor> outputs;
  std::vector<Bytes> output_bytes;
  for (size_t i = 0; i < state.model_output_count; ++i) {
    outputs.push_back(HostTensor::zeros(state.outputs[i].dtype, state.outputs[i].shape));
    output_bytes.emplace_back(outputs.back().bytes);
  }
  const std::vector<exec::Call>& calls = state.program->plan().calls;
  std::vector<KernelComparison> found;
  std::vector<ir::Node> nodes;
  const auto keep = [&](size_t call, std::span<void* const> buffers) -> Status {
    const engine::CallDetails& value = state.report.calls[call];
    if (!value.node) return {};
    KernelComparison comparison;
    comparison.call = static_cast<int>(call);
    comparison.kernel = calls[call].name;
    comparison.layer = calls[call].layer;
    comparison.stores = value.stores;
    comparison.got =
        engine::read_layout(static_cast<const std::byte*>(buffers[static_cast<size_t>(value.slot)]),
                            value.dtype, value.shape, value.layout);
    found.push_back(std::move(comparison));
    nodes.push_back(value.node);
    return {};
  };
  engine::ModelProbe probe(*state.program);
  IGNIS_TRY(probe.run_stepwise(input_bytes, output_bytes,
                               runtime::deadline_after(state.options.timeout), keep));
  return interp::evaluate_each(nodes, inputs, [&](size_t i, HostTensor want) {
    found[i].want = std::move(want);
    return each(std::move(found[i]));
  });
}

const StageTimes& Session::times() const { return state_->report.times; }
const std::vector<PassTime>& Session::pass_times() const { return state_->report.passes; }
const std::vector<ProgramLookup>& Session::program_lookups() const {
  return state_->report.lookups;
}
const TuningUse& Session::tuning_use() const { return state_->report.tuning; }
const Target& Session::target() const { return state_->target; }

bool Session::is_lost() const { return !state_->device->state(); }

const exec::Plan* Session::plan() const { return state_->plan(); }

int64_t Session::arena_bytes() const { return plan() != nullptr ? plan()->arena_bytes : 0; }

int64_t Session::constant_bytes() const {
  if (plan() == nullptr) return 0;
  int64_t bytes = 0;
  for (const exec::BufferPlan& buffer : plan()->buffers) {
    if (buffer.role == exec::BufferRole::Constant) bytes += buffer.size_bytes;
  }
  return bytes;
}

int Session::kernel_count() const {
  return plan() != nullptr ? static_cast<int>(plan()->calls.size()) : 0;
}

int Session::program_count() const {
  return plan() != nullptr ? static_cast<int>(plan()->programs.size()) : 0;
}

}  // namespace ignis
