#include "ignis/tensor/indexing.h"

#include "ignis/tensor/build.h"
#include "ignis/tensor/elementwise.h"
#include "ignis/tensor/movement.h"
#include "ignis/tensor/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ignis::tensor {

using detail::reduce_axes;
using ir::Node;
using ir::Op;

namespace {

void require_index(std::string_view operation, const Tensor& indices) {
  if (is_int(indices.dtype())) return;
  fail(std::string(operation) + ": the indices " + indices.describe() + " are not integers.");
}

/// Values of a constant index tensor that are worth looking at.
std::optional<std::vector<int64_t>> constant_indices(const Tensor& indices) {
  constexpr int64_t kMost = 4096;
  if (indices.count() > kMost) return std::nullopt;
  if (const Node splat = detail::splat_of(indices.node())) {
    return std::vector<int64_t>(static_cast<size_t>(indices.count()), splat.const_int());
  }
  const ir::BufferData data = indices.data();
  if (data.bytes == nullptr) return std::nullopt;
  HostTensor host = HostTensor::zeros(indices.dtype(), indices.shape());
  if (data.size_bytes < static_cast<int64_t>(host.bytes.size())) return std::nullopt;
  if (!host.bytes.empty()) std::memcpy(host.bytes.data(), data.bytes, host.bytes.size());
  std::vector<int64_t> values;
  for (int64_t i = 0; i < host.count(); ++i) values.push_back(element_as_int(host, i));
  return values;
}

enum class Outside : uint8_t { Clamp, Keep };

/// Signed indices of 32 or 64 bits, negative ones counted from the end; those still outside are clamped or kept.
Tensor from_start(const Tensor& indices, int64_t extent, Outside outside) {
  const Tensor wide = indices.dtype() == DType::Int32 ? indices : cast(indices, DType::Int64);
  if (const std::optional<std::vector<int64_t>> known = constant_indices(indices)) {
    std::vector<int64_t> values = *known;
    for (int64_t& v : values) {
      if (v < 0 && !is_unsigned(indices.dtype())) v += extent;
      if (outside == Outside::Clamp) v = std::clamp<int64_t>(v, 0, extent - 1);
    }
    if (values == *known) return wide;
    return Tensor::constant(indices.graph(),
                            HostTensor::from(DType::Int64, indices.shape(), values));
  }
  const bool has_sign = !is_unsigned(indices.dtype());
  const Tensor counted = has_sign ? where(less(wide, 0), add(wide, extent), wide) : wide;
  return outside == Outside::Clamp ? clamp(counted, 0, extent - 1) : counted;
}

/// 0 … extent - 1 along one axis of `shape`, stretched to it.
Tensor position_along(const std::shared_ptr<ir::Graph>& graph, const Shape& shape, size_t axis,
                      DType dtype) {
  Shape line(shape.size(), 1);
  line[axis] = shape[axis];
  return broadcast_to(reshape(Tensor::arange(graph, 0, shape[axis], 1, dtype), line), shape);
}

/// The Gather node. Its indices are inside already: what lies outside never depends on who computes it.
Tensor make_gather(const Tensor& x, const std::vector<Tensor>& indices) {
  std::vector<Node> sources{x.node()};
  for (const Tensor& index : indices) sources.push_back(index.node());
  return Tensor(x.graph(), x.graph()->make(Op::Gather, x.dtype(), sources));
}

}  // namespace

Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis_in) {
  const Tensor both[] = {x, indices};
  detail::common_graph("gather", both);
  require_index("gather", indices);
  const int axis = normalize_axis("gather", axis_in, x.rank());
  const int64_t extent = x.dim(axis);
  Shape shape(x.shape().begin(), x.shape().begin() + axis);
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), x.shape().begin() + axis + 1, x.shape().end());
  if (element_count(shape) == 0) return Tensor::full_int(x.graph(), shape, 0, x.dtype());
  if (extent == 0)
    fail("gather: axis " + std::to_string(axis) + " of " + x.describe() + " is empty.");
  if (const Node splat = detail::splat_of(x.node()))
    return detail::stretch_scalar(x.graph(), splat, shape);
  if (const std::optional<std::vector<int64_t>> known = constant_indices(indices)) {
    std::vector<int64_t> at = *known;
    for (int64_t& v : at) v = std::clamp<int64_t>(v < 0 ? v + extent : v, 0, extent - 1);
    // Equal steps are a slice: no reading of indices at run time.
    const int64_t step = at.size() > 1 ? at[1] - at[0] : 1;
    bool is_line = step != 0;
    for (size_t i = 1; i < at.size(); ++i) is_line &= at[i] - at[i - 1] == step;
    if (is_line) {
      const int64_t end = at.back() + (step > 0 ? 1 : -1);
      return reshape(slice(x, axis, at[0], end < 0 ? INT64_MIN : end, step), shape);
    }
    if (std::all_of(at.begin(), at.end(), [&](int64_t v) { return v == at[0]; })) {
      Shape one(static_cast<size_t>(x.rank()) + indices.shape().size() - 1, 1);
      for (int i = 0; i < x.rank(); ++i) {
        if (i != axis) one[static_cast<size_t>(i < axis ? i : i + indices.rank() - 1)] = x.dim(i);
      }
      return broadcast_to(reshape(select(x, axis, at[0]), one), shape);
    }
  }
  const Tensor front = move_axis(x, axis, 0);
  Tensor y = make_gather(front, {from_start(indices, extent, Outside::Clamp)});
  std::vector<int64_t> perm;  // [indices…, before…, after…] -> [before…, indices…, after…]
  for (int i = 0; i < axis; ++i) perm.push_back(indices.rank() + i);
  for (int i = 0; i < indices.rank(); ++i) perm.push_back(i);
  for (int i = indices.rank() + axis; i < y.rank(); ++i) perm.push_back(i);
  return permute(y, perm);
}

