#include "ignis/codegen/codegen.h"
#include "ignis/codegen/linearize/emitter.h"
#include "ignis/codegen/lower/contract.h"
#include "ignis/codegen/lower/decompose.h"
#include "ignis/codegen/lower/dtypes.h"
#include "ignis/codegen/lower/reciprocal.h"
#include "ignis/codegen/lower/transcendental.h"
#include "ignis/codegen/lower/weak.h"
#include "ignis/codegen/optimize/chain_plan.h"
#include "ignis/codegen/optimize/kernel.h"
#include "ignis/codegen/optimize/loop_plan.h"
#include "ignis/codegen/optimize/search_space.h"
#include "ignis/codegen/passes.h"
#include "ignis/codegen/verify_passes.h"
#include "ignis/ir/layout_index.h"
#include "ignis/ir/simplify.h"
#include "ignis/ir/verify.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <sstream>

// The pass list of a CPU kernel, in order. Against kernel-codegen.md section 5: values are rewritten while they are
// scalar, and vectors, tiles and accumulators are made by one step at the end. A rewrite then runs once, not once for
// each copy in a register tile, which is most of the difference between milliseconds and seconds of compile time.
namespace ignis::codegen {
namespace {

using ir::Graph;
using ir::Node;
using ir::Op;

/// Times each pass, and keeps its result as text when asked.
class PassRunner {
 public:
  explicit PassRunner(bool keep_text) : keep_text_(keep_text) {}

  template <typename F>
  auto operator()(const char* name, F&& pass) {
    const auto start = std::chrono::steady_clock::now();
    auto result = pass();
    PassRecord record;
    record.name = name;
    record.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    records_.push_back(std::move(record));
    if constexpr (std::is_same_v<decltype(result), Node>) {
      if (keep_text_) {
        std::ostringstream text;
        for (const Node& n : ir::toposort(result)) text << n << "\n";
        records_.back().text = text.str();
      }
    }
    return result;
  }
  std::vector<PassRecord> take() { return std::move(records_); }
  PassRecord& last() { return records_.back(); }
  bool keeps_text() const { return keep_text_; }

