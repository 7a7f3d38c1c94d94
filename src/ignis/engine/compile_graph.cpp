#include "ignis/engine/compile_graph.h"

#include "ignis/base/log.h"
#include "ignis/engine/compile_kernels.h"
#include "ignis/engine/constants.h"
#include "ignis/engine/plan_capture.h"
#include "ignis/engine/tuning.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <unordered_set>

namespace ignis::engine {
namespace {

using schedule::BufferRole;
using schedule::Schedule;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

KernelName name_kernel(const schedule::Kernel& kernel, const FoldedGraph& folded,
                       const GraphOptions& options) {
  KernelName name;
  std::set<std::string> seen;
  std::unordered_set<ir::Node> seen_nodes;
  if (!options.name_node) return name;
  for (const ir::Node& node : kernel.layers) {
    if (!seen_nodes.insert(node).second) continue;
    const auto original = folded.original.find(node);
    const NodeName words =
        options.name_node(original == folded.original.end() ? node : original->second);
    if (!words.op.empty()) name.word += (name.word.empty() ? "" : "_") + lower_case(words.op);
    if (words.layer.empty() || !seen.insert(words.layer).second) continue;
    name.layers += (name.layers.empty() ? "" : ", ") + words.layer;
  }
  return name;
}

// Turns a schedule whose kernels are compiled and whose constants have their bytes into plain data. Buffers and
// programs that only the load needed are left behind.
class Planner {
 public:
  Planner(const Schedule& schedule, CompiledKernels& kernels, const Constants& constants,
          const GraphOptions& options)
      : schedule_(schedule),
        kernels_(kernels),
        constants_(constants),
        options_(options),
        buffer_of_(schedule.buffers.size(), -1),
        program_of_(kernels.programs.size(), -1) {}

  /// `details` gets one entry for each call.
  exec::Plan make(const std::vector<KernelName>& names, const FoldedGraph& folded,
                  std::vector<CallDetails>& details) {
    for (size_t k = 0; k < schedule_.kernels.size(); ++k) {
      if (schedule_.kernels[k].at_load) continue;
      add_call(k, names[k]);
      details.push_back(call_details(k, folded));
    }
    for (size_t i = 0; i < schedule_.inputs.size(); ++i) {
      plan_.inputs.push_back(port(schedule_.inputs[i], options_.input_names, "input_", i));
    }
    for (size_t i = 0; i < schedule_.outputs.size(); ++i) {
      plan_.outputs.push_back(port(schedule_.outputs[i], options_.output_names, "output_", i));
    }
    plan_.arena_bytes = schedule_.arena_bytes;
    return std::move(plan_);
  }

 private:
  int buffer(int scheduled);
  int program(int compiled);
  void add_call(size_t kernel, const KernelName& name);
  CallDetails call_details(size_t scheduled, const FoldedGraph& folded) const;
  exec::Port port(int scheduled, const std::vector<std::string>& names, const char* prefix,
                  size_t index);

