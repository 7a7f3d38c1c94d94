#pragma once

#include "ignis/base/math.h"
#include "ignis/base/notes.h"
#include "ignis/schedule/draft.h"
#include "ignis/schedule/schedule.h"

#include <optional>

// Which convolutions winograd.cpp rewrites.
namespace ignis::schedule {

// Taps of a window's side, outputs of a tile's side, inputs of a patch's side, and of a patch.
inline constexpr int64_t kTaps = 3, kTile = 2, kPatch = kTile + kTaps - 1,
                         kPlaces = kPatch * kPatch;

/// A convolution with a dense 3 x 3 window and stride 1, as its kernel's index maps show it.
struct DenseWindow {
  ir::Node reduce;
  LoadSite input, weights;
  ir::Node image;                           ///< output range over the batch, or a constant 0
  ir::Node row, column;                     ///< output ranges over the plane
  ir::Node output;                          ///< output range over output channels
  ir::Node channel, tap_row, tap_column;    ///< reduce ranges
  int64_t first_row = 0, first_column = 0;  ///< input index of output 0 under tap 0

  int64_t tile_rows() const { return ceil_div(row.range_extent(), kTile); }
  int64_t tile_columns() const { return ceil_div(column.range_extent(), kTile); }
  int64_t images() const { return image.is(ir::Op::Range) ? image.range_extent() : 1; }
};

/// The window of `draft`, if it is such a convolution of float32 over channels-last buffers with constant weights.
std::optional<DenseWindow> find_dense_window(Schedule& schedule, const Draft& draft);

/// Compares both ways by the cycles they take: their multiplications on all threads, or their weights where those come
/// from memory, and what the transforms move. `why` gets both.
bool winograd_pays(const Schedule& schedule, const DenseWindow& window, const Target& target,
                   Notes& why);

}  // namespace ignis::schedule
