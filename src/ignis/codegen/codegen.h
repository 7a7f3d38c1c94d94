#pragma once

#include "ignis/base/notes.h"
#include "ignis/base/program_image.h"
#include "ignis/base/submit_program.h"
#include "ignis/base/target.h"
#include "ignis/codegen/program.h"
#include "ignis/ir/graph.h"

#include <string>
#include <vector>

namespace ignis::codegen {

/// Everything that can change generated code, hashed as a whole into every cache key.
struct Config {
  Target target;
  FloatLevel float_level = FloatLevel::Finite;
  bool optimize = true;  ///< off: default loop tree, no vectors
  std::vector<std::string>
      actions;  ///< explicit scheduling actions instead of the heuristics; see docs/codegen.md
  bool operator==(const Config&) const = default;
};

/// One named step of lowering, for `--emit`, `bench --json` and the tests.
struct PassRecord {
  std::string name;
  double seconds = 0;
  int64_t rule_attempts = 0, rule_hits = 0;
  std::string text;  ///< the IR after the pass, when asked for
};

struct Lowered {
  Program program;
  std::vector<std::string> actions;  ///< applied, in order; replay them by Config::actions
  Notes why;  ///< what the heuristics compared; empty where `Config` gives the actions
  int64_t parallel_units =
      1;             ///< independent units of the outermost loops: an upper bound for parts
  double flops = 0;  ///< of one launch
  std::vector<PassRecord> passes;
};

/// Optimises and lowers one kernel (a Sink of the schedule). Errors: Unsupported or Internal, naming the pass.
Result<Lowered> lower(const ir::Node& sink, const Config& config, bool keep_text = false);

/// A legal list of actions for a kernel.
struct Candidate {
  std::vector<std::string> actions;
  double estimate_ns = 0;  ///< for ordering: of one core, by a model of its caches and registers
  bool operator==(const Candidate&) const = default;
};
/// The lists one action away from `config.actions`, which are as Lowered::actions gives them, in an order that depends on
/// the arguments alone. What a tuner tries next. Errors: as lower().
Result<std::vector<Candidate>> neighbours(const ir::Node& sink, const Config& config);

/// Renders and compiles with LLVM in this process: a position-independent object without external references.
/// Thread-safe. `keep_source` also fills ProgramImage::source with the LLVM IR.
Result<ProgramImage> compile_llvm(const Program& program, const Target& target,
                                  bool keep_source = false);
/// Compiles a submit program (base/submit_program.h): an object like a kernel's, whose time to compile and whose size grow with
/// the stores that stand in the code, and not with a table's rows. Errors: InvalidArgument for what is no legal store.
Result<ProgramImage> compile_submit_program(const SubmitCode& code, const Target& target,
                                            const std::string& name);
/// The compiler behind compile_llvm and its version, "llvm 19.1.7": part of what an artifact says of itself.
std::string compiler_id();
/// What compiles programs for `target`: compiler_id(), or for the "c" renderer the first line of what the C compiler says
/// of itself. Errors: NotFound when there is none.
Result<std::string> compiler_id(const Target& target);
/// Assembly text of the same code, for inspection and tests.
Result<std::string> assemble_llvm(const Program& program, const Target& target);

/// The program as freestanding C with compiler vector types: readable form and second opinion.
Result<std::string> render_c(const Program& program, const Target& target);
/// Compiles C text with the given compiler driver (`clang-19`, `gcc`) to an object. For tests and `cpu:c`.
Result<ProgramImage> compile_c(const Program& program, const Target& target);

/// Checks the list against program.h: order, nesting, dtypes, lanes. Errors: Internal naming the node.
Status verify_program(const Program& program);

}  // namespace ignis::codegen
