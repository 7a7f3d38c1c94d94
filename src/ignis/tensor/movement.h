#pragma once

#include "ignis/tensor/core.h"

#include <span>
#include <utility>

/// Movement: the same elements under another index. Nothing is copied by any of these. Negative axes count from the
/// end. All shape errors are raised here.
namespace ignis::tensor {

/// One extent may be -1: what is left. Extents of 0 mean 0.
Tensor reshape(const Tensor& x, const Shape& shape);
/// Output axis i is source axis perm[i].
Tensor permute(const Tensor& x, const std::vector<int64_t>& perm);
/// Swaps two axes; by default the last two.
Tensor transpose(const Tensor& x, int64_t a = -2, int64_t b = -1);
/// Moves axis `from` to position `to`, the others keep their order.
Tensor move_axis(const Tensor& x, int64_t from, int64_t to);
/// Right-aligned stretch of extents of 1 and new leading axes; -1 keeps an extent.
Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// Per axis (lo, hi) elements of `value`; negative amounts crop.
Tensor pad(const Tensor& x, const std::vector<std::pair<int64_t, int64_t>>& amounts,
           const Operand& value = 0);
enum class PadMode : uint8_t { Reflect, Edge, Wrap };
/// Padding from the tensor's own values; Reflect without repeating the edge. Negative amounts crop.
Tensor pad_mode(const Tensor& x, const std::vector<std::pair<int64_t, int64_t>>& amounts,
                PadMode mode);
/// Per axis [begin, end), within the extents.
Tensor shrink(const Tensor& x, const std::vector<std::pair<int64_t, int64_t>>& bounds);
/// Python's x[begin:end:step] on one axis: negative and out-of-range ends are clamped, step may be negative.
Tensor slice(const Tensor& x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1);
/// x[index] on one axis, which disappears; negative counts from the end.
Tensor select(const Tensor& x, int64_t axis, int64_t index);
Tensor flip(const Tensor& x, const std::vector<int64_t>& axes);
/// Removes the given axes of extent 1; with none given, all of them.
Tensor squeeze(const Tensor& x, const std::vector<int64_t>& axes = {});
/// New axes of extent 1; positions are those of the result.
Tensor unsqueeze(const Tensor& x, const std::vector<int64_t>& axes);
/// Merges the axes [begin, end]; by default all.
Tensor flatten(const Tensor& x, int64_t begin = 0, int64_t end = -1);
/// Joins along an existing axis; dtypes meet at their join.
Tensor concat(std::span<const Tensor> parts, int64_t axis);
Tensor concat(std::initializer_list<Tensor> parts, int64_t axis);
/// Joins along a new axis.
Tensor stack(std::span<const Tensor> parts, int64_t axis);
Tensor stack(std::initializer_list<Tensor> parts, int64_t axis);
/// Pieces of the given sizes, which add up to the extent.
std::vector<Tensor> split(const Tensor& x, int64_t axis, const std::vector<int64_t>& sizes);
/// Pieces of `size`, the last one may be smaller.
std::vector<Tensor> chunk(const Tensor& x, int64_t axis, int64_t size);
/// The whole tensor `repeats[i]` times along axis i (numpy.tile with equal ranks).
Tensor tile(const Tensor& x, const std::vector<int64_t>& repeats);
/// Each element `count` times along one axis (numpy.repeat).
Tensor repeat_interleave(const Tensor& x, int64_t axis, int64_t count);
/// Sliding windows over `axis`, a new last axis holds them: ir::Node's Window. Checked.
Tensor window(const Tensor& x, int64_t axis, int64_t kernel, int64_t stride = 1,
              int64_t dilation = 1);
/// y[i] = x[(i - shift) mod n] along one axis.
Tensor roll(const Tensor& x, int64_t axis, int64_t shift);
/// Zero above the k-th diagonal of the last two axes (lower), or below it (upper).
Tensor tril(const Tensor& x, int64_t k = 0);
Tensor triu(const Tensor& x, int64_t k = 0);
/// A hint: store the value here.
Tensor contiguous(const Tensor& x);

}  // namespace ignis::tensor
