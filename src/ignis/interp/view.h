#pragma once

#include "ignis/base/host_tensor.h"
#include "ignis/ir/graph.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace ignis::interp {

/// Elements of one evaluated value: float64 for float dtypes, int64 for the others (uint64 as its bit pattern).
struct Array {
  std::vector<double> floats;
  std::vector<int64_t> ints;
};

/// Element (i0, i1, …) of a view lies at offset + sum(i * strides) of `array`. All movement operations but Pad, Cat
/// and Gather only change shape, strides and offset.
struct View {
  std::shared_ptr<const Array> array;
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

/// A value that is either a view of evaluated elements, or an elementwise operation over such values that is
/// computed row by row when somebody needs it. That is how the product below a reduction never exists as a whole.
struct Expr {
  DType dtype = DType::Float32;
  Shape shape;
  bool is_view = true;
  View view;                                         ///< when is_view
  ir::Op op = ir::Op::Const;                         ///< else: an elementwise operation…
  std::vector<std::shared_ptr<const Expr>> sources;  ///< …over values of the same shape
  int depth = 0;                                     ///< operations on the longest way to a view
};
using ExprPtr = std::shared_ptr<const Expr>;

/// Strides of a dense row-major array.
std::vector<int64_t> dense_strides(const Shape& shape);

/// The value as a view over `shape` where every axis has stride 0 (for scalars).
ExprPtr broadcast_scalar(const ExprPtr& scalar, const Shape& shape);

/// Applies Reshape, Expand, Permute, Shrink, Flip, Window or Contiguous by changing the views only; nothing when
/// that is impossible (a Reshape of a strided view), or would compute an element more than once (Expand or Window
/// over an operation): then the value has to be computed first.
std::optional<ExprPtr> move_views(const ExprPtr& value, const ir::Node& movement);

/// Reads host memory of `count` elements.
std::shared_ptr<const Array> read_elements(DType dtype, const std::byte* bytes, int64_t count);
/// Writes dense elements as a host tensor, rounded to `dtype`.
HostTensor to_host(const Array& array, DType dtype, const Shape& shape);

}  // namespace ignis::interp
