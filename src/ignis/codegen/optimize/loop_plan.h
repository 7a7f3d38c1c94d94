#pragma once

#include "ignis/base/notes.h"
#include "ignis/base/result.h"
#include "ignis/codegen/optimize/kernel.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ignis::codegen {

/// The loop tree of a CPU kernel, as its actions left it (kernel-codegen.md 13.0). Axes are indices of Kernel::axes.
///
/// Text form, one action each, in this order; explicit lists replay them:
///   VECTOR(axis, lanes, count)    lanes of the stored value; `count` vectors a tile; the remainder is a masked tail
///   TILE_REG(axis, size)          copies of the body on a second output axis; sizes `size` and `size - 1` cover it
///   TRANSPOSE(axis)               the tile is lanes x lanes: loads contiguous along `axis` are turned in registers
///   SEGMENT(axis, cut, …)         the axis is cut at these values, a body each: gates that a part proves vanish. Of an axis
///                                 in tiles, each part is tiled by itself
///   REORDER(axis, …)              output loops from outside to inside, each once
///   TILE_CACHE(axis, tiles, at)   an outer loop of `tiles` tiles of the axis, standing before position `at`
///   THREAD(axis, …)               threads cut the tiles of these axes, counted together with the last one fastest; every
///                                 loop over such an axis goes over what is the thread's
///   SPLIT_REDUCE(axis, lanes, p)  a reduce axis in `lanes` lanes times p partial accumulators
///   UNROLL(axis, u)               copies of the body of a reduce loop; u = extent: no loop
///   STAGE(axis)                   the terms of the sum over this axis are kept in the stored row, which the rest reads
///   SLIDE(axis)                   bodies go along the operand that copies of the tile share, not along the window
struct LoopPlan {
  struct Loop {
    int axis = 0;
    int64_t chunk =
        0;  ///< TILE_CACHE: tiles in one iteration; 0: the axis's own loop, one tile an iteration
    bool operator==(const Loop&) const = default;
  };
  struct SplitReduce {
    int axis = 0, lanes = 1, partials = 1;
    bool operator==(const SplitReduce&) const = default;
  };
  struct Unroll {
    int axis = 0;
    int64_t factor = 1;
    bool operator==(const Unroll&) const = default;
  };
  struct Segment {
    int axis = 0;
    std::vector<int64_t> cuts;  ///< ascending, inside (0, extent)
    bool operator==(const Segment&) const = default;
  };
  int vector_axis = -1, lanes = 1, vectors = 1;
  int tile_axis = -1;
  int64_t tile = 1;
  int staged_axis = -1;
  bool slides = false;      ///< along the tile axis
  bool transposes = false;  ///< tile == lanes, tiles are whole or a last short one
  std::vector<Loop> loops;
  std::vector<int> thread_axes;
  std::vector<SplitReduce> splits;
  std::vector<Unroll> unrolls;
  std::vector<Segment> segments;

  /// The parts of an output axis of this extent that SEGMENT makes, each [begin, end).
  std::vector<std::pair<int64_t, int64_t>> parts(int axis, int64_t extent) const;
  /// Tiles that cover an output axis of this extent.
  int64_t tiles(int axis, int64_t extent) const;
  int64_t unroll_of(int axis) const;
  const SplitReduce* split_of(int axis) const;
  std::vector<std::string> to_actions() const;
  bool operator==(const LoopPlan&) const = default;
};

/// "NAME(n,…)" taken apart. Errors: InvalidArgument.
struct ParsedAction {
  std::string name;
  std::vector<int64_t> args;
};
Result<ParsedAction> parse_action(const std::string& text);

/// The tree without any action: output loops outside in the order of the stored buffer, reduce loops inside.
LoopPlan default_plan(const Kernel& kernel);
/// Applies explicit actions to the default tree, in order. Errors: InvalidArgument naming the illegal action.
Result<LoopPlan> apply_actions(const Kernel& kernel, const std::vector<std::string>& actions);
/// Checks that the plan covers every point of the iteration space exactly once. Errors: InvalidArgument.
Status verify_plan(const Kernel& kernel, const LoopPlan& plan);

/// How TILE_REG covers an axis: `large` tiles of `size`, then those of one less. No tile is a short rest.
struct TileCover {
  int64_t size = 1, large = 0, count = 0;
};
TileCover cover(int64_t extent, int64_t tile);

/// What a chain walks of one of its stores, which threads then don't cut.
struct BandAxes {
  int rows = -1;           ///< the output axis whose loop takes a band at a time
  std::vector<int> outer;  ///< those around it, at one value in a band: in no tile
  int64_t most_tile = 1;   ///< the largest tile of rows; 1: they are in none
  bool holds(int axis) const;
};

/// Chooses the actions from the kernel's addresses and the target's registers and caches, without a search. `band`: null
/// when the kernel is no store of a chain. `why` gets what was compared.
LoopPlan choose_plan(const Kernel& kernel, const Target& target, FloatLevel level,
                     const BandAxes* band, Notes& why);

}  // namespace ignis::codegen
