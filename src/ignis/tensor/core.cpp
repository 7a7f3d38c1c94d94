#include "ignis/tensor/core.h"

#include "ignis/base/float_formats.h"
#include "ignis/tensor/build.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ignis::tensor {

using ir::Node;
using ir::Op;

GraphError::GraphError(Error error) : error_(std::move(error)), text_(error_.message()) {}

void fail(const std::string& message, const std::string& reason) {
  throw GraphError(Error(ErrorCode::InvalidArgument, message, reason));
}

Tensor::Tensor(std::shared_ptr<ir::Graph> graph, Node node, std::string name)
    : graph_(std::move(graph)), node_(node), name_(std::move(name)) {}

namespace {

void check_shape(std::string_view operation, const Shape& shape) {
  detail::check_count(operation, shape);
}

void check_strong(std::string_view operation, DType dtype) {
  if (is_weak(dtype) || dtype == DType::Void) {
    fail(std::string(operation) + ": dtype " + std::string(to_string(dtype)) + " has no storage.");
  }
}

}  // namespace

Tensor Tensor::input(const std::shared_ptr<ir::Graph>& graph, int64_t slot, const std::string& name,
                     DType dtype, const Shape& shape) {
  check_strong("input '" + name + "'", dtype);
  check_shape("input '" + name + "'", shape);
  ir::ParamArg param;
  param.slot = slot;
  param.name = name;
  param.shape = shape;
  return Tensor(graph, graph->param(dtype, param), name);
}

Tensor Tensor::constant(const std::shared_ptr<ir::Graph>& graph, HostTensor value,
                        std::string name) {
  check_strong("constant", value.dtype);
  check_shape("constant", value.shape);
  if (value.shape.empty()) {
    const Node node = is_float(value.dtype)
                          ? graph->constant_float(value.dtype, element_as_double(value, 0))
                          : graph->constant(value.dtype, element_as_int(value, 0));
    return Tensor(graph, node, std::move(name));
  }
  auto owner = std::make_shared<HostTensor>(std::move(value));
  ir::BufferData data{owner->bytes.data(), static_cast<int64_t>(owner->bytes.size()), owner};
  return from_data(graph, std::move(data), owner->dtype, owner->shape, std::move(name));
}

Tensor Tensor::from_data(const std::shared_ptr<ir::Graph>& graph, ir::BufferData data, DType dtype,
                         const Shape& shape, std::string name) {
  check_strong("constant '" + name + "'", dtype);
  check_shape("constant '" + name + "'", shape);
  const int64_t needed = element_count(shape) * size_bytes(dtype);
  if (data.size_bytes < needed) {
    fail("Constant '" + name + "' of " + std::string(to_string(dtype)) + " " +
         ignis::to_string(shape) + " needs " + std::to_string(needed) + " bytes; its data has " +
         std::to_string(data.size_bytes) + ".");
  }
  return Tensor(graph, graph->buffer(dtype, shape, std::move(data)), std::move(name));
}

Tensor Tensor::scalar(const std::shared_ptr<ir::Graph>& graph, double value) {
  return Tensor(graph, graph->constant_float(DType::WeakFloat, value));
}
Tensor Tensor::scalar(const std::shared_ptr<ir::Graph>& graph, int64_t value) {
  return Tensor(graph, graph->constant(DType::WeakInt, value));
}
Tensor Tensor::scalar(const std::shared_ptr<ir::Graph>& graph, bool value) {
  return Tensor(graph, graph->constant(DType::Bool, value ? 1 : 0));
}

Tensor Tensor::full(const std::shared_ptr<ir::Graph>& graph, const Shape& shape, double value,
                    DType dtype) {
  check_shape("full", shape);
  return detail::stretch_scalar(graph, graph->constant_float(dtype, value), shape);
}
Tensor Tensor::full_int(const std::shared_ptr<ir::Graph>& graph, const Shape& shape, int64_t value,
                        DType dtype) {
  check_shape("full", shape);
  return detail::stretch_scalar(graph, graph->constant(dtype, value), shape);
}
Tensor Tensor::zeros(const std::shared_ptr<ir::Graph>& graph, const Shape& shape, DType dtype) {
  return full_int(graph, shape, 0, dtype);
}
Tensor Tensor::ones(const std::shared_ptr<ir::Graph>& graph, const Shape& shape, DType dtype) {
  return full_int(graph, shape, 1, dtype);
}

