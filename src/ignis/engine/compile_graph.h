#pragma once

#include "ignis/engine/session.h"
#include "ignis/exec/executable.h"
#include "ignis/ir/graph.h"
#include "ignis/runtime/device.h"
#include "ignis/schedule/schedule.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ignis::engine {

/// What kernels are called after: the words for one node of the tensor graph.
struct NodeName {
  std::string op;     ///< "Conv"
  std::string layer;  ///< the model's name for it
};

struct GraphOptions {
  /// The nodes' graph; when given, small constant parts are computed before anything is scheduled.
  std::shared_ptr<ir::Graph> graph;
  FloatLevel float_level = FloatLevel::Finite;
  bool choose_layouts = true, fuse = true, optimize = true;
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);  ///< of the kernels that run at load
  std::vector<std::string> input_names, output_names;  ///< empty: from the Params, "output_<i>"
  std::function<NodeName(const ir::Node&)> name_node;  ///< may be empty, and may answer empty words
  std::function<void(const std::string& stage, int done, int total)> progress;
};

/// A tensor graph made ready to run, and where the time went.
struct CompiledGraph {
  exec::Executable executable;
  StageTimes times;
  std::vector<PassTime> passes;
};

/// The whole chain from a tensor graph to an Executable: schedule, lower, compile, pack the constants, run what
/// depends on constants only, plan, bind. `inputs` are the graph's Params in slot order.
/// Errors: as each step, naming the kernel or layer.
Result<CompiledGraph> compile_graph(const std::vector<ir::Node>& inputs,
                                    const std::vector<ir::Node>& outputs,
                                    const std::shared_ptr<runtime::Device>& device,
                                    const GraphOptions& options = {});

}  // namespace ignis::engine