Tensor gather_elements(const Tensor& x, const Tensor& indices, int64_t axis_in) {
  const Tensor both[] = {x, indices};
  detail::common_graph("gather_elements", both);
  require_index("gather_elements", indices);
  const auto axis = static_cast<size_t>(normalize_axis("gather_elements", axis_in, x.rank()));
  bool fits = x.rank() == indices.rank();
  for (size_t i = 0; fits && i < x.shape().size(); ++i)
    fits = i == axis || indices.shape()[i] <= x.shape()[i];
  if (!fits) {
    fail("gather_elements: the indices " + indices.describe() + " do not fit " + x.describe() +
         " along axis " + std::to_string(axis) + ".");
  }
  if (indices.count() == 0) return Tensor::full_int(x.graph(), indices.shape(), 0, x.dtype());
  if (x.shape()[axis] == 0)
    fail("gather_elements: axis " + std::to_string(axis) + " of " + x.describe() + " is empty.");
  const Tensor index = from_start(indices, x.shape()[axis], Outside::Clamp);
  std::vector<Tensor> all;
  for (size_t i = 0; i < x.shape().size(); ++i) {
    all.push_back(i == axis ? index : position_along(x.graph(), indices.shape(), i, index.dtype()));
  }
  return make_gather(x, all);
}

Tensor gather_nd(const Tensor& x, const Tensor& indices, int64_t batch_dims) {
  const Tensor both[] = {x, indices};
  detail::common_graph("gather_nd", both);
  require_index("gather_nd", indices);
  const auto refuse = [&] {
    fail("gather_nd: the indices " + indices.describe() + " do not fit " + x.describe() + " with " +
         std::to_string(batch_dims) + " batch axes.");
  };
  if (indices.rank() < 1 || batch_dims < 0 || batch_dims >= indices.rank() || batch_dims > x.rank())
    refuse();
  const int64_t depth = indices.shape().back();
  if (depth < 1 || batch_dims + depth > x.rank()) refuse();
  for (size_t i = 0; i < static_cast<size_t>(batch_dims); ++i) {
    if (x.shape()[i] != indices.shape()[i]) refuse();
  }
  const Shape place(indices.shape().begin(), indices.shape().end() - 1);
  Shape shape = place;
  shape.insert(shape.end(), x.shape().begin() + batch_dims + depth, x.shape().end());
  if (element_count(shape) == 0) return Tensor::full_int(x.graph(), shape, 0, x.dtype());
  if (x.count() == 0) refuse();
  const DType dtype = indices.dtype() == DType::Int32 ? DType::Int32 : DType::Int64;
  std::vector<Tensor> all;
  for (size_t i = 0; i < static_cast<size_t>(batch_dims); ++i) {
    all.push_back(position_along(x.graph(), place, i, dtype));
  }
  for (int64_t i = 0; i < depth; ++i) {
    const Tensor index = from_start(select(indices, -1, i),
                                    x.shape()[static_cast<size_t>(batch_dims + i)], Outside::Clamp);
    all.push_back(cast(broadcast_to(index, place), dtype));
  }
  return make_gather(x, all);
}

