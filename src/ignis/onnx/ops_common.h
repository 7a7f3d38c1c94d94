#pragma once

#include "ignis/onnx/ops.h"

#include <string>
#include <utility>
#include <vector>

/// Small things most op files need.
namespace ignis::onnx {

/// A handler's result of one output.
inline OpOutputs one(Tensor value) { return std::vector<Tensor>{std::move(value)}; }

/// `x -> f(x)` as a handler: `{"", "Exp", 1, 1, 1, unary<tensor::exp>}`.
template <Tensor (*F)(const Tensor&)>
OpOutputs unary(const OpContext& ctx) {
  return one(F(ctx.input(0)));
}

/// A GraphError unless input `i` is a float.
inline void require_float(const OpContext& ctx, int i) {
  if (!is_float(ctx.input(i).dtype())) {
    tensor::fail("Input " + std::to_string(i) + " has to be a float but is " +
                 ctx.input(i).describe() + ".");
  }
}

/// A GraphError unless all present inputs from `first` on have one dtype: the standard's operators never promote.
inline void require_same_dtype(const OpContext& ctx, int first = 0) {
  const Tensor* seen = nullptr;
  for (int i = first; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i)) continue;
    const Tensor& x = ctx.input(i);
    if (seen != nullptr && x.dtype() != seen->dtype()) {
      tensor::fail("The inputs " + seen->describe() + " and " + x.describe() +
                   " have different types.");
    }
    seen = &x;
  }
}

/// A GraphError when a shape a handler is about to make is over the limits; the tensor front end trusts its sizes.
inline void require_size(const OpContext& ctx, const Shape& shape) {
  const Result<int64_t> count = checked_element_count(shape);
  if (!count || *count > ctx.limits().max_elements ||
      static_cast<int>(shape.size()) > ctx.limits().max_rank) {
    throw tensor::GraphError(Error(
        ErrorCode::InvalidArgument,
        "The result would have shape " + to_string(shape) + ", over the limits.", "LimitExceeded"));
  }
}

/// Joins any number of parts; a node of the graph has room for fewer than 2^16 sources.
Tensor concat_all(std::vector<Tensor> parts, int64_t axis);

/// Strides, dilations and both pads of a convolution or pooling over `spatial_extents`, with auto_pad resolved.
struct WindowAttributes {
  std::vector<int64_t> kernel, strides, dilations, pads_lo, pads_hi;
};
/// `kernel` may come from the weights; errors throw GraphError. Defined in ops_pool.cpp.
WindowAttributes window_attributes(const OpContext& ctx, const Shape& spatial_extents,
                                   std::vector<int64_t> kernel);

}  // namespace ignis::onnx
