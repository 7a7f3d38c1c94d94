#pragma once

#include "ignis/base/host_tensor.h"
#include "ignis/ir/graph.h"

#include <concepts>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ignis::tensor {

/// A wrong shape, dtype or axis in a tensor expression. The only exception of the library: operators cannot return an
/// Error. The sentence names the operation and gives both shapes or dtypes with the operands' names.
class GraphError : public std::exception {
 public:
  explicit GraphError(Error error);
  const Error& error() const { return error_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  Error error_;
  std::string text_;
};

/// Throws a GraphError of code InvalidArgument.
[[noreturn]] void fail(const std::string& message, const std::string& reason = {});

/// A lazy value of static shape: a node of one graph. Copying is cheap; nothing is computed here. Operators take the
/// graph from their operands; operands of two graphs are a GraphError.
class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<ir::Graph> graph, ir::Node node, std::string name = {});

  /// Input number `slot` of a compiled function. Weak dtypes have no storage and are refused.
  static Tensor input(const std::shared_ptr<ir::Graph>& graph, int64_t slot,
                      const std::string& name, DType dtype, const Shape& shape);
  /// A constant with data; the bytes are kept (moved, not copied). A tensor of one element and rank 0 becomes a
  /// CONST node, so that the simplifier sees its value.
  static Tensor constant(const std::shared_ptr<ir::Graph>& graph, HostTensor value,
                         std::string name = {});
  /// A constant over bytes that somebody else keeps, e.g. a mapped file.
  static Tensor from_data(const std::shared_ptr<ir::Graph>& graph, ir::BufferData data, DType dtype,
                          const Shape& shape, std::string name = {});
  /// Weak scalars of rank 0: they take the other operand's width.
  static Tensor scalar(const std::shared_ptr<ir::Graph>& graph, double value);
  static Tensor scalar(const std::shared_ptr<ir::Graph>& graph, int64_t value);
  static Tensor scalar(const std::shared_ptr<ir::Graph>& graph, int value) {
    return scalar(graph, static_cast<int64_t>(value));
  }
  static Tensor scalar(const std::shared_ptr<ir::Graph>& graph, bool value);
  /// `shape` filled with one value of the stated dtype; an integer exactly, a float rounded once.
  static Tensor full(const std::shared_ptr<ir::Graph>& graph, const Shape& shape, double value,
                     DType dtype);
  static Tensor full_int(const std::shared_ptr<ir::Graph>& graph, const Shape& shape, int64_t value,
                         DType dtype);
  static Tensor zeros(const std::shared_ptr<ir::Graph>& graph, const Shape& shape,
                      DType dtype = DType::Float32);
  static Tensor ones(const std::shared_ptr<ir::Graph>& graph, const Shape& shape,
                     DType dtype = DType::Float32);
  /// [count] start, start + step, …: a constant whose values the schedule recognises as affine in the index.
  static Tensor arange(const std::shared_ptr<ir::Graph>& graph, int64_t start, int64_t count,
                       int64_t step = 1, DType dtype = DType::Int32);

  explicit operator bool() const { return static_cast<bool>(node_); }
  const ir::Node& node() const { return node_; }
  const std::shared_ptr<ir::Graph>& graph() const { return graph_; }
  DType dtype() const { return node_.dtype(); }
  const Shape& shape() const { return node_.shape(); }
  int rank() const { return static_cast<int>(node_.shape().size()); }
  int64_t count() const { return element_count(shape()); }
  /// Extent of an axis; negative axes count from the end.
  int64_t dim(int axis) const;
  const std::string& name() const { return name_; }
  /// The same value under another name (used in messages only).
  Tensor named(std::string name) const;
  /// "f32 [1, 3] 'x'", for messages.
  std::string describe() const;
  /// The value of a scalar constant, also one that was stretched by full(); empty for anything else.
  std::optional<double> constant_value() const;
  /// The bytes of a constant (full() and scalar() excluded), or null bytes.
  ir::BufferData data() const;

 private:
  std::shared_ptr<ir::Graph> graph_;
  ir::Node node_;
  std::string name_;
};

/// An operand of an elementwise operation: a tensor, or a host scalar. bool is a bool constant, integers are weak ints,
/// floating values are weak floats: they take the tensor's width (`u8 + 1` is u8, `f16 * 2.5` is f16).
class Operand {
 public:
  Operand(const Tensor& tensor) : tensor_(tensor) {}  // NOLINT: implicit by design
  template <typename T>
    requires std::integral<T> || std::floating_point<T>
  Operand(T value) {  // NOLINT: implicit by design
    if constexpr (std::same_as<T, bool>) {
      kind_ = DType::Bool;
      int_ = value ? 1 : 0;
    } else if constexpr (std::integral<T>) {
      kind_ = DType::WeakInt;
      int_ = static_cast<int64_t>(value);
    } else {
      kind_ = DType::WeakFloat;
      float_ = static_cast<double>(value);
    }
  }
  bool is_tensor() const { return static_cast<bool>(tensor_); }
  const Tensor& tensor() const { return tensor_; }
  /// The operand as a tensor of `graph`.
  Tensor in(const std::shared_ptr<ir::Graph>& graph) const;

 private:
  Tensor tensor_;
  DType kind_ = DType::Void;
  int64_t int_ = 0;
  double float_ = 0;
};

/// Axis in [-rank, rank) as one in [0, rank), or a GraphError naming the operation.
int normalize_axis(std::string_view operation, int64_t axis, int rank);
/// Numpy broadcasting of two shapes, right-aligned; a GraphError naming both when they do not fit.
Shape broadcast_shapes(std::string_view operation, const Tensor& a, const Tensor& b);
/// The width a possibly weak value gets when it must be stored: int32 or float32 for weak ones, else itself.
Tensor commit(const Tensor& x);

}  // namespace ignis::tensor
