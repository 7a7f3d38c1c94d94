#pragma once

#include "ignis/base/dtype.h"
#include "ignis/ir/op.h"

#include <cstdint>

namespace ignis::interp {

/// Elements of one operand of a row: `floats` for float dtypes, else `ints`. Dense.
struct Operand {
  DType dtype = DType::Float32;
  const double* floats = nullptr;
  const int64_t* ints = nullptr;
};

/// Where a row's results go; `floats` for float dtypes, else `ints`. May be the same memory as an operand.
struct Destination {
  DType dtype = DType::Float32;
  double* floats = nullptr;
  int64_t* ints = nullptr;
};

/// Computes one elementwise operation (Cast … Mulacc) on `n` elements: floats in float64, rounded once to the
/// target's dtype when `round`; integers exactly, then wrapped. Operands of arithmetic have the target's dtype
/// (evaluate.cpp casts weak constants before); comparisons take any two dtypes of one kind.
void compute_row(ir::Op op, const Operand* operands, const Destination& target, int64_t n,
                 bool round);

/// True when compute_row has an answer for the operation on this dtype (bitwise operations on floats, Sin of an
/// integer and the like have none).
bool can_compute(ir::Op op, DType target, DType operand);

/// Rounds `n` values to the grid of a float dtype.
void round_row(DType dtype, double* values, int64_t n);

}  // namespace ignis::interp