namespace {

/// Combines, over the last-but-one-to-last layout [.., places, updates(, rest)], the updates that match a place.
Tensor combine(ScatterOp op, const Tensor& match, const Tensor& updates, int64_t axis,
               const Tensor& x) {
  const DType dtype = x.dtype();
  DType wide = op == ScatterOp::Add || op == ScatterOp::Mul ? accumulator_dtype(dtype) : dtype;
  if (is_float(dtype) && bits(dtype) < 32) wide = DType::Float32;
  const Tensor values = cast(updates, wide), base = cast(x, wide);
  const auto fold = [&](Op reduce_op, const Tensor& identity) {
    return reduce_axes(reduce_op, where(match, values, identity), {axis}, /*keep=*/false);
  };
  const auto scalar = [&](double v) { return Tensor::full(x.graph(), {}, v, wide); };
  const auto bound = [&](bool highest) {
    if (is_float(wide)) return scalar(highest ? HUGE_VAL : -HUGE_VAL);
    return Tensor::full_int(x.graph(), {}, highest ? int_max(wide) : int_min(wide), wide);
  };
  Tensor y;
  switch (op) {
    case ScatterOp::Add: y = add(base, fold(Op::Add, scalar(0))); break;
    case ScatterOp::Mul: y = mul(base, fold(Op::Mul, scalar(1))); break;
    case ScatterOp::Max: y = maximum(base, fold(Op::Max, bound(false))); break;
    case ScatterOp::Min: y = minimum(base, fold(Op::Min, bound(true))); break;
    case ScatterOp::Replace: break;  // by position, not by value: see the callers
  }
  return cast(y, dtype);
}

/// Position of the last matching update of each place, or -1.
Tensor last_match(const Tensor& match, int64_t axis) {
  const Tensor position =
      position_along(match.graph(), match.shape(), static_cast<size_t>(axis), DType::Int32);
  return reduce_axes(Op::Max,
                     where(match, position, Tensor::full_int(match.graph(), {}, -1, DType::Int32)),
                     {axis},
                     /*keep=*/false);
}

}  // namespace

Tensor scatter_elements(const Tensor& x, const Tensor& indices, const Tensor& updates,
                        int64_t axis_in, ScatterOp op) {
  const Tensor operands[] = {x, indices, updates};
  detail::common_graph("scatter_elements", operands);
  require_index("scatter_elements", indices);
  const auto axis = static_cast<size_t>(normalize_axis("scatter_elements", axis_in, x.rank()));
  bool fits = x.rank() == indices.rank() && indices.shape() == updates.shape();
  for (size_t i = 0; fits && i < x.shape().size(); ++i)
    fits = i == axis || indices.shape()[i] <= x.shape()[i];
  if (!fits) {
    fail("scatter_elements: the indices " + indices.describe() + " and updates " +
         updates.describe() + " do not fit " + x.describe() + " along axis " +
         std::to_string(axis) + ".");
  }
  if (indices.count() == 0 || x.count() == 0) return x;
  const int rank = x.rank();
  const Tensor data = move_axis(x, static_cast<int64_t>(axis), -1);
  // Axes that the indices do not cover whole get the position -1, which is nowhere.
  std::vector<std::pair<int64_t, int64_t>> amounts;
  const Tensor index = move_axis(from_start(indices, x.shape()[axis], Outside::Keep),
                                 static_cast<int64_t>(axis), -1);
  for (int i = 0; i < rank; ++i)
    amounts.emplace_back(0, i + 1 < rank ? data.dim(i) - index.dim(i) : 0);
  const Tensor places = pad(index, amounts, -1);
  const Tensor values =
      pad(move_axis(cast(updates, x.dtype()), static_cast<int64_t>(axis), -1), amounts);
  const Tensor place =
      reshape(Tensor::arange(x.graph(), 0, data.dim(-1), 1, places.dtype()), {data.dim(-1), 1});
  const Tensor match = equal(unsqueeze(places, {-2}), place);  // [.., places, updates]
  Tensor y;
  if (op == ScatterOp::Replace) {
    const Tensor last = last_match(match, rank);
    y = where(less(last, 0), data, gather_elements(values, maximum(last, 0), -1));
  } else {
    y = combine(op, match, unsqueeze(values, {-2}), rank, data);
  }
  return move_axis(y, -1, static_cast<int64_t>(axis));
}

