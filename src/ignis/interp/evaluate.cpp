#include "ignis/base/float_formats.h"
#include "ignis/interp/elementwise.h"
#include "ignis/interp/interp.h"
#include "ignis/interp/rows.h"
#include "ignis/interp/view.h"

#include <algorithm>
#include <unordered_map>

namespace ignis::interp {
namespace {

using ir::Node;
using ir::Op;

// An operation that only one other reads is computed row by row inside it, at most this many inside each other.
constexpr int kMaxDepth = 6;

ExprPtr make_view(DType dtype, Shape shape, std::shared_ptr<const Array> array) {
  auto expr = std::make_shared<Expr>();
  expr->dtype = dtype;
  expr->view = {std::move(array), dense_strides(shape), 0};
  expr->shape = std::move(shape);
  return expr;
}

ExprPtr make_operation(Op op, DType dtype, const Shape& shape, std::vector<ExprPtr> sources) {
  auto expr = std::make_shared<Expr>();
  expr->dtype = dtype;
  expr->shape = shape;
  expr->is_view = false;
  expr->op = op;
  for (const ExprPtr& source : sources) expr->depth = std::max(expr->depth, source->depth + 1);
  expr->sources = std::move(sources);
  return expr;
}

ExprPtr cast_to(const ExprPtr& x, DType dtype) {
  return x->dtype == dtype ? x : make_operation(Op::Cast, dtype, x->shape, {x});
}

Error unsupported(const Node& node) {
  return Error(ErrorCode::Unsupported, "The interpreter cannot compute " +
                                           std::string(ir::to_string(node.op())) + " on " +
                                           std::string(to_string(node.dtype())) + ".");
}

class Evaluator {
 public:
  Evaluator(std::span<const HostTensor> inputs, const Options& options)
      : inputs_(inputs), options_(options) {}

  Status run(std::span<const Node> roots, const Sink& sink) {
    const std::vector<Node> order = ir::toposort(roots);
    std::unordered_map<uint32_t, std::vector<size_t>> root_indices;
    for (size_t i = 0; i < roots.size(); ++i) root_indices[roots[i].id()].push_back(i);
    for (const Node& node : order) {
      for (int i = 0; i < node.source_count(); ++i) ++uses_[node.src(i).id()];
    }
    for (const Node& node : order) {
      IGNIS_TRY_ASSIGN(ExprPtr value, compute(node));
      const auto as_root = root_indices.find(node.id());
      const bool is_root = as_root != root_indices.end();
      const bool is_read_once = uses_[node.id()] == 1;
      if (!value->is_view && (is_root || !is_read_once || value->depth >= kMaxDepth)) {
        IGNIS_TRY_ASSIGN(value, materialize(value));
      }
      if (is_root) {
        for (const size_t index : as_root->second) {
          IGNIS_TRY_ASSIGN(HostTensor tensor, result(value, node));
          IGNIS_TRY(sink(index, std::move(tensor)));
        }
      }
      release_sources(node);
      if (uses_[node.id()] > 0) values_[node.id()] = std::move(value);
    }
    return Status::ok();
  }

 private:
  void release_sources(const Node& node) {
    for (int i = 0; i < node.source_count(); ++i) {
      const uint32_t id = node.src(i).id();
      if (--uses_[id] == 0) values_.erase(id);
    }
  }

  const ExprPtr& source(const Node& node, int i) const { return values_.at(node.src(i).id()); }

  Result<ExprPtr> compute(const Node& node) {
    switch (node.op()) {
      case Op::Const: return constant(node);
      case Op::Buffer: return buffer(node);
      case Op::Param: return param(node);
      case Op::Stack: return stack(node);
      case Op::Pad: return pad(node);
      case Op::Cat: return cat(node);
      case Op::Gather: return gather(node);
      case Op::ReduceAxes: return reduce_axes(node);
      case Op::Bitcast:
        if (size_bytes(node.dtype()) != size_bytes(source(node, 0)->dtype))
          return bitcast_rescaled(node);
        return elementwise(node);
      default: break;
    }
    if (ir::is_elementwise(node.op())) return elementwise(node);
    if (ir::is_movement(node.op())) return movement(node);
    return unsupported(node);
  }

