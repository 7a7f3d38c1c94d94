#include "ignis/ir/row_chain.h"

#include "ignis/ir/affine.h"

#include <algorithm>

namespace ignis::ir {
namespace {

int64_t slot_of(const Node& index) { return index.src(0).arg().ints[0]; }

/// Distance of two neighbours along a dim, in elements.
int64_t dim_stride(const ParamArg& param, size_t dim) {
  const Layout layout = param.layout.digits.empty() ? Layout::planar(param.shape) : param.layout;
  int64_t stride = 0;
  for (size_t i = 0; i < layout.digits.size(); ++i) {
    if (layout.digits[i].dim == static_cast<int>(dim) && layout.digits[i].divisor == 1)
      stride = layout.digit_stride(i);
  }
  return stride;
}

}  // namespace

std::optional<RowWindow> find_row_window(Graph& graph, const Node& store, int64_t slot,
                                         size_t dim) {
  std::optional<RowWindow> window;
  for (const Node& load : toposort(store.src(1))) {
    if (!load.is(Op::Load) || slot_of(load.src(0)) != slot) continue;
    const Affine at = to_affine(graph, load.src(0).src(static_cast<int>(dim) + 1));
    RowWindow mine;
    mine.first = mine.last = at.constant;
    for (const auto& [atom, c] : at.terms) {
      if (!atom.is(Op::Range) || atom.range_extent() < 0) return std::nullopt;
      if (atom.axis_kind() == AxisKind::Reduce) {
        (c > 0 ? mine.last : mine.first) += c * (atom.range_extent() - 1);
      } else {
        if (mine.rows || c < 1) return std::nullopt;
        mine.rows = atom;
        mine.stride = c;
      }
    }
    if (!mine.rows) return std::nullopt;
    if (!window) {
      window = mine;
      continue;
    }
    if (window->rows != mine.rows || window->stride != mine.stride) return std::nullopt;
    window->first = std::min(window->first, mine.first);
    window->last = std::max(window->last, mine.last);
  }
  return window;
}

std::optional<size_t> row_dim(const Node& store, const Node& rows) {
  const Node index = store.src(0);
  std::optional<size_t> dim;
  for (int i = 1; i < index.source_count(); ++i) {
    if (!depends_on(index.src(i), rows)) continue;
    if (dim || index.src(i) != rows) return std::nullopt;
    dim = static_cast<size_t>(i) - 1;
  }
  return dim;
}

Result<std::vector<RowStage>> row_stages(Graph& graph, const Node& sink) {
  const Error bad(ErrorCode::Unsupported,
                  "The stores of a kernel are no chain of rows, each read by the next.");
  std::vector<RowStage> stages;
  size_t dim = 0;  // of the former stage
  for (int i = 0; i < sink.source_count(); ++i) {
    RowStage stage;
    stage.store = sink.src(i);
    if (!stage.store.is(Op::Store) || stage.store.source_count() != 2) return bad;
    for (const Node& n : toposort(stage.store.src(0))) {
      if (!n.is(Op::Range) || n.axis_kind() != AxisKind::Thread) continue;
      if (stage.rows) return bad;
      stage.rows = n;
    }
    if (!stage.rows) return bad;
    stage.slot = slot_of(stage.store.src(0));
    if (i > 0) {
      const auto window = find_row_window(graph, stage.store, stages.back().slot, dim);
      if (!window || window->rows != stage.rows) return bad;
      stage.window = *window;
    }
    const auto own = row_dim(stage.store, stage.rows);
    if (!own) return bad;
    dim = *own;
    const Node param = stage.store.src(0).src(0);
    const ParamArg buffer = decode_param(param);
    stage.extent = stage.rows.range_extent();
    stage.row_elements = dim_stride(buffer, dim);
    stage.row_bytes = stage.row_elements * size_bytes(param.dtype());
    if (buffer.layout.has_halo()) {
      stage.halo_lo = buffer.layout.halo_lo[dim];
      stage.halo_hi = buffer.layout.halo_hi[dim];
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

std::vector<int64_t> held_rows(std::span<const RowStage> stages, int64_t rows) {
  std::vector<int64_t> held(stages.size());
  for (size_t i = stages.size(); i-- > 0;) {
    held[i] = rows;
    const RowWindow& window = stages[i].window;
    rows = window.stride * (rows - 1) + window.last - window.first + 1;
  }
  return held;
}

int64_t most_band_rows(std::span<const RowStage> stages, int64_t bytes) {
  const auto fits = [&](int64_t rows) {
    const std::vector<int64_t> held = held_rows(stages, rows);
    int64_t sum = 0;
    for (size_t i = 0; i < stages.size(); ++i) sum += held[i] * stages[i].row_bytes;
    return sum <= bytes;
  };
  int64_t rows = 0;
  while (rows < stages.back().extent && fits(rows + 1)) ++rows;
  return rows;
}

Result<Bands> bands_of(const Node& sink) {
  const std::vector<int64_t>& ints = sink.arg().ints;
  if (ints.size() != 2 || ints[0] < 1 || ints[1] < 1) {
    return Error(ErrorCode::Unsupported, "A kernel of several stores does not say its bands.");
  }
  return Bands{ints[0], ints[1]};
}

Arg encode(const Bands& bands) { return Arg{{bands.rows, bands.units}, {}}; }

}  // namespace ignis::ir