 private:
  bool keep_text_;
  std::vector<PassRecord> records_;
};

/// Logical indices become one offset in elements of the buffer's layout.
Node flatten_indices(Graph& g, const Node& sink) {
  std::unordered_map<Node, Node> done;
  std::vector<Node> sources;
  for (const Node& n : ir::toposort(sink)) {
    sources.clear();
    for (int i = 0; i < n.source_count(); ++i) sources.push_back(done.at(n.src(i)));
    if (n.is(Op::Index)) {
      ir::ParamArg param = ir::decode_param(n.src(0));
      if (param.layout.digits.empty()) param.layout = ir::Layout::planar(param.shape);
      const Node offset =
          ir::flat_offset(g, std::span<const Node>(sources).subspan(1), param.layout);
      done[n] = g.make(Op::Index, n.dtype(), {sources[0], offset});
    } else {
      done[n] = g.rebuild(n, sources);
    }
  }
  return done.at(sink);
}

/// What the passes on values leave: every number has a width, and every operation is one that programs have.
Status verify_values(const Node& sink) {
  for (const Node& n : ir::toposort(sink)) {
    const bool is_loop = n.is(Op::Range) || (n.is(Op::Const) && n.dtype() == DType::WeakInt);
    bool legal = is_loop || !is_weak(n.dtype());
    switch (n.op()) {
      case Op::Exp2:
      case Op::Log2:
      case Op::Exp:
      case Op::Log:
      case Op::Sin:
      case Op::Cos:
      case Op::Erf:
      case Op::Tanh:
      case Op::Atan:
      case Op::Pow:
      case Op::Reciprocal:
      case Op::Floordiv:
      case Op::Floormod: legal = false; break;
      default: break;
    }
    if (!legal) {
      std::ostringstream text;
      text << "After lowering, the kernel still has '" << n << "', which programs do not have.";
      return Error(ErrorCode::Internal, text.str());
    }
  }
  return Status::ok();
}

std::string print_program(const Program& program) {
  std::ostringstream text;
  int depth = 0;
  for (const Node& n : program.list) {
    if (n.is(Op::End)) --depth;
    text << std::string(static_cast<size_t>(2 * depth), ' ') << n << "\n";
    if (n.is(Op::Range)) ++depth;
  }
  return text.str();
}

// clang-format off
constexpr KernelPass kAddressPasses[] = {
    {"flatten-indices", [](Graph& g, const Node& n, const Config&, ir::SimplifyStats*) { return flatten_indices(g, n); }},
    {"merge-ranges",    [](Graph& g, const Node& n, const Config&, ir::SimplifyStats*) { return merge_ranges(g, n); }},
    // After merge-ranges: it leaves `0 * stride` terms of the ranges that are gone.
    {"simplify",        [](Graph& g, const Node& n, const Config& c, ir::SimplifyStats* s) { return ir::simplify(g, n, s, c.float_level); }},
    // While it can be seen what changes with which loop.
    {"share-reciprocals", [](Graph& g, const Node& n, const Config& c, ir::SimplifyStats*) { return share_reciprocals(g, n, c.float_level); }},
};
constexpr KernelPass kValuePasses[] = {
    {"commit-weak",     [](Graph& g, const Node& n, const Config&, ir::SimplifyStats*) { return commit_weak(g, n); }},
    // Before transcendentals: functions of narrow floats are computed in float32.
    {"emulate-dtypes",  [](Graph& g, const Node& n, const Config& c, ir::SimplifyStats*) { return emulate_dtypes(g, n, c.target); }},
    {"transcendentals", [](Graph& g, const Node& n, const Config& c, ir::SimplifyStats*) { return lower_transcendentals(g, n, c.target, c.float_level); }},
    {"decompose",       [](Graph& g, const Node& n, const Config& c, ir::SimplifyStats*) { return decompose_ops(g, n, c.target); }},
    // Last: it also joins the products and sums that the former passes made.
    {"contract",        [](Graph& g, const Node& n, const Config& c, ir::SimplifyStats*) { return contract_multiply_add(g, n, c.float_level, c.target); }},
};
// clang-format on

}  // namespace

std::span<const KernelPass> address_passes() { return kAddressPasses; }
std::span<const KernelPass> value_passes() { return kValuePasses; }

namespace {

/// One lowering on its way from a Sink to a program.
class Lowering {
 public:
  Lowering(const Config& config, bool keep_text)
      : config_(config), run_(keep_text), graph_(std::make_shared<Graph>()) {}

  Result<Lowered> lower(const Node& kernel_sink) {
    const Node sink = run_("import", [&] { return graph_->import(kernel_sink); });
    Status kernel_is_sound = run_("verify-kernel", [&] { return ir::verify_kernel(sink); });
    if (!kernel_is_sound) return std::move(kernel_is_sound).error();
    IGNIS_TRY(sink.source_count() == 1 ? lower_store(sink) : lower_chain(sink));
    int& buffer_count = lowered_.program.buffer_count;
    for (const Node& n : ir::toposort(sink)) {
      if (n.is(Op::Param)) {
        buffer_count = std::max(buffer_count, static_cast<int>(n.arg().ints[0]) + 1);
      }
    }
    Status verified = run_("verify-program", [&] { return verify_program(lowered_.program); });
    if (!verified) return std::move(verified).error();
    lowered_.passes = run_.take();
    if (run_.keeps_text()) {
      lowered_.passes[lowered_.passes.size() - 2].text = print_program(lowered_.program);
    }
    return std::move(lowered_);
  }

  /// As lower() up to the plans, and the plans beside each.
  Result<std::vector<Candidate>> neighbours(const Node& kernel_sink) {
    const Node sink = graph_->import(kernel_sink);
    IGNIS_TRY(ir::verify_kernel(sink));
    if (sink.source_count() == 1) {
      IGNIS_TRY_ASSIGN(const Kernel kernel, prepare(sink));
      IGNIS_TRY_ASSIGN(const LoopPlan now, plan(kernel, config_.actions, nullptr));
      std::vector<Candidate> list;
      for (const LoopPlan& next : neighbour_plans(kernel, now, config_.target, config_.float_level))
        list.push_back({next.to_actions(), estimate_ns(kernel, next, config_.target)});
      return list;
    }
    return chain_neighbours(sink);
  }

