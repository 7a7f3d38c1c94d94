#pragma once

#include "ignis/base/target.h"
#include "ignis/ir/graph.h"

namespace ignis::codegen {

/// Replaces float16, bfloat16 and fp8, which CPU programs do not have: buffers hold their codes as uint8 or uint16,
/// arithmetic runs in float32. A cast to such a type and a store round once; between them, inside one kernel, the wider
/// intermediate is kept. A value that is only moved (load, select, bitcast, store) keeps its code bit for bit.
/// Transcendentals become float32 ones, so this runs before lower_transcendentals; after commit_weak.
ir::Node emulate_dtypes(ir::Graph& graph, const ir::Node& sink, const Target& target);

}  // namespace ignis::codegen
