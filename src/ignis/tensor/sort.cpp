#include "ignis/tensor/build.h"
#include "ignis/tensor/elementwise.h"
#include "ignis/tensor/indexing.h"
#include "ignis/tensor/movement.h"
#include "ignis/tensor/reduce.h"

// Sorting by counting: an element's place is the number of elements that come before it. There is no data-dependent
// control flow, so the cost is quadratic in the axis, and every output element is one reduction.

namespace ignis::tensor {

using detail::reduce_axes;
using ir::Op;

namespace {

/// Whether a stands strictly before b; NaN is the largest value.
Tensor stands_before(const Tensor& a, const Tensor& b, Order order) {
  const bool descending = order == Order::Descending;
  const Tensor smaller = descending ? less(b, a) : less(a, b);
  if (!is_float(a.dtype())) return smaller;
  const Tensor nan_first = descending ? logical_and(isnan(a), logical_not(isnan(b)))
                                      : logical_and(logical_not(isnan(a)), isnan(b));
  return logical_or(smaller, nan_first);
}

}  // namespace

Sorted topk(const Tensor& x_in, int64_t k, int64_t axis_in, Order order) {
  const Tensor x = commit(x_in);
  const int axis = normalize_axis("topk", axis_in, x.rank());
  const int64_t extent = x.dim(axis);
  if (k < 0 || k > extent) {
    fail("topk: k = " + std::to_string(k) + " of axis " + std::to_string(axis) + " of " +
         x.describe() + ".");
  }
  const Tensor data = move_axis(x, axis, -1);
  const int rank = x.rank();
  Shape shape = data.shape();
  shape.back() = k;
  if (element_count(shape) == 0) {
    const Tensor nothing = move_axis(Tensor::full_int(x.graph(), shape, 0, x.dtype()), -1, axis);
    return {nothing, cast(nothing, DType::Int64)};
  }
  const Tensor self = unsqueeze(data, {-1}),
               other = unsqueeze(data, {-2});  // [.., i, 1] and [.., 1, j]
  const Tensor line = Tensor::arange(x.graph(), 0, extent);
  const Tensor i = reshape(line, {extent, 1}), j = reshape(line, {1, extent});
  // An earlier element of equal value stays in front.
  const Tensor in_front = where(less(j, i), logical_not(stands_before(self, other, order)),
                                stands_before(other, self, order));
  const Tensor place = reduce_axes(Op::Add, cast(in_front, DType::Int32), {rank}, /*keep=*/false);
  const Tensor wanted = reshape(Tensor::arange(x.graph(), 0, k), {k, 1});
  const Tensor match = equal(unsqueeze(place, {-2}), wanted);  // [.., k, i]: one true a row
  const Tensor at =
      where(match, reshape(line, {1, extent}), Tensor::full_int(x.graph(), {}, 0, DType::Int32));
  const Tensor index = reduce_axes(Op::Add, at, {rank}, /*keep=*/false);
  const Tensor values = gather_elements(data, index, -1);
  return {move_axis(values, -1, axis), move_axis(cast(index, DType::Int64), -1, axis)};
}

Sorted sort(const Tensor& x, int64_t axis, Order order) {
  return topk(x, x.dim(normalize_axis("sort", axis, x.rank())), axis, order);
}

}  // namespace ignis::tensor
