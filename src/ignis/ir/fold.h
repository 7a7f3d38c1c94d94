#pragma once

#include "ignis/ir/graph.h"

namespace ignis::ir {

/// The constant an elementwise node of constants computes, or null when a source is no constant or the value cannot
/// be known exactly here: a weak integer that leaves int64, Max or Min of zeros of both signs, floor division and
/// remainder of floats.
///
/// Integers follow the one rule of every device: wrap modulo 2^bits; division and remainder by zero give 0; a shift by
/// the width or more shifts everything out; float to int saturates and NaN gives 0. Floats are computed so that the
/// result is rounded once to the dtype's grid (fp8: computed in float32, then rounded); Max and Min pass NaN on.
Node fold_constants(Graph& graph, const Node& node);

}  // namespace ignis::ir