Tensor Tensor::arange(const std::shared_ptr<ir::Graph>& graph, int64_t start, int64_t count,
                      int64_t step, DType dtype) {
  check_shape("arange", {count});
  // Its values are stored: a bound, so that no model asks for all memory.
  if (count > (int64_t{1} << 27))
    fail("arange: " + std::to_string(count) + " positions are too many.");
  // The values are written out, and a hostile model can ask for any extent.
  constexpr int64_t kMostValues = int64_t{1} << 26;
  if (count > kMostValues) {
    fail("arange: " + std::to_string(count) + " values; at most " + std::to_string(kMostValues) +
             " are written out.",
         "LimitExceeded");
  }
  if (count == 1) return full_int(graph, {1}, start, dtype);
  HostTensor values = HostTensor::zeros(dtype, {count});
  for (int64_t i = 0; i < count; ++i) {
    // Unsigned: it wraps where the true value has no int64.
    const int64_t value = static_cast<int64_t>(
        static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
    if (is_float(dtype)) store_element(values, i, static_cast<double>(value));
    else store_element_int(values, i, value);
  }
  return constant(graph, std::move(values));
}

int64_t Tensor::dim(int axis) const {
  return shape()[static_cast<size_t>(normalize_axis("dim", axis, rank()))];
}

Tensor Tensor::named(std::string name) const { return Tensor(graph_, node_, std::move(name)); }

std::string Tensor::describe() const {
  std::string text = std::string(to_string(dtype())) + " " + ignis::to_string(shape());
  if (!name_.empty()) text += " '" + name_ + "'";
  return text;
}

std::optional<double> Tensor::constant_value() const {
  const Node splat = detail::splat_of(node_);
  if (!splat) return std::nullopt;
  return splat.const_float();
}

ir::BufferData Tensor::data() const {
  if (!node_.is(Op::Buffer)) return {};
  return graph_->buffer_data(node_);
}

Tensor Operand::in(const std::shared_ptr<ir::Graph>& graph) const {
  if (is_tensor()) return tensor_;
  if (kind_ == DType::WeakFloat) return Tensor(graph, graph->constant_float(kind_, float_));
  return Tensor(graph, graph->constant(kind_, int_));
}

int normalize_axis(std::string_view operation, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    fail(std::string(operation) + ": axis " + std::to_string(axis) +
         " is not an axis of a tensor of rank " + std::to_string(rank) + ".");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

namespace {

/// Merges `b` into `a`, right-aligned; false when they do not fit.
bool merge_shapes(Shape& a, const Shape& b) {
  if (a.size() < b.size()) a.insert(a.begin(), b.size() - a.size(), 1);
  const size_t offset = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t& extent = a[offset + i];
    if (extent == b[i] || b[i] == 1) continue;
    if (extent != 1) return false;
    extent = b[i];
  }
  return true;
}

}  // namespace

Shape broadcast_shapes(std::string_view operation, const Tensor& a, const Tensor& b) {
  const Tensor both[] = {a, b};
  return detail::broadcast_all(operation, both);
}

Tensor commit(const Tensor& x) {
  const DType to = strong(x.dtype());
  if (to == x.dtype()) return x;
  const Node splat = detail::splat_of(x.node());
  if (splat) {
    const Node node = is_float(to) ? x.graph()->constant_float(to, splat.const_float())
                                   : x.graph()->constant(to, splat.const_int());
    return detail::stretch_scalar(x.graph(), node, x.shape());
  }
  return Tensor(x.graph(), x.graph()->cast(x.node(), to), x.name());
}

namespace detail {

void check_count(std::string_view operation, const Shape& shape) {
  const Result<int64_t> count = checked_element_count(shape);
  if (!count) fail(std::string(operation) + ": " + count.error().message());
}

Node splat_of(const Node& node) {
  Node at = node;
  while (at.is(Op::Reshape) || at.is(Op::Expand) || at.is(Op::Permute) || at.is(Op::Flip) ||
         at.is(Op::Shrink)) {
    at = at.src(0);
  }
  return at.is_const() ? at : Node();
}

Node scalar_node(ir::Graph& graph, DType dtype, int64_t value) {
  return graph.constant(dtype, value);
}

Tensor stretch_scalar(const std::shared_ptr<ir::Graph>& graph, const Node& scalar,
                      const Shape& shape) {
  if (shape.empty()) return Tensor(graph, scalar);
  const std::vector<int64_t> ones(shape.size(), 1);
  Node node = graph->make(Op::Reshape, scalar.dtype(), {scalar}, ir::Arg{ones, {}});
  if (shape != ones) node = graph->make(Op::Expand, scalar.dtype(), {node}, ir::Arg{shape, {}});
  return Tensor(graph, node);
}

const std::shared_ptr<ir::Graph>& common_graph(std::string_view operation,
                                               std::span<const Operand* const> operands) {
  const Tensor* first = nullptr;
  for (const Operand* operand : operands) {
    if (!operand->is_tensor()) continue;
    if (first == nullptr) first = &operand->tensor();
    if (operand->tensor().graph() != first->graph()) {
      fail(std::string(operation) + ": " + first->describe() + " and " +
           operand->tensor().describe() + " belong to different graphs.");
    }
  }
  if (first == nullptr) fail(std::string(operation) + ": at least one operand must be a tensor.");
  return first->graph();
}

const std::shared_ptr<ir::Graph>& common_graph(std::string_view operation,
                                               std::span<const Tensor> operands) {
  if (operands.empty()) fail(std::string(operation) + ": there are no operands.");
  for (const Tensor& operand : operands) {
    if (!operand) fail(std::string(operation) + ": an operand is empty.");
    if (operand.graph() != operands[0].graph()) {
      fail(std::string(operation) + ": " + operands[0].describe() + " and " + operand.describe() +
           " belong to different graphs.");
    }
  }
  return operands[0].graph();
}

Shape broadcast_all(std::string_view operation, std::span<const Tensor> operands) {
  Shape shape;
  for (const Tensor& operand : operands) {
    if (merge_shapes(shape, operand.shape())) continue;
    std::string text = std::string(operation) + ": the shapes of ";
    for (size_t i = 0; i < operands.size(); ++i) {
      text += (i == 0 ? "" : i + 1 == operands.size() ? " and " : ", ") + operands[i].describe();
    }
    fail(text + " do not broadcast.");
  }
  check_count(operation, shape);
  return shape;
}

Tensor elementwise(std::string_view operation, Op op, DType dtype,
                   std::span<const Tensor> operands) {
  const std::shared_ptr<ir::Graph>& graph = common_graph(operation, operands);
  const Shape shape = broadcast_all(operation, operands);
  std::vector<Node> sources;
  bool all_splat = true;
  for (const Tensor& operand : operands) {
    const Node splat = splat_of(operand.node());
    all_splat &= static_cast<bool>(splat);
    sources.push_back(splat ? splat : expand(operand, shape).node());
  }
  const Node node = graph->make(op, dtype, sources);
  return all_splat ? stretch_scalar(graph, node, shape) : Tensor(graph, node);
}

Tensor movement(Op op, const Tensor& x, std::vector<int64_t> ints, const Shape& shape) {
  check_count(to_string(op), shape);
  if (const Node splat = splat_of(x.node())) return stretch_scalar(x.graph(), splat, shape);
  return Tensor(x.graph(), x.graph()->make(op, x.dtype(), {x.node()}, ir::Arg{std::move(ints), {}}),
                x.name());
}

Tensor expand(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  check_count("expand", shape);
  if (const Node splat = splat_of(x.node())) return stretch_scalar(x.graph(), splat, shape);
  Shape aligned(shape.size() - x.shape().size(), 1);
  aligned.insert(aligned.end(), x.shape().begin(), x.shape().end());
  Node node = x.node();
  ir::Graph& graph = *x.graph();
  if (node.is(Op::Expand)) {  // a stretch of a stretch starts from the same source
    const Node source = node.src(0);
    Shape source_aligned(shape.size() - source.shape().size(), 1);
    source_aligned.insert(source_aligned.end(), source.shape().begin(), source.shape().end());
    node = source;
    aligned = source_aligned;
  }
  if (node.shape() != aligned) {
    const Node source = node.is(Op::Reshape) ? node.src(0) : node;
    node = source.shape() == aligned
               ? source
               : graph.make(Op::Reshape, x.dtype(), {source}, ir::Arg{aligned, {}});
  }
  if (aligned != shape) node = graph.make(Op::Expand, x.dtype(), {node}, ir::Arg{shape, {}});
  return Tensor(x.graph(), node, x.name());
}

std::vector<int64_t> normalize_axes(std::string_view operation, const std::vector<int64_t>& axes,
                                    int rank) {
  std::vector<int64_t> result;
  if (axes.empty()) {
    for (int i = 0; i < rank; ++i) result.push_back(i);
    return result;
  }
  for (const int64_t axis : axes) result.push_back(normalize_axis(operation, axis, rank));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    fail(std::string(operation) + ": an axis is given twice.");
  }
  return result;
}

DType float_dtype(DType dtype) {
  if (dtype == DType::WeakInt) return DType::WeakFloat;
  return is_float(dtype) ? dtype : promote(dtype, DType::Float32);
}

}  // namespace detail
}  // namespace ignis::tensor
