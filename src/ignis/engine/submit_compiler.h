#pragma once

#include "ignis/base/target.h"
#include "ignis/engine/program_cache.h"
#include "ignis/engine/queues/submit_program.h"

#include <memory>

namespace ignis::engine {

/// The compiler behind submit programs for hosts like `target`, by LLVM in this process whatever renderer kernels have. With a
/// `cache` equal programs are compiled once, in all sessions and processes that share it; a cache that cannot help costs nothing
/// but the compile. May be called from any thread.
SubmitCompiler submit_compiler(const Target& target, std::shared_ptr<ProgramCache> cache = nullptr);

}  // namespace ignis::engine