  const Schedule& schedule_;
  CompiledKernels& kernels_;
  const Constants& constants_;
  const GraphOptions& options_;
  std::vector<int> buffer_of_, program_of_;
  exec::Plan plan_;
};

exec::BufferRole role_of(BufferRole role) {
  switch (role) {
    case BufferRole::Input: return exec::BufferRole::Input;
    case BufferRole::Output: return exec::BufferRole::Output;
    case BufferRole::Constant: return exec::BufferRole::Constant;
    case BufferRole::Temporary: return exec::BufferRole::Arena;
  }
  return exec::BufferRole::Arena;
}

int Planner::buffer(int scheduled) {
  int& known = buffer_of_[static_cast<size_t>(scheduled)];
  if (known >= 0) return known;
  known = static_cast<int>(plan_.buffers.size());
  const schedule::Buffer& from = schedule_.buffers[static_cast<size_t>(scheduled)];
  const ConstantBytes& constant = constants_.buffers[static_cast<size_t>(scheduled)];
  exec::BufferPlan to;
  to.role = role_of(from.role);
  to.size_bytes = from.size_bytes();
  if (from.role == BufferRole::Temporary) {
    to.arena_offset = from.arena_offset;
    to.reads_zeros = from.layout.storage_count() != element_count(from.shape);
  }
  to.constant = constant.bytes;
  to.owner = constant.owner;
  to.name = from.name;
  plan_.buffers.push_back(std::move(to));
  return known;
}

int Planner::program(int compiled) {
  int& known = program_of_[static_cast<size_t>(compiled)];
  if (known >= 0) return known;
  known = static_cast<int>(plan_.programs.size());
  plan_.programs.push_back(std::move(kernels_.programs[static_cast<size_t>(compiled)].image));
  return known;
}

void Planner::add_call(size_t kernel, const KernelName& name) {
  const schedule::Kernel& from = schedule_.kernels[kernel];
  const int compiled = kernels_.program_of[kernel];
  const CompiledKernel& lowered = kernels_.programs[static_cast<size_t>(compiled)];
  exec::Call call;
  call.program = program(compiled);
  std::set<int> counted;
  for (const int b : from.buffers) {
    call.buffers.push_back(buffer(b));
    if (!counted.insert(b).second) continue;
    call.bytes += static_cast<double>(schedule_.buffers[static_cast<size_t>(b)].size_bytes());
  }
  call.max_parts = static_cast<int>(std::clamp<int64_t>(lowered.parallel_units, 1, 1 << 20));
  call.name = kernels_.names[static_cast<size_t>(compiled)];
  call.layer = name.layers;
  call.flops = lowered.flops;
  call.written = from.written;
  plan_.calls.push_back(std::move(call));
}

CallDetails Planner::call_details(size_t scheduled, const FoldedGraph& folded) const {
  const schedule::Kernel& kernel = schedule_.kernels[scheduled];
  CallDetails details;
  const CompiledKernel& program =
      kernels_.programs[static_cast<size_t>(kernels_.program_of[scheduled])];
  details.schedule = program.schedule;
  details.why = kernel.why;
  details.why.insert(details.why.end(), program.why.begin(), program.why.end());
  if (kernel.written.empty()) return details;
  details.slot = kernel.written[0];
  details.stores = kernel.sink.source_count();
  const int index = kernel.buffers[static_cast<size_t>(details.slot)];
  const schedule::Buffer& to = schedule_.buffers[static_cast<size_t>(index)];
  details.dtype = to.dtype;
  details.shape = to.shape;
  details.layout = to.layout;
  // The last layer is what the kernel stores. In a concatenation the buffer is larger than the value.
  if (kernel.layers.empty() || kernel.layers.back().shape() != to.shape) return details;
  details.node = kernel.layers.back();
  const auto original = folded.original.find(details.node);
  if (original != folded.original.end()) details.node = original->second;
  return details;
}

exec::Port Planner::port(int scheduled, const std::vector<std::string>& names, const char* prefix,
                         size_t index) {
  const schedule::Buffer& from = schedule_.buffers[static_cast<size_t>(scheduled)];
  exec::Port port;
  port.name = index < names.size() ? names[index] : prefix + std::to_string(index);
  port.dtype = from.dtype;
  port.shape = from.shape;
  port.buffer = buffer(scheduled);
  return port;
}

// The lowest instruction set of a device's architecture.
Target baseline_of(const runtime::Device& device) {
  Target target = make_target(device.target().arch == Arch::AArch64 ? Isa::Neon : Isa::Sse2);
  target.renderer = device.target().renderer;
  target.threads = device.threads();
  return target;
}

// Compiles the kernels of a schedule, whose names are given.
Result<CompiledKernels> compile_for(const Target& target, const Schedule& schedule,
                                    const std::vector<KernelName>& names,
                                    const GraphOptions& options, const ActionsOf* actions_of,
                                    StageTimes& times) {
  std::vector<std::string> words;
  words.reserve(names.size());
  for (const KernelName& name : names) words.push_back(name.word);
  codegen::Config config;
  config.target = target;
  config.float_level = options.float_level;
  config.optimize = options.optimize;
  std::function<void(int, int)> progress;
  if (options.progress) {
    progress = [&](int done, int total) { options.progress("compile", done, total); };
  }
  IGNIS_TRY_ASSIGN(CompiledKernels kernels,
                   compile_kernels(schedule, config, words, progress, options.seeded_fault,
                                   options.program_cache.get(), actions_of));
  times.lower_s += kernels.lower_s;
  times.compile_s += kernels.compile_s;
  times.cache_s += kernels.cache_s;
  return kernels;
}

// Takes the kernels that run at load, and their names, out of `graph`; what is returned has these only, over the same
// buffers.
std::pair<Schedule, std::vector<KernelName>> split_load_kernels(ScheduledGraph& graph) {
  Schedule at_load = graph.schedule;
  std::vector<KernelName> load_names, names;
  for (size_t k = 0; k < graph.names.size(); ++k)
    (graph.schedule.kernels[k].at_load ? load_names : names).push_back(std::move(graph.names[k]));
  graph.names = std::move(names);
  std::erase_if(at_load.kernels, [](const schedule::Kernel& kernel) { return !kernel.at_load; });
  std::erase_if(graph.schedule.kernels,
                [](const schedule::Kernel& kernel) { return kernel.at_load; });
  return {std::move(at_load), std::move(load_names)};
}

// What applies of the options' record; a foreign one is none.
Result<TuningChoices> choices_of(const GraphOptions& options, const Target& target,
                                 TuningUse& use) {
  if (options.tuning == nullptr) return TuningChoices();
  Result<TuningChoices> choices = read_choices(*options.tuning, target, options.float_level);
  if (choices || choices.error().reason() != "ForeignTuning") return choices;
  use.note = choices.error().message();
  IGNIS_LOG(Warning, "tuning") << use.note;
  return TuningChoices();
}

}  // namespace

Result<ScheduledGraph> schedule_graph(const std::vector<ir::Node>& inputs,
                                      const std::vector<ir::Node>& outputs, const Target& target,
                                      const GraphOptions& options) {
  schedule::Options schedule_options;
  schedule_options.float_level = options.float_level;
  schedule_options.winograd = options.winograd;
  schedule_options.choose_layouts = options.choose_layouts;
  schedule_options.fuse = options.fuse;
  schedule_options.chain = options.chain;
  ScheduledGraph made;
  made.folded.roots = outputs;
  if (options.graph != nullptr) {
    IGNIS_TRY_ASSIGN(made.folded, fold_constants(options.graph, outputs));
  }
  IGNIS_TRY_ASSIGN(made.schedule,
                   schedule::make_schedule(inputs, made.folded.roots, target, schedule_options));
  for (const schedule::Kernel& kernel : made.schedule.kernels)
    made.names.push_back(name_kernel(kernel, made.folded, options));
  return made;
}

Result<PlannedGraph> plan_graph(const std::vector<ir::Node>& inputs,
                                const std::vector<ir::Node>& outputs,
                                const std::shared_ptr<runtime::Device>& device,
                                const GraphOptions& options) {
  PlannedGraph planned;
  StageTimes& times = planned.report.times;
  const Clock::time_point begin = Clock::now();
  const Target& target = options.target ? *options.target : device->target();
  TuningUse& use = planned.report.tuning;
  IGNIS_TRY_ASSIGN(const TuningChoices tuned, choices_of(options, target, use));
  GraphOptions chosen = options;
  if (chosen.winograd == Choice::Auto && tuned.winograd) chosen.winograd = *tuned.winograd;
  if (chosen.chain == Choice::Auto && tuned.chain) chosen.chain = *tuned.chain;
  IGNIS_TRY_ASSIGN(ScheduledGraph graph, schedule_graph(inputs, outputs, target, chosen));
  Schedule& schedule = graph.schedule;
  times.schedule_s = seconds_since(begin);
  if (options.progress) options.progress("schedule", 1, 1);

  Constants constants;
  const bool runs_here = device->target().can_run(target);
  if (!runs_here) {
    const auto [at_load, names] = split_load_kernels(graph);
    IGNIS_TRY_ASSIGN(const CompiledKernels kernels,
                     compile_for(baseline_of(*device), at_load, names, options, nullptr, times));
    IGNIS_TRY_ASSIGN(constants, make_constants(at_load, kernels, device,
                                               runtime::deadline_after(options.timeout)));
  }
  IGNIS_TRY_ASSIGN(CompiledKernels kernels,
                   compile_for(target, schedule, graph.names, options, &tuned.actions_of, times));
  use.applied = kernels.tuned;
  use.unused = static_cast<int>(tuned.actions_of.size()) - kernels.tuned;
  if (runs_here) {
    IGNIS_TRY_ASSIGN(constants, make_constants(schedule, kernels, device,
                                               runtime::deadline_after(options.timeout)));
  }
  times.pack_s = constants.pack_s;
  planned.plan = Planner(schedule, kernels, constants, options)
                     .make(graph.names, graph.folded, planned.report.calls);
  planned.report.passes = std::move(kernels.passes);
  planned.report.lookups = std::move(kernels.lookups);
  return planned;
}

Result<CompiledGraph> compile_graph(const std::vector<ir::Node>& inputs,
                                    const std::vector<ir::Node>& outputs,
                                    const std::shared_ptr<runtime::Device>& device,
                                    const GraphOptions& options) {
  IGNIS_TRY_ASSIGN(PlannedGraph planned, plan_graph(inputs, outputs, device, options));
  const Clock::time_point capture_begin = Clock::now();
  IGNIS_TRY_ASSIGN(
      planned.plan.captured,
      capture_plan(planned.plan, device, options.target ? *options.target : device->target(),
                   options.program_cache));
  StageTimes& times = planned.report.times;
  times.capture_s = seconds_since(capture_begin);
  const Clock::time_point link_begin = Clock::now();
  IGNIS_TRY_ASSIGN(exec::Model executable, exec::Model::create(std::move(planned.plan), device));
  times.upload_s = 1e-9 * static_cast<double>(executable.prepared().uploaded.took_ns);
  times.link_s = seconds_since(link_begin) - times.upload_s;
  return CompiledGraph{std::move(executable), std::move(planned.report)};
}

}  // namespace ignis::engine