Tensor scatter_nd(const Tensor& x, const Tensor& indices, const Tensor& updates, ScatterOp op) {
  const Tensor operands[] = {x, indices, updates};
  detail::common_graph("scatter_nd", operands);
  require_index("scatter_nd", indices);
  const auto refuse = [&] {
    fail("scatter_nd: the indices " + indices.describe() + " and updates " + updates.describe() +
         " do not fit " + x.describe() + ".");
  };
  if (indices.rank() < 1) refuse();
  const int64_t depth = indices.shape().back();
  if (depth < 1 || depth > x.rank()) refuse();
  Shape expected(indices.shape().begin(), indices.shape().end() - 1);
  expected.insert(expected.end(), x.shape().begin() + depth, x.shape().end());
  if (updates.shape() != expected) refuse();
  if (updates.count() == 0 || x.count() == 0) return x;
  int64_t places = 1, rest = 1;
  for (int64_t i = 0; i < x.rank(); ++i) (i < depth ? places : rest) *= x.dim(static_cast<int>(i));
  const int64_t count = indices.count() / depth;
  const Tensor rows = reshape(indices, {count, depth});
  Tensor linear, is_inside;
  for (int64_t i = 0; i < depth; ++i) {
    const int64_t extent = x.dim(static_cast<int>(i));
    const Tensor index = cast(from_start(select(rows, 1, i), extent, Outside::Keep), DType::Int64);
    const Tensor inside = logical_and(greater_equal(index, 0), less(index, extent));
    linear = linear ? add(mul(linear, extent), index) : index;
    is_inside = is_inside ? logical_and(is_inside, inside) : inside;
  }
  linear = where(is_inside, linear, Tensor::full_int(x.graph(), {}, -1, DType::Int64));
  const Tensor match =
      equal(reshape(linear, {1, count}),
            reshape(Tensor::arange(x.graph(), 0, places, 1, DType::Int64), {places, 1}));
  const Tensor data = reshape(x, {places, rest});
  const Tensor values = reshape(cast(updates, x.dtype()), {count, rest});
  Tensor y;
  if (op == ScatterOp::Replace) {
    const Tensor last = last_match(match, 1);
    y = where(reshape(less(last, 0), {places, 1}), data, gather(values, maximum(last, 0), 0));
  } else {
    y = combine(op, unsqueeze(match, {2}), unsqueeze(values, {0}), 1, data);
  }
  return reshape(y, x.shape());
}

Tensor one_hot(const Tensor& indices, int64_t depth, int64_t axis_in, const Operand& on,
               const Operand& off) {
  require_index("one_hot", indices);
  if (depth < 0)
    fail("one_hot: depth " + std::to_string(depth) + " for " + indices.describe() + ".");
  const int axis = normalize_axis("one_hot", axis_in, indices.rank() + 1);
  const Tensor index = unsqueeze(from_start(indices, depth, Outside::Keep), {axis});
  Shape line(static_cast<size_t>(indices.rank()) + 1, 1);
  line[static_cast<size_t>(axis)] = depth;
  const Tensor match =
      equal(index, reshape(Tensor::arange(indices.graph(), 0, depth, 1, index.dtype()), line));
  return where(match, commit(on.in(indices.graph())), commit(off.in(indices.graph())));
}

}  // namespace ignis::tensor