  /// An array for a value of `shape`, zero-filled.
  Result<std::shared_ptr<Array>> allocate(DType dtype, const Shape& shape) const {
    IGNIS_TRY_ASSIGN(const int64_t count, checked_element_count(shape));
    if (count > options_.max_elements) {
      return Error(ErrorCode::OutOfMemory, "A value of shape " + to_string(shape) + " has " +
                                               std::to_string(count) +
                                               " elements; the interpreter's limit is " +
                                               std::to_string(options_.max_elements) + ".");
    }
    auto array = std::make_shared<Array>();
    if (is_float(dtype)) array->floats.resize(static_cast<size_t>(count));
    else array->ints.resize(static_cast<size_t>(count));
    return array;
  }

  /// The same value as a dense array.
  Result<ExprPtr> materialize(const ExprPtr& value) const {
    if (value->is_view && value->view.offset == 0 &&
        value->view.strides == dense_strides(value->shape))
      return value;
    IGNIS_TRY_ASSIGN(auto array, allocate(value->dtype, value->shape));
    compute_into(*value, *array, 0, dense_strides(value->shape), options_.round_to_dtype);
    return make_view(value->dtype, value->shape, std::move(array));
  }

  Result<HostTensor> result(const ExprPtr& value, const Node& node) const {
    IGNIS_TRY_ASSIGN(const ExprPtr dense, materialize(value));
    const DType dtype =
        is_float(node.dtype()) && !options_.round_to_dtype ? DType::Float64 : strong(node.dtype());
    return to_host(*dense->view.array, dtype, dense->shape);
  }

  static Result<ExprPtr> constant(const Node& node) {
    auto array = std::make_shared<Array>();
    if (is_float(node.dtype())) array->floats = {node.is_invalid() ? 0.0 : node.const_float()};
    else array->ints = {node.is_invalid() ? 0 : node.const_int()};
    return make_view(node.dtype(), {}, std::move(array));
  }

  Result<ExprPtr> buffer(const Node& node) const {
    const ir::BufferData data = node.graph().buffer_data(node);
    const int64_t size = element_count(node.shape()) * size_bytes(node.dtype());
    if (data.size_bytes < size || (data.bytes == nullptr && size > 0)) {
      return Error(ErrorCode::InvalidArgument, "A constant of shape " + to_string(node.shape()) +
                                                   " needs " + std::to_string(size) + " bytes; " +
                                                   std::to_string(data.size_bytes) + " are there.");
    }
    return make_view(node.dtype(), node.shape(),
                     read_elements(node.dtype(), data.bytes, element_count(node.shape())));
  }

  Result<ExprPtr> param(const Node& node) const {
    const ir::ParamArg arg = ir::decode_param(node);
    const std::string name = arg.name.empty() ? std::to_string(arg.slot) : arg.name;
    if (arg.slot < 0 || static_cast<size_t>(arg.slot) >= inputs_.size()) {
      return Error(ErrorCode::InvalidArgument, "Input '" + name + "' is not given.");
    }
    const HostTensor& input = inputs_[static_cast<size_t>(arg.slot)];
    if (input.dtype != node.dtype() || input.shape != node.shape()) {
      return Error(ErrorCode::InvalidArgument,
                   "Input '" + name + "' has " + std::string(to_string(input.dtype)) + " " +
                       to_string(input.shape) + "; the model takes " +
                       std::string(to_string(node.dtype())) + " " + to_string(node.shape()) + ".");
    }
    return make_view(node.dtype(), node.shape(),
                     read_elements(node.dtype(), input.bytes.data(), input.count()));
  }

