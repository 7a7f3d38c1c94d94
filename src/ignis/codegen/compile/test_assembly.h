#pragma once

#include <string>

namespace ignis::codegen::testing {

/// The text from a label to a jump back to it, of the longest loop that holds no other. Empty: no loop.
std::string inner_loop(const std::string& assembly);
/// How often a regular expression matches.
int count_matches(const std::string& text, const std::string& pattern);

}  // namespace ignis::codegen::testing
