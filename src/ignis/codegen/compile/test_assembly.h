#pragma once

#include <string>

namespace ignis::codegen::testing {

/// The text between the first label that is jumped back to and that jump: the first innermost loop. Empty: no loop.
std::string inner_loop(const std::string& assembly);
/// How often a regular expression matches.
int count_matches(const std::string& text, const std::string& pattern);

}  // namespace ignis::codegen::testing
