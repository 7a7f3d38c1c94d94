#pragma once

#include "ignis/base/target.h"
#include "ignis/ir/affine.h"
#include "ignis/ir/graph.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ignis::codegen {

/// One range of a kernel. Output axes come first, from the largest stride of the stored buffer to the smallest.
struct Axis {
  ir::Node range;
  int64_t extent = 1;
  bool is_reduce = false;
};

/// Set of axes as bits.
using AxisMask = uint64_t;
inline AxisMask axis_bit(int axis) { return AxisMask{1} << axis; }

/// Offset of a memory access in elements: constant + linear terms + floor(axis / divisor) terms + opaque terms.
struct Address {
  struct Linear {
    int axis;
    int64_t coefficient;
  };
  struct Div {
    int axis;
    int64_t divisor, coefficient;
  };
  struct Opaque {
    ir::Node expression;
    int64_t coefficient;
    AxisMask axes;
  };
  int64_t constant = 0;
  std::vector<Linear> linear;
  std::vector<Div> divs;
  std::vector<Opaque> opaque;

  int64_t coefficient(int axis) const;
  /// True when the offset moves with the axis in any way.
  bool depends_on(int axis) const;
  /// Divisor of the axis's floor term, 0 when it has none.
  int64_t divisor(int axis) const;
};

/// A Reduce of the kernel.
struct ReduceSite {
  ir::Node node;
  std::vector<int> axes;        ///< its own, in loop order
  AxisMask outer = 0;           ///< output (or enclosing reduce) axes its value depends on
  std::vector<ir::Node> loads;  ///< below it, nested reduces excluded
  bool is_product = false;      ///< Add of a Mul: Mulacc applies
};

/// What scheduling and emission look up about a kernel whose indices are flat offsets.
class Kernel {
 public:
  /// `sink`: one Store; every Index is [param, offset].
  static Result<Kernel> analyse(std::shared_ptr<ir::Graph> graph, const ir::Node& sink);

  /// Takes the offsets out of the expressions (they are kept here by number), so that later passes on the values
  /// leave address arithmetic alone. Returns the sink to rewrite; give the result back by set_sink.
  ir::Node detach_addresses();
  Status set_sink(const ir::Node& sink);

  ir::Graph& graph() const { return *graph_; }
  const std::shared_ptr<ir::Graph>& shared_graph() const { return graph_; }
  const ir::Node& sink() const { return sink_; }
  ir::Node store() const { return sink_.src(0); }
  ir::Node stored_value() const { return store().src(1); }
  const std::vector<Axis>& axes() const { return axes_; }
  int axis_of(const ir::Node& range) const;
  AxisMask axes_of(const ir::Node& expression) const;
  const Address& address(const ir::Node& index) const;
  const std::vector<ReduceSite>& reduces() const { return reduces_; }
  const std::vector<ir::Node>& loads() const { return loads_; }
  /// Element type of the widest value computed or moved, addresses aside.
  int widest_bytes() const;
  /// Elementwise operations and multiply-adds (2 each) of one launch; bytes of the buffers it touches.
  double flops() const;
  double bytes() const;

 private:
  Kernel() = default;
  Status find_sites();
  Result<Address> read_address(const ir::Node& offset);

  std::shared_ptr<ir::Graph> graph_;
  ir::Node sink_;
  std::vector<Axis> axes_;
  std::unordered_map<ir::Node, int> axis_index_;
  std::vector<Address> addresses_;
  bool detached_ = false;
  std::vector<ReduceSite> reduces_;
  std::vector<ir::Node> loads_;
  mutable std::unordered_map<ir::Node, AxisMask> masks_;
};

/// Joins neighbouring ranges that every address walks as one (rows that follow each other without a gap).
ir::Node merge_ranges(ir::Graph& graph, const ir::Node& sink);

}  // namespace ignis::codegen
