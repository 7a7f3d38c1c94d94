#pragma once

#include "ignis/base/dtype.h"
#include "ignis/base/host_tensor.h"
#include "ignis/ir/layout.h"
#include "ignis/ir/op.h"

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace ignis::ir {

class Graph;

/// A node's constant part: integers and a text, interned per graph. What they mean is the op's own (op.h).
struct Arg {
  std::vector<int64_t> ints;
  std::string text;
  bool operator==(const Arg&) const = default;
};

/// A handle to an immutable, hash-consed node of one graph: equal nodes have equal ids. Copying is free; the graph
/// outlives its handles. A default-made handle is null.
///
/// Window: [.., L, ..] with (axis, kernel k, stride s, dilation d) becomes [.., o, .., k]: the axis shrinks to
/// o = (L - d*(k-1) - 1) / s + 1 and a new LAST axis of extent k is added; source index = o*s + k*d.
class Node {
 public:
  Node() = default;
  Node(const Graph* graph, uint32_t id) : graph_(graph), id_(id) {}

  explicit operator bool() const { return graph_ != nullptr; }
  bool operator==(const Node&) const = default;

  const Graph& graph() const { return *graph_; }
  uint32_t id() const { return id_; }
  Op op() const;
  DType dtype() const;
  /// 1 for scalars and for everything before vectors are made.
  int lanes() const;
  int source_count() const;
  Node src(int i) const;
  const Arg& arg() const;
  /// Extents of the value in a tensor graph; empty (a scalar) in kernels.
  const Shape& shape() const;

  bool is(Op o) const { return op() == o; }
  bool is_const() const { return op() == Op::Const && arg().text.empty(); }
  bool is_invalid() const { return op() == Op::Const && arg().text == "Invalid"; }
  /// Value of an integer or bool constant. uint64 as its bit pattern.
  int64_t const_int() const;
  /// Value of a float constant (integers are converted).
  double const_float() const;
  /// True for a constant of any dtype whose value is exactly `v`.
  bool is_const_value(int64_t v) const;
  /// Reduction operator of Reduce and ReduceAxes: Add, Mul, Max or Min.
  Op reduce_op() const;
  /// Range and Reg: the id.
  int64_t id_arg() const { return arg().ints[0]; }
  AxisKind axis_kind() const;
  /// Range: number of iterations when it is a constant, else -1.
  int64_t range_extent() const;

 private:
  const Graph* graph_ = nullptr;
  uint32_t id_ = 0;
};

/// What a Param stands for.
struct ParamArg {
  int64_t slot = 0;
  std::string name;
  Shape shape;    ///< logical extents of the buffer
  Layout layout;  ///< empty digits: planar, not yet decided
};
Arg encode(const ParamArg& param);
ParamArg decode_param(const Node& param);

std::ostream& operator<<(std::ostream& os, const Node& node);

}  // namespace ignis::ir

template <>
struct std::hash<ignis::ir::Node> {
  size_t operator()(const ignis::ir::Node& n) const noexcept {
    return (reinterpret_cast<size_t>(&n.graph()) >> 6) * 0x9E3779B97F4A7C15ull +
           n.id() * 0xD6E8FEB86659FD93ull;
  }
};
