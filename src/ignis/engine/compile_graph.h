#pragma once

#include "ignis/engine/fold_constants.h"
#include "ignis/engine/session.h"
#include "ignis/exec/artifact_sections.h"
#include "ignis/exec/model.h"
#include "ignis/ir/graph.h"
#include "ignis/runtime/device.h"
#include "ignis/schedule/schedule.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ignis::engine {

/// What kernels are called after: the words for one node of the tensor graph.
struct NodeName {
  std::string op;     ///< "Conv"
  std::string layer;  ///< the model's name for it
};

struct GraphOptions {
  /// What the programs are for; empty: the device's own target. It need not be able to run them.
  std::optional<Target> target;
  /// The nodes' graph; when given, small constant parts are computed before anything is scheduled.
  std::shared_ptr<ir::Graph> graph;
  FloatLevel float_level = FloatLevel::Finite;
  Choice winograd = Choice::Auto;
  bool choose_layouts = true, fuse = true, optimize = true;
  Choice chain = Choice::Auto;
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< of the kernels that run at load
  std::vector<std::string> input_names, output_names;  ///< empty: from the Params, "output_<i>"
  std::function<NodeName(const ir::Node&)> name_node;  ///< may be empty, and may answer empty words
  std::function<void(const std::string& stage, int done, int total)> progress;
  int seeded_fault =
      -1;  ///< for tests: the distinct program of this index stores each value plus 1
  std::shared_ptr<ProgramCache> program_cache;  ///< null: every kernel is compiled
  /// Choices of a tuner. A record of another machine or version is ignored, which is logged. Null: heuristics only.
  std::shared_ptr<const exec::TuningRecord> tuning;
};

/// What is known of a call beside what running it takes.
struct CallDetails {
  std::string schedule;  ///< actions of its program; empty: unknown
  Notes why;  ///< what was compared for it; without the program's part where a cache had it
  // What it writes, for comparing it with a reference: the buffer at `slot` in `layout`.
  int slot = 0;
  int stores = 1;  ///< of a chain: this is the last one's buffer
  DType dtype = DType::Float32;
  Shape shape;  ///< logical
  ir::Layout layout;
  /// The value of the graph as it was given; null when the call writes a copy or a piece of a value.
  ir::Node node;
};

/// How a graph was compiled.
struct GraphReport {
  std::vector<CallDetails> calls;  ///< one for each call of the plan
  StageTimes times;
  std::vector<PassTime> passes;        ///< of the kernels that were compiled
  std::vector<ProgramLookup> lookups;  ///< one for each distinct kernel
  TuningUse tuning;
};

/// What kernels are called after.
struct KernelName {
  std::string word;    ///< "conv_relu", for symbols
  std::string layers;  ///< "/net/conv1, /net/relu1", for reports
};

/// A tensor graph as kernels.
struct ScheduledGraph {
  FoldedGraph folded;
  schedule::Schedule schedule;
  std::vector<KernelName> names;  ///< of the kernels
};

/// The first half of plan_graph(). Errors: as fold_constants() and schedule::make_schedule().
Result<ScheduledGraph> schedule_graph(const std::vector<ir::Node>& inputs,
                                      const std::vector<ir::Node>& outputs, const Target& target,
                                      const GraphOptions& options);

/// A tensor graph as plain data.
struct PlannedGraph {
  exec::Plan plan;
  GraphReport report;
};

/// The chain from a tensor graph to a plan: schedule, lower, compile, pack the constants, run what depends on constants
/// only. `inputs` are the graph's Params in slot order; `device` runs what runs here. Where it cannot run the target's
/// programs, kernels that depend on constants only are compiled a second time, for the lowest instruction set of the
/// device's architecture, so that the constants do not depend on the machine that compiles.
/// Errors: as each step, naming the kernel or layer.
Result<PlannedGraph> plan_graph(const std::vector<ir::Node>& inputs,
                                const std::vector<ir::Node>& outputs,
                                const std::shared_ptr<runtime::Device>& device,
                                const GraphOptions& options = {});

/// A tensor graph made ready to run.
struct CompiledGraph {
  exec::Model executable;
  GraphReport report;
};

/// As plan_graph(), and binds the plan to the device. Errors: as plan_graph() and Model::create().
Result<CompiledGraph> compile_graph(const std::vector<ir::Node>& inputs,
                                    const std::vector<ir::Node>& outputs,
                                    const std::shared_ptr<runtime::Device>& device,
                                    const GraphOptions& options = {});

}  // namespace ignis::engine
