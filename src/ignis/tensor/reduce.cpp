#include "ignis/tensor/reduce.h"

#include "ignis/tensor/build.h"
#include "ignis/tensor/elementwise.h"
#include "ignis/tensor/movement.h"

#include <algorithm>
#include <cmath>

namespace ignis::tensor {

using detail::normalize_axes;
using detail::reduce_axes;
using ir::Node;
using ir::Op;

namespace detail {
namespace {

/// The value of a reduction over nothing.
Tensor identity(ir::Graph& graph, const std::shared_ptr<ir::Graph>& owner, Op op, DType dtype,
                const Shape& shape) {
  Node node;
  if (op == Op::Add) node = graph.constant(dtype, 0);
  else if (op == Op::Mul) node = graph.constant(dtype, 1);
  else if (is_float(dtype))
    node = graph.constant_float(dtype, op == Op::Max ? -HUGE_VAL : HUGE_VAL);
  else node = graph.constant(dtype, op == Op::Max ? int_min(dtype) : int_max(dtype));
  return stretch_scalar(owner, node, shape);
}

}  // namespace

Tensor reduce_axes(Op op, const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  std::vector<int64_t> ints{static_cast<int64_t>(op)};
  Shape kept = x.shape(), removed;
  bool is_empty = false;
  for (const int64_t axis : axes) {
    is_empty |= kept[static_cast<size_t>(axis)] == 0;
    if (kept[static_cast<size_t>(axis)] != 1) ints.push_back(axis);
    kept[static_cast<size_t>(axis)] = 1;
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    const bool reduced = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i));
    if (!reduced || keep) removed.push_back(kept[i]);
  }
  if (is_empty) return identity(*x.graph(), x.graph(), op, x.dtype(), removed);
  if (ints.size() == 1) return reshape(x, removed);
  const Node node = x.graph()->make(Op::ReduceAxes, x.dtype(), {x.node()}, ir::Arg{ints, {}});
  return reshape(Tensor(x.graph(), node), removed);
}

}  // namespace detail

namespace {

DType accumulate_in(DType dtype) {
  return dtype == DType::WeakInt || dtype == DType::WeakFloat ? strong(dtype)
                                                              : accumulator_dtype(dtype);
}

/// Sum or product in the accumulator's dtype; floats return to their own.
Tensor accumulate(std::string_view operation, Op op, const Tensor& x, const Axes& axes, bool keep) {
  const DType own = strong(x.dtype()), wide = accumulate_in(x.dtype());
  const Tensor total =
      reduce_axes(op, cast(x, wide), normalize_axes(operation, axes, x.rank()), keep);
  return is_float(own) ? cast(total, own) : total;
}

/// Max or min. Narrow floats and bool are compared in a wider type: exact, and no narrow accumulator is needed.
Tensor extreme(std::string_view operation, Op op, const Tensor& x, const Axes& axes, bool keep) {
  const DType own = strong(x.dtype());
  const DType wide = own == DType::Bool                ? DType::UInt8
                     : is_float(own) && bits(own) < 32 ? DType::Float32
                                                       : own;
  return cast(reduce_axes(op, cast(x, wide), normalize_axes(operation, axes, x.rank()), keep), own);
}

int64_t reduced_count(const Tensor& x, const Axes& axes) {
  int64_t count = 1;
  for (const int64_t axis : axes) count *= x.dim(static_cast<int>(axis));
  return count;
}

/// The work dtype of mean, var and norms: float32 at least.
Tensor wide_float(const Tensor& x) { return commit(detail::widen(x)); }
DType own_float(const Tensor& x) { return strong(detail::float_dtype(x.dtype())); }

}  // namespace

Tensor sum(const Tensor& x, const Axes& axes, bool keep) {
  return accumulate("sum", Op::Add, x, axes, keep);
}
Tensor prod(const Tensor& x, const Axes& axes, bool keep) {
  return accumulate("prod", Op::Mul, x, axes, keep);
}
Tensor max(const Tensor& x, const Axes& axes, bool keep) {
  return extreme("max", Op::Max, x, axes, keep);
}
Tensor min(const Tensor& x, const Axes& axes, bool keep) {
  return extreme("min", Op::Min, x, axes, keep);
}

Tensor mean(const Tensor& x, const Axes& axes_in, bool keep) {
  const Axes axes = normalize_axes("mean", axes_in, x.rank());
  const Tensor wide = wide_float(x);
  const Tensor total = reduce_axes(Op::Add, wide, axes, keep);
  return cast(div(total, static_cast<double>(reduced_count(x, axes))), own_float(x));
}

Tensor var(const Tensor& x, const Axes& axes_in, bool keep, int64_t correction) {
  const Axes axes = normalize_axes("var", axes_in, x.rank());
  const Tensor wide = wide_float(x);
  const auto count = static_cast<double>(reduced_count(x, axes));
  const Tensor centre = div(reduce_axes(Op::Add, wide, axes, /*keep=*/true), count);
  const Tensor total = reduce_axes(Op::Add, square(sub(wide, centre)), axes, keep);
  return cast(div(total, count - static_cast<double>(correction)), own_float(x));
}

