#pragma once

#include "ignis/tensor/core.h"

namespace ignis::pipeline {

/// x[indices] of a flat tensor, for indices that are inside by construction whatever the run-time inputs hold: constants
/// that were clamped, or values chosen by a comparison. tensor::gather clamps each index once more, which costs twice the
/// time of the gather itself. int64 indices are the fastest: they need no widening before they address memory.
inline tensor::Tensor gather_inside(const tensor::Tensor& x, const tensor::Tensor& indices) {
  return {x.graph(), x.graph()->make(ir::Op::Gather, x.dtype(), {x.node(), indices.node()})};
}

}  // namespace ignis::pipeline
