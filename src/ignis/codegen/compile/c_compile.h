#pragma once

#include "ignis/base/program_image.h"
#include "ignis/base/result.h"
#include "ignis/base/target.h"

#include <chrono>
#include <string>

namespace ignis::codegen {

/// Finds a C compiler driver that can compile for `target`: clang-19, clang, then, for this machine's own
/// architecture, gcc and cc. Errors: NotFound, naming what to install.
Result<std::string> find_c_compiler(const Target& target);

/// Compiles C text of render_c with `compiler` to an object file's bytes, in a temporary directory that is gone
/// afterwards. Errors: Timeout when the compiler runs longer than `deadline` (it is killed), Internal with its first
/// lines of output when it fails.
Result<std::string> run_c_compiler(const std::string& text, const Target& target,
                                   const std::string& compiler,
                                   std::chrono::milliseconds deadline = std::chrono::minutes(2));

}  // namespace ignis::codegen
