#pragma once

#include "ignis/codegen/program.h"
#include "ignis/ir/node.h"

#include <string>

namespace ignis::codegen {

/// Decisions that every renderer takes alike, so that all of them give the same bits.

/// Symbol of the entry function: "ignis_" and the program's name with other signs than [A-Za-z0-9_] replaced.
std::string entry_symbol(const Program& program);

/// True when no lane of `node` can be NaN, by a cheap look: constants, casts from integers, vectors of such.
/// Float Max(a, b) with such an operand `c` is `c > x ? c : x`, else `(a > b or a is NaN) ? a : b`; Min alike.
bool is_never_nan(const ir::Node& node);

/// True for a constant whose stored bytes are all zero (so not for -0.0), or a vector of such.
bool is_all_zero_bits(const ir::Node& node);

/// True when a range runs as often as a bool says: an `if`, whose counter is 0.
bool is_branch(const ir::Node& range);

}  // namespace ignis::codegen
