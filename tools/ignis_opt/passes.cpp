#include "tools/ignis_opt/passes.h"

#include "ignis/codegen/passes.h"
#include "ignis/ir/rewrite.h"
#include "ignis/ir/rules.h"
#include "ignis/ir/simplify.h"
#include "ignis/ir/text.h"
#include "ignis/ir/verify.h"

namespace ignis::opt {
namespace {

using ir::Graph;
using ir::Node;

Result<Roots> simplify(Graph& graph, const Roots& roots, PassOptions& options) {
  ir::Simplifier simplifier(graph, options.level);
  Roots result;
  for (const Node& root : roots) result.push_back(simplifier(root));
  options.stats.attempts += simplifier.stats().attempts;
  options.stats.hits += simplifier.stats().hits;
  return result;
}

Result<Roots> rewrite_by(const ir::RuleTable& table, Graph& graph, const Roots& roots,
                         PassOptions& options) {
  ir::RewriteOptions rewrite_options;
  rewrite_options.level = options.level;
  const ir::RuleSet rules = ir::RuleSet().add(table);
  Roots result;
  for (const Node& root : roots) {
    ir::RuleStats stats;
    IGNIS_TRY_ASSIGN(const Node rewritten,
                     ir::rewrite(graph, root, rules, rewrite_options, &stats));
    result.push_back(rewritten);
    options.stats.attempts += stats.attempts;
    options.stats.hits += stats.hits;
  }
  return result;
}

Result<Roots> contract(Graph& graph, const Roots& roots, PassOptions& options) {
  return rewrite_by(ir::contraction_rules(), graph, roots, options);
}

Result<Roots> verify_kernel(Graph&, const Roots& roots, PassOptions&) {
  for (const Node& root : roots) IGNIS_TRY(ir::verify_kernel(root));
  return roots;
}

Result<Roots> verify_tensor(Graph&, const Roots& roots, PassOptions&) {
  IGNIS_TRY(ir::verify_tensor(roots));
  return roots;
}

// A kernel when there is a Sink, else a tensor graph.
Result<Roots> verify(Graph& graph, const Roots& roots, PassOptions& options) {
  const bool kernel = !roots.empty() && roots[0].is(ir::Op::Sink);
  return kernel ? verify_kernel(graph, roots, options) : verify_tensor(graph, roots, options);
}

// Prints and parses into a graph of its own: what comes back must print the same.
Result<Roots> round_trip(Graph&, const Roots& roots, PassOptions&) {
  const std::string text = ir::print_text(roots);
  Graph other;
  IGNIS_TRY_ASSIGN(const Roots again, ir::parse_text(other, text));
  if (ir::print_text(again) != text)
    return Error(ErrorCode::Internal, "The text does not read back unchanged.");
  return roots;
}

// A pass of code generation, by name, for the host's widest common target.
template <size_t kIndex, bool kOnValues>
Result<Roots> codegen_pass(Graph& graph, const Roots& roots, PassOptions& options) {
  const codegen::KernelPass& pass =
      kOnValues ? codegen::value_passes()[kIndex] : codegen::address_passes()[kIndex];
  codegen::Config config;
  config.target = make_target(Isa::Avx2);
  config.float_level = options.level;
  Roots result;
  for (const Node& root : roots) result.push_back(pass.run(graph, root, config, nullptr));
  return result;
}

// The order of codegen::address_passes() and value_passes().
constexpr Pass kPasses[] = {
    {"simplify", "canonical expressions, to a fixed point", simplify},
    {"flatten-indices", "logical indices to offsets", codegen_pass<0, false>},
    {"merge-ranges", "join loops that every address walks as one", codegen_pass<1, false>},
    {"commit-weak", "a width for every weak number", codegen_pass<0, true>},
    {"emulate-dtypes", "narrow floats by integer operations", codegen_pass<1, true>},
    {"transcendentals", "functions by polynomials", codegen_pass<2, true>},
    {"decompose", "division rules, shifts, reciprocals", codegen_pass<3, true>},
    {"contract", "multiply and add to one rounding (level finite or fast)", contract},
    {"verify", "verify-kernel for a Sink, else verify-tensor", verify},
    {"verify-kernel", "check a kernel before loops are chosen", verify_kernel},
    {"verify-tensor", "check a tensor graph", verify_tensor},
    {"round-trip", "print, parse, print and compare", round_trip},
};

}  // namespace

std::span<const Pass> passes() { return kPasses; }

const Pass* find_pass(std::string_view name) {
  for (const Pass& pass : kPasses) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

}  // namespace ignis::opt
