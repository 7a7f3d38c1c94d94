#pragma once

#include "ignis/base/result.h"
#include "ignis/base/submit_program.h"
#include "ignis/engine/queues/encode.h"
#include "ignis/exec/queue_template.h"

#include <cstddef>
#include <functional>
#include <string>

namespace ignis::engine {

/// What turns the stores of a batch into code. This folder knows no compiler; engine/submit_compiler.h makes one of these.
struct SubmitCompiler {
  /// What the code depends on besides the stores: target, compiler. Part of every template's key.
  std::string identity;
  std::function<Result<ProgramImage>(const SubmitCode& code, const std::string& name)> compile;
  /// Batches with at most so many stores have them in the code one after the other, which is the faster form; longer ones loop
  /// over a table, for the time to compile the first form grows faster than the stores (bench/README.md).
  size_t most_in_code = 64;
};

/// Gives every batch of an encoded template the program that fills its run-time holes (queue spec 3.1, step 6): one for each
/// shape that occurs, however many batches have it. Batches without a run-time hole get none. What the template had before is
/// replaced. Call it after encode_template() and before the template is shared or kept.
/// Errors: NotFound for a device that is not open; what the compiler returns.
Status add_submit_programs(exec::QueueTemplate& made, const DeviceFinder& find_device,
                           const SubmitCompiler& compiler);

}  // namespace ignis::engine