Tensor any(const Tensor& x, const Axes& axes, bool keep) {
  return max(cast(x, DType::Bool), axes, keep);
}
Tensor all(const Tensor& x, const Axes& axes, bool keep) {
  return min(cast(x, DType::Bool), axes, keep);
}

namespace {

Tensor arg_extreme(std::string_view operation, Op op, const Tensor& x_in, int64_t axis_in,
                   bool keep, Pick pick) {
  const Tensor x = commit(x_in);
  const int axis = normalize_axis(operation, axis_in, x.rank());
  const int64_t extent = x.dim(axis);
  if (extent == 0)
    fail(std::string(operation) + ": axis " + std::to_string(axis) + " of " + x.describe() +
         " is empty.");
  const Tensor best = extreme(operation, op, x, {axis}, /*keep=*/true);
  Tensor is_best = equal(x, best);
  if (is_float(x.dtype()))
    is_best = logical_or(is_best, isnan(x));  // when there is a NaN, best is NaN
  Shape along(static_cast<size_t>(x.rank()), 1);
  along[static_cast<size_t>(axis)] = extent;
  const Tensor position = reshape(Tensor::arange(x.graph(), 0, extent), along);
  const bool first = pick == Pick::First;
  const Tensor other = Tensor::full_int(x.graph(), {}, first ? extent : -1, DType::Int32);
  return reduce_axes(first ? Op::Min : Op::Max, where(is_best, position, other), {axis}, keep);
}

}  // namespace

Tensor argmax(const Tensor& x, int64_t axis, bool keep, Pick pick) {
  return arg_extreme("argmax", Op::Max, x, axis, keep, pick);
}
Tensor argmin(const Tensor& x, int64_t axis, bool keep, Pick pick) {
  return arg_extreme("argmin", Op::Min, x, axis, keep, pick);
}

Tensor logsumexp(const Tensor& x, const Axes& axes_in, bool keep) {
  const Axes axes = normalize_axes("logsumexp", axes_in, x.rank());
  const Tensor wide = wide_float(x);
  const Tensor highest = reduce_axes(Op::Max, wide, axes, /*keep=*/true);
  const Tensor shift = where(isinf(highest), 0, highest);  // inf - inf is NaN
  const Tensor total = reduce_axes(Op::Add, exp(sub(wide, shift)), axes, keep);
  return cast(add(log(total), reshape(shift, total.shape())), own_float(x));
}

Tensor norm_l1(const Tensor& x, const Axes& axes, bool keep) { return sum(abs(x), axes, keep); }
Tensor norm_l2(const Tensor& x, const Axes& axes, bool keep) {
  const Tensor wide = wide_float(x);
  return cast(
      sqrt(reduce_axes(Op::Add, square(wide), normalize_axes("norm", axes, x.rank()), keep)),
      own_float(x));
}
Tensor sum_square(const Tensor& x, const Axes& axes, bool keep) {
  if (!is_float(x.dtype())) {
    const Tensor wide = cast(x, accumulate_in(x.dtype()));
    return reduce_axes(Op::Add, square(wide), normalize_axes("sum_square", axes, x.rank()), keep);
  }
  const Tensor wide = wide_float(x);
  return cast(
      reduce_axes(Op::Add, square(wide), normalize_axes("sum_square", axes, x.rank()), keep),
      own_float(x));
}

namespace {

/// Element i of the scan is the reduction of a window that ends at i, over the axis padded with the identity.
Tensor scan(std::string_view operation, Op op, const Tensor& x, int64_t axis_in, ScanStart start,
            ScanOrder order) {
  const int axis = normalize_axis(operation, axis_in, x.rank());
  const int64_t extent = x.dim(axis);
  const DType own = strong(x.dtype()), wide = accumulate_in(x.dtype());
  Tensor y = cast(x, wide);
  if (extent > 0) {
    if (order == ScanOrder::Reverse) y = flip(y, {axis});
    std::vector<std::pair<int64_t, int64_t>> amounts(static_cast<size_t>(x.rank()), {0, 0});
    amounts[static_cast<size_t>(axis)] = start == ScanStart::Inclusive
                                             ? std::pair<int64_t, int64_t>{extent - 1, 0}
                                             : std::pair<int64_t, int64_t>{extent, -1};
    y = window(pad(y, amounts, op == Op::Add ? 0 : 1), axis, extent);
    y = reduce_axes(op, y, {x.rank()}, /*keep=*/false);
    if (order == ScanOrder::Reverse) y = flip(y, {axis});
  }
  return is_float(own) ? cast(y, own) : y;
}

}  // namespace

Tensor cumsum(const Tensor& x, int64_t axis, ScanStart start, ScanOrder order) {
  return scan("cumsum", Op::Add, x, axis, start, order);
}
Tensor cumprod(const Tensor& x, int64_t axis, ScanStart start, ScanOrder order) {
  return scan("cumprod", Op::Mul, x, axis, start, order);
}

}  // namespace ignis::tensor
