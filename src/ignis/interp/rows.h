#pragma once

#include "ignis/interp/view.h"

#include <cstdint>
#include <vector>

namespace ignis::interp {

/// Computes every element of `value` and stores element (i0, i1, …) at offset + sum(i * strides) of `out`, whose
/// vector of the value's kind is large enough.
void compute_into(const Expr& value, Array& out, int64_t offset,
                  const std::vector<int64_t>& strides, bool round);

/// Reduces `value` over the axes marked in `is_reduced` with Add, Mul, Max or Min; the result is dense over the
/// other axes. Floats accumulate in float64 and are rounded to the value's dtype at the end; integers wrap. The
/// reduction of nothing is the identity: 0, 1, the dtype's lowest or highest value (floats: -Inf, Inf).
Array reduce(const Expr& value, ir::Op op, const std::vector<bool>& is_reduced, bool round);

}  // namespace ignis::interp
