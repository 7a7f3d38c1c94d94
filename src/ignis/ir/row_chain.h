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

/// Whether each row is made of the one of the same number alone.
bool is_own_row(const RowWindow& window);

/// A dim of a stored buffer that one range walks alone, from its begin to its end.
struct WalkedDim {
  size_t dim = 0;
  Node range;
};

/// The dims of the stored buffer that storage walks slowest, the slowest first, without those of one value: so far as
/// each is stored whole and walked by a range that stands in no other index.
std::vector<WalkedDim> slowest_dims(const Node& store);

/// How a chain runs: each unit, a run of rows of the last store that one thread computes, is walked in bands of at most
/// `rows` rows; no band holds rows of two values of an outer range. Stage by stage a band computes what it lacks; rows
/// that two units need belong to both.
struct Bands {
  int64_t rows = 1, units = 1;
};

/// One store of a chain.
struct RowStage {
  Node store, rows;
  std::vector<Node> outer;   ///< ranges around the rows, the slowest first: as many in each stage
  int64_t slot = 0;          ///< of the stored buffer
  int64_t extent = 0;        ///< rows
  int64_t row_elements = 0;  ///< of the stored buffer, with its padding
  int64_t row_bytes = 0;
  std::vector<int64_t>
      outer_elements;  ///< distance of neighbours along each outer range; not of the last stage
  int64_t halo_lo = 0, halo_hi = 0;  ///< rows of zeros around the stored buffer
  RowWindow window;                  ///< over the rows of the stage before; unused in the first
};

/// The stages of a Sink with several stores. The ranges of AxisKind::Thread are the outer ones and, the fastest, the
/// rows. Each stage but the first reads what the one before wrote: at its own value of each outer range, and rows through
/// a window. Errors: Unsupported.
Result<std::vector<RowStage>> row_stages(Graph& graph, const Node& sink);

/// Values of the outer ranges together.
int64_t outer_count(const RowStage& stage);

/// Whether a row of each stage is made of the same row of the stage before.
bool rows_are_alike(std::span<const RowStage> stages);

/// The rows of each stage that a band of `rows` rows of the last one reads or writes. Buffers between stages have
/// memory for these only, once for each unit.
std::vector<int64_t> held_rows(std::span<const RowStage> stages, int64_t rows);

/// The most rows of the last stage whose band stays within `bytes`, 0 when not even one does.
int64_t most_band_rows(std::span<const RowStage> stages, int64_t bytes);

/// What a chain's memory is laid out for, in its Sink: other bands may be smaller. Errors: Unsupported.
Result<Bands> bands_of(const Node& sink);
Arg encode(const Bands& bands);

}  // namespace ignis::ir
