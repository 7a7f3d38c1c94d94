#pragma once

#include "ignis/ir/graph.h"

#include <optional>
#include <span>
#include <vector>

// Stores that walk rows one after the other: a kernel of several stores runs band by band, so that what one store wrote
// is read by the next while a cache holds it.
namespace ignis::ir {

/// What a store reads of another buffer's rows: for its own row r the rows stride * r + first … stride * r + last.
struct RowWindow {
  Node rows;  ///< the store's own range
  int64_t stride = 1, first = 0, last = 0;
};

/// The window over dim `dim` of the buffer in `slot`, over all loads of it. Nothing where the store does not read it,
/// or an index there is anything but a multiple of one output range plus reduce ranges.
std::optional<RowWindow> find_row_window(Graph& graph, const Node& store, int64_t slot, size_t dim);

/// The dim of the stored buffer whose index is just `rows`.
std::optional<size_t> row_dim(const Node& store, const Node& rows);

/// How a chain runs: each unit, a run of rows of the last store that one thread computes, is walked in bands of at most
/// `rows` rows. Stage by stage a band computes what it lacks; rows that two units need belong to both.
struct Bands {
  int64_t rows = 1, units = 1;
};

/// One store of a chain.
struct RowStage {
  Node store, rows;
  int64_t slot = 0;          ///< of the stored buffer
  int64_t extent = 0;        ///< rows
  int64_t row_elements = 0;  ///< of the stored buffer, with its padding
  int64_t row_bytes = 0;
  int64_t halo_lo = 0, halo_hi = 0;  ///< rows of zeros around the stored buffer
  RowWindow window;                  ///< over the rows of the stage before; unused in the first
};

/// The stages of a Sink with several stores: each but the first reads what the one before wrote, and the row range of
/// each, of AxisKind::Thread, stands alone in an index of its store. Errors: Unsupported.
Result<std::vector<RowStage>> row_stages(Graph& graph, const Node& sink);

/// The rows of each stage that a band of `rows` rows of the last one reads or writes. Buffers between stages have
/// memory for these only, once for each unit.
std::vector<int64_t> held_rows(std::span<const RowStage> stages, int64_t rows);

/// The most rows of the last stage whose band stays within `bytes`, 0 when not even one does.
int64_t most_band_rows(std::span<const RowStage> stages, int64_t bytes);

/// What a chain's memory is laid out for, in its Sink: other bands may be smaller. Errors: Unsupported.
Result<Bands> bands_of(const Node& sink);
Arg encode(const Bands& bands);

}  // namespace ignis::ir
