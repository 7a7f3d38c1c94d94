#pragma once

#include "ignis/base/target.h"
#include "ignis/engine/program_cache.h"
#include "ignis/engine/queues/submit_program.h"

#include <memory>

namespace ignis::engine {

/// The compiler behind submit programs for hosts like `target`, by LLVM in this process whatever renderer kernels have. Programs
/// that loop over a table are few (at most one for each set of kinds), and it remembers them: with `most_in_code` 0, for schedules
/// that run once or twice, nearly nothing is compiled. With a `cache` all equal programs are compiled once, in all sessions and
/// processes that share it. It, and its copies, may be called from any thread.
SubmitCompiler submit_compiler(const Target& target, std::shared_ptr<ProgramCache> cache = nullptr);

}  // namespace ignis::engine
