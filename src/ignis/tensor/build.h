#pragma once

#include "ignis/tensor/core.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// How the front end makes nodes; shared by its sources only.
namespace ignis::tensor::detail {

/// The scalar constant a node spreads over its shape (through reshape, expand and the like), or a null node.
ir::Node splat_of(const ir::Node& node);
/// A scalar node of the graph stretched to `shape`.
Tensor stretch_scalar(const std::shared_ptr<ir::Graph>& graph, const ir::Node& scalar,
                      const Shape& shape);
/// A scalar constant of any dtype, from an exact integer or a float.
ir::Node scalar_node(ir::Graph& graph, DType dtype, int64_t value);

/// The graph of the first tensor operand; a GraphError when two operands belong to different graphs.
const std::shared_ptr<ir::Graph>& common_graph(std::string_view operation,
                                               std::span<const Operand* const> operands);
const std::shared_ptr<ir::Graph>& common_graph(std::string_view operation,
                                               std::span<const Tensor> operands);

/// A GraphError when a shape has a negative extent or more than 2^62 elements.
void check_count(std::string_view operation, const Shape& shape);
/// Numpy broadcasting of all operands' shapes.
Shape broadcast_all(std::string_view operation, std::span<const Tensor> operands);
/// An elementwise node over operands of dtypes that already fit, broadcast to their common shape. Splat operands
/// enter as bare constants.
Tensor elementwise(std::string_view operation, ir::Op op, DType dtype,
                   std::span<const Tensor> operands);
/// The same for operands that meet at the join of their dtypes, which is also the result's dtype.
Tensor joined(std::string_view operation, ir::Op op, const Operand& a, const Operand& b);
Tensor unary(ir::Op op, const Tensor& x);

/// A movement node; a splat stays a splat.
Tensor movement(ir::Op op, const Tensor& x, std::vector<int64_t> ints, const Shape& shape);
/// Extents of 1 stretched, equal rank.
Tensor expand(const Tensor& x, const Shape& shape);
/// Sum and the like over sorted axes, in x's own dtype; extents of 1 are reshaped away, empty ones give the identity.
Tensor reduce_axes(ir::Op op, const Tensor& x, const std::vector<int64_t>& axes, bool keep);

/// sum(a * b) over axes of the broadcast product, accumulated as a sum; returns to the join, or to `result`.
Tensor sum_of_products(const Tensor& a, const Tensor& b, const std::vector<int64_t>& axes,
                       std::optional<DType> result);

/// Axes as sorted, distinct values in [0, rank); all axes when empty.
std::vector<int64_t> normalize_axes(std::string_view operation, const std::vector<int64_t>& axes,
                                    int rank);
/// Dtype of sqrt, exp…: integers become float32, weak ints weak floats.
DType float_dtype(DType dtype);
/// Converts to float_dtype, and floats narrower than float32 to float32: where composed formulas are evaluated.
Tensor widen(const Tensor& x);

}  // namespace ignis::tensor::detail
