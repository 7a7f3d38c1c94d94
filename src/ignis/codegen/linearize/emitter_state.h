#pragma once

#include "ignis/codegen/linearize/blocks.h"
#include "ignis/codegen/optimize/loop_plan.h"
#include "ignis/codegen/optimize/stage.h"
#include "ignis/codegen/program.h"
#include "ignis/ir/range.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

// The state of emission, private to this folder.
namespace ignis::codegen {

using ir::Node;
using ir::Op;

/// The value of an axis at the point being emitted: sum of program scalars times factors, plus a constant; for the
/// axis in lanes, plus the lane number.
struct AxisValue {
  std::vector<std::pair<Node, int64_t>> terms;
  int64_t constant = 0;
  int lanes = 1;  ///< > 1: lane l stands for value + l
  int valid = 1;  ///< lanes that lie inside the axis; the others are masked
  bool bound = false;
  int64_t lo = 0, hi = 0;  ///< what the value lies between in the current segment
};

/// Tiles of one axis that have the same size.
struct Segment {
  int64_t begin = 0, tile = 1, count = 0;
};

/// Emits the loops of one store. Members by file: emitter.cpp walks the loops, emit_value.cpp computes values, addresses and
/// accesses at one point of the tile, emit_reduce.cpp writes reductions.
class Emitter {
 public:
  Emitter(const Kernel& kernel, const LoopPlan& plan, FloatLevel level, Program& program,
          BlockBuilder& builder);

  /// The tiles that fall to a part; returns how many there are for all parts together.
  int64_t run_parts();
  /// A band of a chain's store.
  struct Band {
    Node first, end;                 ///< rows
    Node first_tile, end_tile;       ///< the same by tiles
    std::vector<Node> outer;         ///< the values of the ranges around
    std::map<int64_t, Node> shifts;  ///< by slot: what is added to every offset in that buffer
  };
  /// In a block of its own in `block`: nothing that the store reads is read before it.
  void run_band(const BandAxes& axes, const Band& band, Block* block);

  // Used by the reduction's own emitter (emit_reduce.cpp).
  friend class ReduceEmitter;

 private:
  /// The tiles of an axis that the loops inside go over, bounds known at run time: [first, end). What a thread has of
  /// the axis counts through all segments, a cache tile lies in one.
  struct Window {
    enum Kind : uint8_t { None, Part, OneTile, CacheTile } kind = None;
    size_t segment = 0;  // CacheTile
    Node first, end;
  };

  int64_t extent(int axis) const { return k_.axes()[static_cast<size_t>(axis)].extent; }
  AxisValue& at(int axis) { return values_[static_cast<size_t>(axis)]; }
  std::vector<Segment> make_segments(int axis) const;
  int64_t tiles_of(int axis) const;

  void emit_level(size_t level, Block* block);
  void emit_segment(size_t level, size_t segment, int64_t start, Block* block);
  void enter_range(size_t level, size_t segment, const Node& first, const Node& end, Block* block);
  void enter(size_t level, size_t segment, const Node& local, Block* block);
  void leaf(Block* block);
  void store_tile(Block* block);

  // Values.
  Node eval(const Node& n);
  Node eval_new(const Node& n);
  Node eval_load(const Node& n);
  Node eval_const(const Node& n);
  Node eval_integer(const Node& n);  // weak index arithmetic
  bool can_transpose(const Address& address, int axis) const;
  Node load_staged();
  void store_staged(int axis, const Node& terms, Block* block);
  bool is_every_second(const Address& address, int axis) const;
  Node load_every_second(const Node& load, const Node& param, const Node& gate,
                         const Node& alternative);
  Node load_transposed(const Node& load, const Node& param, int axis);
  ir::Interval bounds_of(const Node& n);
  std::optional<bool> decide(const Node& condition);
  Node open_gate(const Node& gate);
  Node axis_scalar(int axis);
  Node axis_value(int axis);
  Node offset_of(const Node& index);
  Node splat(const Node& v, int lanes);
  std::vector<Node> operands(const Node& n, int& lanes);
  Node mask_of(int valid, int lanes);
  int vector_axis_of(const Address& address) const;
  bool is_contiguous(const Address& address, int axis) const;

  void emit_reduce(const ReduceSite& site);
  std::vector<uint32_t> key_of(const Node& n);
  Block* home_of_axes(AxisMask mask);

  const Kernel& k_;
  const LoopPlan& plan_;
  FloatLevel level_;
  Program& program_;
  BlockBuilder& b_;
  Node anchor_;  ///< of a band: the counter, always 0, of the block that no access may leave
  std::map<int64_t, Node> shifts_;
  std::vector<AxisValue> values_;
  std::vector<std::vector<Segment>> segments_;
  std::vector<Window> window_;
  Stage stage_;                                 ///< STAGE
  int64_t tile_size_ = 1;                       ///< copies on the tile axis in the current segment
  int64_t v_left_ = 0;                          ///< elements of the vector axis in the current tile
  std::map<std::vector<uint32_t>, Node> memo_;  ///< by expression and the values of its axes
};

/// Elements [first, first + count) of a tile of that size, given the value of the tile's first element and the bounds of
/// all tiles of the segment.
AxisValue part_of_tile(const AxisValue& tile, int64_t size, int64_t first, int64_t count);
/// Sets the vector axis to its k-th vector within a tile with `left` elements.
void set_vector(AxisValue& value, const AxisValue& base, int k, int lanes, int64_t left);

}  // namespace ignis::codegen