  Result<ExprPtr> stack(const Node& node) const {
    const int n = node.source_count();
    if (n > 1 && source(node, 0)->shape.empty()) return unsupported(node);
    IGNIS_TRY_ASSIGN(auto array, allocate(node.dtype(), node.shape()));
    for (int i = 0; i < n; ++i) {
      const ExprPtr each = cast_to(source(node, i), node.dtype());
      compute_into(*each, *array, i * element_count(each->shape), dense_strides(each->shape),
                   options_.round_to_dtype);
    }
    return make_view(node.dtype(), node.shape(), std::move(array));
  }

  Result<ExprPtr> pad(const Node& node) const {
    IGNIS_TRY_ASSIGN(auto array, allocate(node.dtype(), node.shape()));
    const std::vector<int64_t> strides = dense_strides(node.shape());
    int64_t offset = 0;
    for (size_t i = 0; i < strides.size(); ++i) offset += node.arg().ints[2 * i] * strides[i];
    compute_into(*source(node, 0), *array, offset, strides, options_.round_to_dtype);
    return make_view(node.dtype(), node.shape(), std::move(array));
  }

  Result<ExprPtr> cat(const Node& node) const {
    IGNIS_TRY_ASSIGN(auto array, allocate(node.dtype(), node.shape()));
    const std::vector<int64_t> strides = dense_strides(node.shape());
    const auto axis = static_cast<size_t>(node.arg().ints[0]);
    int64_t offset = 0;
    for (int i = 0; i < node.source_count(); ++i) {
      const ExprPtr each = cast_to(source(node, i), node.dtype());
      compute_into(*each, *array, offset, strides, options_.round_to_dtype);
      offset += each->shape[axis] * strides[axis];
    }
    return make_view(node.dtype(), node.shape(), std::move(array));
  }

  /// out[j…, rest…] = x[i0[j…], i1[j…], …, rest…]; an index outside its axis gives 0.
  Result<ExprPtr> gather(const Node& node) const {
    IGNIS_TRY_ASSIGN(const ExprPtr x, materialize(source(node, 0)));
    const int axes = node.source_count() - 1;
    const Shape index_shape(
        node.shape().begin(),
        node.shape().end() - (static_cast<std::ptrdiff_t>(x->shape.size()) - axes));
    std::vector<ExprPtr> indices;
    for (int i = 0; i < axes; ++i) {
      IGNIS_TRY_ASSIGN(ExprPtr index,
                       materialize(broadcast_scalar(source(node, i + 1), index_shape)));
      indices.push_back(std::move(index));
    }
    IGNIS_TRY_ASSIGN(auto array, allocate(node.dtype(), node.shape()));
    int64_t rest = 1;
    for (size_t i = static_cast<size_t>(axes); i < x->shape.size(); ++i) rest *= x->shape[i];
    const int64_t count = element_count(index_shape);
    for (int64_t j = 0; j < count; ++j) {
      int64_t row = 0;
      bool inside = true;
      for (size_t i = 0; i < indices.size(); ++i) {
        const int64_t at =
            indices[i]->view.array->ints[static_cast<size_t>(j)];  // uint64 beyond 2^63: negative
        inside &= at >= 0 && at < x->shape[i];
        row = row * x->shape[i] + at;
        if (!inside) break;
      }
      if (!inside) continue;
      const Array& from = *x->view.array;
      if (is_float(node.dtype()))
        std::copy_n(from.floats.begin() + row * rest, rest, array->floats.begin() + j * rest);
      else std::copy_n(from.ints.begin() + row * rest, rest, array->ints.begin() + j * rest);
    }
    return make_view(node.dtype(), node.shape(), std::move(array));
  }

  Result<ExprPtr> reduce_axes(const Node& node) const {
    const Op op = node.reduce_op();
    if (op != Op::Add && op != Op::Mul && op != Op::Max && op != Op::Min) return unsupported(node);
    const ExprPtr value = cast_to(source(node, 0), node.dtype());
    std::vector<bool> is_reduced(value->shape.size(), false);
    for (size_t i = 1; i < node.arg().ints.size(); ++i)
      is_reduced[static_cast<size_t>(node.arg().ints[i])] = true;
    IGNIS_TRY(allocate_check(node));
    return make_view(
        node.dtype(), node.shape(),
        std::make_shared<const Array>(reduce(*value, op, is_reduced, options_.round_to_dtype)));
  }

