#include "ignis/schedule/schedule.h"

#include "ignis/ir/affine.h"
#include "ignis/ir/simplify.h"
#include "ignis/schedule/chain.h"
#include "ignis/schedule/draft.h"
#include "ignis/schedule/layout.h"
#include "ignis/schedule/memory_plan.h"
#include "ignis/schedule/split.h"
#include "ignis/schedule/split_reduce.h"

#include <algorithm>
#include <unordered_map>

namespace ignis::schedule {
namespace {

using ir::Graph;
using ir::Node;
using ir::Op;

constexpr int64_t kMaxBufferBytes = int64_t{1} << 47;

/// Numbers slots densely in first-use order (slot 0: the stored buffer) and writes the layouts into the Params, so
/// that equal kernels are equal nodes.
Kernel finish(Graph& g, const Schedule& schedule, const Draft& draft) {
  Kernel kernel;
  kernel.at_load = draft.at_load;
  kernel.layers = draft.layers;
  kernel.why = draft.why;
  std::unordered_map<Node, Node> map;
  std::vector<Node> params;
  for (const Node& n : ir::toposort(draft.sink)) {
    if (n.is(Op::Param)) params.push_back(n);
  }
  const auto slot_of = [](const Node& p) { return p.arg().ints[0]; };
  std::stable_partition(params.begin(), params.end(),
                        [&](const Node& p) { return slot_of(p) == 0; });
  for (const Node& p : params) {
    const int id = draft.buffers[static_cast<size_t>(slot_of(p))];
    const Buffer& b = schedule.buffers[static_cast<size_t>(id)];
    ir::ParamArg arg;
    arg.slot = static_cast<int64_t>(kernel.buffers.size());
    arg.shape = b.shape;
    arg.layout = b.layout;
    kernel.buffers.push_back(id);
    map[p] = g.param(b.dtype, arg);
  }
  kernel.sink = ir::substitute(g, draft.sink, map);
  kernel.written = {0};
  return kernel;
}

/// Kernels that read only constants run once when the model is loaded; what they write becomes a constant.
void mark_load_time(Schedule& schedule, std::vector<Draft>& drafts) {
  std::unordered_map<int, bool>
      constant_writers;  // buffer -> all kernels that write it are load-time
  for (Draft& d : drafts) {
    bool constant = true;
    for (const LoadSite& site : loads_of(d)) {
      const int id = d.buffers[static_cast<size_t>(site.slot)];
      constant &= schedule.buffers[static_cast<size_t>(id)].role == BufferRole::Constant ||
                  (constant_writers.count(id) != 0 && constant_writers[id]);
    }
    const int out = d.buffers[0];
    d.at_load =
        constant && schedule.buffers[static_cast<size_t>(out)].role == BufferRole::Temporary;
    const auto [it, fresh] = constant_writers.emplace(out, d.at_load);
    if (!fresh) it->second = it->second && d.at_load;
  }
  // A concatenation is a constant only when each of its pieces is.
  for (bool changed = true; changed;) {
    changed = false;
    for (Draft& d : drafts) {
      if (!d.at_load) continue;
      bool constant = constant_writers[d.buffers[0]];
      for (const LoadSite& site : loads_of(d)) {
        const int id = d.buffers[static_cast<size_t>(site.slot)];
        const auto it = constant_writers.find(id);
        constant &= it == constant_writers.end() || it->second;
      }
      if (constant) continue;
      d.at_load = false;
      constant_writers[d.buffers[0]] = false;
      changed = true;
    }
  }
  for (const auto& [id, constant] : constant_writers) {
    if (constant) schedule.buffers[static_cast<size_t>(id)].role = BufferRole::Constant;
  }
}

void plan_arena(Schedule& schedule) {
  std::unordered_map<int, size_t> index;
  std::vector<Lifetime> lifetimes;
  std::vector<int> ids;
  for (size_t k = 0; k < schedule.kernels.size(); ++k) {
    for (const int id : schedule.kernels[k].buffers) {
      const Buffer& b = schedule.buffers[static_cast<size_t>(id)];
      if (b.role != BufferRole::Temporary) continue;
      const auto [it, fresh] = index.emplace(id, lifetimes.size());
      const int at = static_cast<int>(k);
      if (fresh) {
        Lifetime life;
        life.first = at;
        life.size_bytes = b.size_bytes();
        // Padding of blocked layouts is read as zeros too, exactly like a halo.
        if (b.layout.storage_count() != element_count(b.shape)) {
          life.exclusive_class =
              std::string(to_string(b.dtype)) + ignis::to_string(b.shape) + b.layout.to_string();
          if (b.held_bytes >= 0) life.exclusive_class += " " + std::to_string(b.held_bytes);
        }
        lifetimes.push_back(life);
        ids.push_back(id);
      }
      lifetimes[it->second].last = at;
    }
  }
  schedule.arena_bytes = plan_memory(lifetimes);
  for (size_t i = 0; i < ids.size(); ++i) {
    schedule.buffers[static_cast<size_t>(ids[i])].arena_offset = lifetimes[i].offset;
  }
}

}  // namespace

Result<Schedule> make_schedule(const std::vector<Node>& inputs, const std::vector<Node>& outputs,
                               const Target& target, const Options& options) {
  Schedule schedule;
  schedule.graph = std::make_shared<Graph>();
  Graph& g = *schedule.graph;
  IGNIS_TRY_ASSIGN(std::vector<Draft> drafts, split_kernels(inputs, outputs, options, schedule));
  for (const Buffer& b : schedule.buffers) {
    IGNIS_TRY_ASSIGN(const int64_t count, checked_element_count(b.shape));
    if (count > kMaxBufferBytes / 8) {
      return Error(ErrorCode::OutOfMemory, "Buffer '" + b.name + "' of shape " +
                                               ignis::to_string(b.shape) + " exceeds 2^47 bytes.");
    }
  }
  for (Draft& d : drafts) {
    d.sink = ir::simplify(g, d.sink);
    split_modular_ranges(g, d);
  }
  mark_load_time(schedule, drafts);
  if (options.choose_layouts) choose_layouts(schedule, drafts, target, options);
  if (options.split_reduces) split_reduces(schedule, drafts, target);
  std::stable_partition(drafts.begin(), drafts.end(), [](const Draft& d) { return d.at_load; });
  for (const Draft& d : drafts) schedule.kernels.push_back(finish(g, schedule, d));
  chain_rows(schedule, target, options.chain);
  plan_arena(schedule);
  return schedule;
}

}  // namespace ignis::schedule