 private:
  /// One stage's plan changes at a time, or the bands.
  Result<std::vector<Candidate>> chain_neighbours(const Node& sink) {
    IGNIS_TRY_ASSIGN(const Chain chain, plan_chain(sink));
    std::vector<std::vector<std::string>> stages;
    std::vector<double> stage_ns;
    struct Change {
      size_t stage;
      Candidate candidate;
    };
    std::vector<Change> changes;
    for (size_t i = 0; i < chain.stages.size(); ++i) {
      const auto& [row, kernel, chosen, axes] = chain.stages[i];
      stages.push_back(chosen.to_actions());
      stage_ns.push_back(estimate_ns(kernel, chosen, config_.target));
      for (const LoopPlan& next :
           neighbour_plans(kernel, chosen, config_.target, config_.float_level, &axes))
        changes.push_back({i, {next.to_actions(), estimate_ns(kernel, next, config_.target)}});
    }
    const double all_ns = std::accumulate(stage_ns.begin(), stage_ns.end(), 0.0);
    std::vector<Candidate> list;
    const auto add = [&](const std::vector<std::vector<std::string>>& of, const ir::Bands& bands,
                         double ns) { list.push_back({join_chain_actions(of, bands), ns}); };
    for (const Change& change : changes) {
      auto changed = stages;
      changed[change.stage] = change.candidate.actions;
      add(changed, chain.bands, all_ns - stage_ns[change.stage] + change.candidate.estimate_ns);
    }
    const auto& [rows, units] = chain.bands;
    for (const int64_t band : {rows - 1, rows + 1, rows / 2, rows * 2}) {
      if (band < chain.tile || band > chain.most.rows || band == rows) continue;
      add(stages, {band, units}, all_ns);
    }
    return list;
  }

  /// The passes on addresses and values, for a Sink of one Store.
  Result<Kernel> prepare(Node sink) {
    const auto run_pass = [&](const KernelPass& pass,
                              [[maybe_unused]] bool has_addresses) -> Status {
      ir::SimplifyStats stats;
      sink = run_(pass.name, [&] { return pass.run(*graph_, sink, config_, &stats); });
      run_.last().rule_attempts = stats.attempts;
      run_.last().rule_hits = stats.hits;
#ifdef IGNIS_VERIFY_PASSES
      Status sound = verify_between_passes(sink, has_addresses);
      if (!sound)
        return std::move(sound).error().with_context("pass '" + std::string(pass.name) + "'");
#endif
      return Status::ok();
    };
    for (const KernelPass& pass : address_passes()) IGNIS_TRY(run_pass(pass, true));
    Result<Kernel> kernel = run_("find-axes", [&] { return Kernel::analyse(graph_, sink); });
    if (!kernel) return kernel;
    sink = run_("detach-addresses", [&] { return kernel->detach_addresses(); });
    for (const KernelPass& pass : value_passes()) IGNIS_TRY(run_pass(pass, false));
    Status legal = run_("verify-values", [&] { return verify_values(sink); });
    if (!legal) return std::move(legal).error();
    IGNIS_TRY(kernel->set_sink(sink));
    lowered_.flops += kernel->flops();
    return kernel;
  }

  /// `band`: what a chain walks of the kernel, or null.
  Result<LoopPlan> plan(const Kernel& kernel, const std::vector<std::string>& actions,
                        const BandAxes* band) {
    Result<LoopPlan> plan = run_("schedule", [&]() -> Result<LoopPlan> {
      if (!actions.empty()) return apply_actions(kernel, actions);
      if (!config_.optimize) return default_plan(kernel);
      return choose_plan(kernel, config_.target, config_.float_level, band, lowered_.why);
    });
    if (!plan) return plan;
    IGNIS_TRY(verify_plan(kernel, *plan));
    if (band) IGNIS_TRY(verify_band(kernel, *plan, *band));
    return plan;
  }

