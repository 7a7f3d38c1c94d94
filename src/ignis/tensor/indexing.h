#pragma once

#include "ignis/tensor/core.h"

/// Reading and writing at computed positions. Index tensors are any integer dtype; negative indices count from the end.
/// An index outside [-n, n) is read as the nearest valid position by the gather family (memory outside is never
/// touched), and dropped by the scatter family.
namespace ignis::tensor {

/// numpy.take: axis is replaced by the shape of `indices`.
Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis = 0);
/// out[i][j][k] = x[indices[i][j][k]][j][k] for axis 0, and so on.
Tensor gather_elements(const Tensor& x, const Tensor& indices, int64_t axis);
/// The last axis of `indices` holds positions in the leading axes of x (after `batch_dims` shared ones).
Tensor gather_nd(const Tensor& x, const Tensor& indices, int64_t batch_dims = 0);

enum class ScatterOp : uint8_t { Replace, Add, Mul, Max, Min };
/// Inverse of gather_elements: of several updates of one element Replace takes the last. Quadratic in the axis.
Tensor scatter_elements(const Tensor& x, const Tensor& indices, const Tensor& updates, int64_t axis,
                        ScatterOp op = ScatterOp::Replace);
/// Inverse of gather_nd. Costs (positions x updates).
Tensor scatter_nd(const Tensor& x, const Tensor& indices, const Tensor& updates,
                  ScatterOp op = ScatterOp::Replace);
/// `on` where the new axis' position equals the index, else `off`; the new axis is inserted at `axis` of the result.
Tensor one_hot(const Tensor& indices, int64_t depth, int64_t axis = -1, const Operand& on = 1.0f,
               const Operand& off = 0.0f);

enum class Order : uint8_t { Ascending, Descending };
struct Sorted {
  Tensor values;
  Tensor indices;  ///< int64
};
/// The k first of the sorted axis; equal values keep their order, NaN counts as the largest. Quadratic in the extent.
Sorted topk(const Tensor& x, int64_t k, int64_t axis = -1, Order order = Order::Descending);
Sorted sort(const Tensor& x, int64_t axis = -1, Order order = Order::Ascending);

}  // namespace ignis::tensor
