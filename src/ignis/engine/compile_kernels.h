#pragma once

#include "ignis/base/program_image.h"
#include "ignis/codegen/codegen.h"
#include "ignis/engine/program_cache.h"
#include "ignis/engine/session.h"
#include "ignis/ir/graph.h"
#include "ignis/schedule/schedule.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ignis::engine {

/// A distinct kernel's program and what lowering found out about it.
struct CompiledKernel {
  ProgramImage image;  ///< its symbol is made from the kernel's content: equal in every model
  int64_t parallel_units = 1;
  double flops = 0;
  std::string
      schedule;  ///< its scheduling actions, as codegen::Lowered gives them, with "; " between
  Notes why;     ///< what the heuristics compared; not kept on disk
};

struct CompiledKernels {
  std::vector<CompiledKernel> programs;            ///< in the order of their first use
  std::vector<std::string> names;                  ///< of the programs, for people: "k07_conv_relu"
  std::vector<int> program_of;                     ///< one entry for each kernel of the schedule
  double lower_s = 0, compile_s = 0, cache_s = 0;  ///< shares of the wall time
  std::vector<ProgramLookup> lookups;              ///< one for each program, in their order
  std::vector<PassTime> passes;  ///< summed over the kernels, in order of first appearance
  int tuned = 0;                 ///< programs made from `actions_of`
};

/// Scheduling actions by kernel_digest() in hex.
using ActionsOf = std::map<std::string, std::vector<std::string>>;

/// Lowers and compiles every kernel of `schedule`, equal ones once, on as many threads as the machine allows.
/// `names[k]` is a word for kernel k ("conv_relu"); a program's name is made from its first kernel's. What `cache` (may be
/// null) has is taken from there, and what it has not is put there.
/// `progress(done, total)` is called from any of the threads, one at a time. The program with the index
/// `seeded_fault` is given a fault (GraphOptions) and passes the cache by.
/// A kernel that `actions_of` (may be null) has takes these actions; when they do not fit, which is logged, those of the
/// heuristics.
/// Errors: as codegen::lower and the renderer's compiler, naming the kernel.
Result<CompiledKernels> compile_kernels(const schedule::Schedule& schedule,
                                        const codegen::Config& config,
                                        const std::vector<std::string>& names,
                                        const std::function<void(int, int)>& progress,
                                        int seeded_fault = -1, ProgramCache* cache = nullptr,
                                        const ActionsOf* actions_of = nullptr);

/// For tests: the kernel with each stored number plus 1, and a stored bool inverted. `sink` is of `graph`.
ir::Node with_fault(ir::Graph& graph, const ir::Node& sink);

}  // namespace ignis::engine