  Status lower_store(const Node& sink) {
    IGNIS_TRY_ASSIGN(const Kernel kernel, prepare(sink));
    IGNIS_TRY_ASSIGN(const LoopPlan chosen, plan(kernel, config_.actions, nullptr));
    lowered_.actions = chosen.to_actions();
    Result<Program> program = run_("emit", [&] {
      return emit_program(kernel, chosen, config_.float_level, &lowered_.parallel_units);
    });
    if (!program) return std::move(program).error();
    lowered_.program = *std::move(program);
    return Status::ok();
  }

  Status lower_chain(const Node& sink) {
    IGNIS_TRY_ASSIGN(const Chain chain, plan_chain(sink));
    std::vector<std::vector<std::string>> plans;
    for (const ChainStage& stage : chain.stages) plans.push_back(stage.plan.to_actions());
    lowered_.actions = join_chain_actions(plans, chain.bands);
    lowered_.parallel_units = chain.bands.units;
    Result<Program> program = run_("emit", [&] {
      return emit_chain(chain.stages, chain.bands, chain.most, chain.tile, config_);
    });
    if (!program) return std::move(program).error();
    lowered_.program = *std::move(program);
    return Status::ok();
  }

  /// A Sink of several stores with their plans.
  struct Chain {
    std::vector<ChainStage> stages;
    ir::Bands most, bands;  ///< there is memory for, and asked for
    int64_t tile = 1;       ///< of rows
  };
  Result<Chain> plan_chain(const Node& sink) {
    IGNIS_TRY_ASSIGN(const std::vector<ir::RowStage> rows, ir::row_stages(*graph_, sink));
    Chain chain;
    IGNIS_TRY_ASSIGN(chain.most, ir::bands_of(sink));
    IGNIS_TRY_ASSIGN(const ChainActions actions,
                     split_chain_actions(config_.actions, rows.size(), chain.most));
    chain.bands = actions.bands;
    for (const ir::RowStage& row : rows) {
      const Node alone = graph_->make(Op::Sink, DType::Void, {row.store});
      IGNIS_TRY_ASSIGN(Kernel kernel, prepare(alone));
      BandAxes axes{kernel.axis_of(row.rows), {}, 1};
      for (const Node& range : row.outer) axes.outer.push_back(kernel.axis_of(range));
      chain.stages.push_back({row, std::move(kernel), {}, std::move(axes)});
    }
    const int64_t most_tile = ir::rows_are_alike(rows) ? chain.bands.rows : 1;
    IGNIS_TRY_ASSIGN(chain.tile, plan_stages(chain.stages, actions, most_tile));
    return chain;
  }

  /// Plans each stage; those that tile rows agree on `most_tile` of them at most. Returns the tile.
  Result<int64_t> plan_stages(std::vector<ChainStage>& stages, const ChainActions& actions,
                              int64_t most_tile) {
    int64_t least = most_tile;
    std::set<int64_t> tiles;
    lowered_.why.clear();
    for (size_t i = 0; i < stages.size(); ++i) {
      ChainStage& stage = stages[i];
      stage.axes.most_tile = most_tile;
      const size_t first = lowered_.why.size();
      IGNIS_TRY_ASSIGN(stage.plan, plan(stage.kernel, actions.stages[i], &stage.axes));
      for (size_t w = first; w < lowered_.why.size(); ++w)
        lowered_.why[w] = say("store ", i, ": ", lowered_.why[w]);
      if (stage.plan.tile_axis != stage.axes.rows) continue;
      tiles.insert(stage.plan.tile);
      least = std::min(least, stage.plan.tile);
    }
    if (tiles.size() <= 1) return tiles.empty() ? 1 : *tiles.begin();
    if (least < most_tile) return plan_stages(stages, actions, least);
    return Error(ErrorCode::InvalidArgument, "The stores of a chain tile its rows differently.",
                 "IllegalAction");
  }

  const Config& config_;
  PassRunner run_;
  std::shared_ptr<Graph> graph_;
  Lowered lowered_;
};

}  // namespace

Result<Lowered> lower(const Node& sink, const Config& config, bool keep_text) {
  return Lowering(config, keep_text).lower(sink);
}

Result<std::vector<Candidate>> neighbours(const Node& sink, const Config& config) {
  return Lowering(config, false).neighbours(sink);
}

}  // namespace ignis::codegen
