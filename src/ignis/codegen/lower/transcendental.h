#pragma once

#include "ignis/base/target.h"
#include "ignis/ir/graph.h"

namespace ignis::codegen {

/// Replaces Exp, Exp2, Log, Log2, Sin, Cos, Erf, Tanh, Atan and float Pow by operations that programs have (functions.h
/// states the bounds). Narrow and weak floats are computed in float32. Below the strict level exp(x) + c becomes one
/// function, and a * (1 / b) becomes a / b, where nothing else reads the exponential or the reciprocal: SiLU and its
/// relatives.
ir::Node lower_transcendentals(ir::Graph& graph, const ir::Node& sink, const Target& target,
                               FloatLevel level);

}  // namespace ignis::codegen
