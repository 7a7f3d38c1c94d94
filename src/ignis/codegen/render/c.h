#pragma once

#include "ignis/base/result.h"
#include "ignis/base/target.h"
#include "ignis/codegen/program.h"

#include <string>
#include <vector>

namespace ignis::codegen {

// render_c is declared in codegen/codegen.h: the whole program as one C11 translation unit without includes. It has
// to be compiled with -fwrapv -ffp-contract=off -fno-strict-aliasing; compile_c does.

/// Name of a value's type in that text: "f32", "u8x16"; "b8" is a bool as 0 or 1 in a byte.
std::string c_type(DType dtype, int lanes);

/// One elementwise node on scalar operands, as a C expression. Calls helpers of kCHelpers for what C leaves
/// undefined or does otherwise.
std::string c_scalar_expression(const ir::Node& node, const Target& target,
                                const std::vector<std::string>& operands);

/// Fixed text before the entry function: types and helpers (static inline, unused ones vanish).
extern const char* const kCHelpers;

}  // namespace ignis::codegen