  Status allocate_check(const Node& node) const {
    if (element_count(node.shape()) <= options_.max_elements) return Status::ok();
    return allocate(node.dtype(), node.shape()).error();
  }

  /// The bytes of the last axis read as another dtype of another size.
  Result<ExprPtr> bitcast_rescaled(const Node& node) const {
    const DType from = source(node, 0)->dtype;
    if (!can_compute(Op::Bitcast, node.dtype(), from)) return unsupported(node);
    IGNIS_TRY_ASSIGN(const ExprPtr x, materialize(source(node, 0)));
    const HostTensor bytes = to_host(*x->view.array, from, x->shape);
    Shape shape = x->shape;
    const int64_t last_bytes = shape.empty() ? 1 : shape.back() * size_bytes(from);
    if (shape.empty() || last_bytes % size_bytes(node.dtype()) != 0) return unsupported(node);
    shape.back() = last_bytes / size_bytes(node.dtype());
    return make_view(node.dtype(), shape,
                     read_elements(node.dtype(), bytes.bytes.data(), element_count(shape)));
  }

  Result<ExprPtr> elementwise(const Node& node) const {
    const Op op = node.op();
    std::vector<ExprPtr> sources;
    for (int i = 0; i < node.source_count(); ++i)
      sources.push_back(broadcast_scalar(source(node, i), node.shape()));
    if (!can_compute(op, node.dtype(), sources[0]->dtype)) return unsupported(node);
    // Weak constants meet the width of the operation; a comparison of integers needs no common width.
    if (ir::is_comparison(op)) {
      if (is_float(sources[0]->dtype) || is_float(sources[1]->dtype)) {
        for (ExprPtr& s : sources)
          if (!is_float(s->dtype)) s = cast_to(s, DType::Float64);
      }
    } else if (op == Op::Where) {
      sources[0] = cast_to(sources[0], DType::Bool);
      for (size_t i = 1; i < 3; ++i) sources[i] = cast_to(sources[i], node.dtype());
    } else if (op != Op::Cast && op != Op::Bitcast) {
      const bool is_shift = op == Op::Shl || op == Op::Shr;
      for (size_t i = 0; i < sources.size(); ++i) {
        if (i == 0 || !is_shift) sources[i] = cast_to(sources[i], node.dtype());
      }
    }
    return make_operation(op, node.dtype(), node.shape(), std::move(sources));
  }

  Result<ExprPtr> movement(const Node& node) const {
    const ExprPtr& value = source(node, 0);
    if (auto moved = move_views(value, node)) return *moved;
    IGNIS_TRY_ASSIGN(const ExprPtr dense, materialize(value));
    auto moved = move_views(dense, node);
    if (!moved) return unsupported(node);
    return *moved;
  }

  std::span<const HostTensor> inputs_;
  Options options_;
  std::unordered_map<uint32_t, int64_t> uses_;  // edges not yet read
  std::unordered_map<uint32_t, ExprPtr> values_;
};

}  // namespace

Status evaluate_each(std::span<const ir::Node> roots, std::span<const HostTensor> inputs,
                     const Sink& sink, const Options& options) {
  return Evaluator(inputs, options).run(roots, sink);
}

Result<std::vector<HostTensor>> evaluate(std::span<const ir::Node> roots,
                                         std::span<const HostTensor> inputs,
                                         const Options& options) {
  std::vector<HostTensor> results(roots.size());
  IGNIS_TRY(evaluate_each(
      roots, inputs,
      [&](size_t index, HostTensor value) {
        results[index] = std::move(value);
        return Status::ok();
      },
      options));
  return results;
}

}  // namespace ignis::interp
