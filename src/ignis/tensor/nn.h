#pragma once

#include "ignis/tensor/core.h"

/// Pooling, normalisation, softmax.
namespace ignis::tensor {

/// Per spatial axis (axes 2…); empty vectors mean 1 or 0.
struct PoolOptions {
  std::vector<int64_t> kernel = {}, strides = {}, dilations = {}, pads_lo = {}, pads_hi = {};
  bool ceil_mode =
      false;  ///< a last partial window that starts inside the data or the low padding counts
  bool count_include_pad =
      false;  ///< avg: declared padding counts in the divisor, cells past it never do
};
/// Padding is the lowest value.
Tensor max_pool(const Tensor& x, const PoolOptions& options);
/// int64 index of each maximum (the first) in x flattened, row-major over [N, C, spatial…]; ONNX's Indices output.
/// `column_major` swaps the order of the spatial axes in that index (storage_order 1).
Tensor max_pool_indices(const Tensor& x, const PoolOptions& options, bool column_major = false);
Tensor avg_pool(const Tensor& x, const PoolOptions& options);
/// (sum |x|^p)^(1/p) over each window; padding counts as 0.
Tensor lp_pool(const Tensor& x, const PoolOptions& options, double p = 2);
/// Over all spatial axes, extents of 1 kept.
Tensor global_max_pool(const Tensor& x);
Tensor global_avg_pool(const Tensor& x);
Tensor global_lp_pool(const Tensor& x, double p = 2);

/// Along one axis; sums in float32 for narrower floats.
Tensor softmax(const Tensor& x, int64_t axis);
Tensor log_softmax(const Tensor& x, int64_t axis);

/// (x - mean) * rsqrt(var + eps) over the given axes, in float32 for narrower floats; no scale.
Tensor normalize(const Tensor& x, const std::vector<int64_t>& axes, double epsilon);
/// Over the axes [axis, rank); scale and bias broadcast against them.
Tensor layer_norm(const Tensor& x, int64_t axis, const std::optional<Tensor>& scale,
                  const std::optional<Tensor>& bias, double epsilon = 1e-5);
Tensor rms_norm(const Tensor& x, int64_t axis, const std::optional<Tensor>& scale,
                double epsilon = 1e-5);
/// Inference form over channels (axis 1): all four of shape [C].
Tensor batch_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, const Tensor& mean,
                  const Tensor& variance, double epsilon = 1e-5);
/// Over the spatial axes of each channel; scale and bias [C].
Tensor instance_norm(const Tensor& x, const Tensor& scale, const Tensor& bias,
                     double epsilon = 1e-5);
/// Over groups of channels; scale and bias [C].
Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& bias,
                  double epsilon = 1e-5);
/// ONNX LRN: x / (bias + alpha / size * window sum of squares over channels) ^ beta.
Tensor local_response_norm(const Tensor& x, int64_t size, double alpha = 1e-4, double beta = 0.75,
                           double bias = 1);
/// [N, C, H, W] <-> blocks, as ONNX DepthToSpace (DCR, or CRD with `channel_first`) and SpaceToDepth.
Tensor depth_to_space(const Tensor& x, int64_t block, bool channel_first = false);
Tensor space_to_depth(const Tensor& x, int64_t block);

}  // namespace ignis::tensor
