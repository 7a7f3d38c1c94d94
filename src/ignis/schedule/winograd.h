#pragma once

#include "ignis/schedule/schedule.h"
#include "ignis/schedule/split.h"

#include <optional>
#include <vector>

namespace ignis::schedule {

/// A convolution rewritten as Winograd's F(2x2, 3x3): per 2 x 2 outputs and channel 16 products instead of 36.
///
/// `before` computes the transformed input and, at load, the transformed weights, and multiplies them in 16 products of
/// matrices; `output` transforms those back, with the epilogue that the convolution had.
struct WinogradDrafts {
  std::vector<Draft> before;
  Draft output;
};

/// Rewrites `draft` when it is such a convolution of float32 over channels-last buffers with constant weights, and when
/// it pays (or `options.winograd` is On). Adds the buffers it needs and widens the input's halo where tiles stand over
/// the edge. Nullopt: the draft stays. Either way its notes say what was compared.
///
/// The result of one output is off by at most 32 (sqrt(C) + 8) 2^-24 times the sum of |weights| times the largest
/// |input| of its tile; convolutions with so many channels C that this exceeds 1e-4 stay as they are.
std::optional<WinogradDrafts> use_winograd(Schedule& schedule, Draft& draft, const Target& target,
                                           const Options& options);

}  // namespace ignis::schedule
