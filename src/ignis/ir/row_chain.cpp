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

bool is_own_row(const RowWindow& window) {
  return window.stride == 1 && window.first == 0 && window.last == 0;
}

std::vector<WalkedDim> slowest_dims(const Node& store) {
  const Node index = store.src(0);
  const ParamArg param = decode_param(index.src(0));
  const Layout layout = param.layout.digits.empty() ? Layout::planar(param.shape) : param.layout;
  std::vector<WalkedDim> dims;
  for (const LayoutDigit& digit : layout.digits) {
    if (digit.extent == 1) continue;
    const auto dim = static_cast<size_t>(digit.dim);
    const Node range = index.src(digit.dim + 1);
    if (digit.divisor != 1 || !range.is(Op::Range) || range.range_extent() != param.shape[dim])
      break;
    int uses = 0;
    for (int i = 1; i < index.source_count(); ++i) uses += depends_on(index.src(i), range);
    if (uses != 1) break;
    dims.push_back({dim, range});
  }
  return dims;
}

namespace {

/// What a stage reads of the one before, whose `dims` are its outer ones and, last, its rows.
Status find_reads(Graph& graph, std::span<const WalkedDim> dims, int64_t slot, RowStage& stage) {
  const Error bad(ErrorCode::Unsupported, "A store of a chain does not read rows of the former.");
  for (const WalkedDim& d : dims) {
    const auto window = find_row_window(graph, stage.store, slot, d.dim);
    if (!window) return bad;
    if (d.dim == dims.back().dim) {
      stage.window = *window;
      stage.rows = window->rows;
      continue;
    }
    if (!is_own_row(*window) || window->rows.range_extent() != d.range.range_extent()) return bad;
    stage.outer.push_back(window->rows);
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<RowStage>> row_stages(Graph& graph, const Node& sink) {
  const Error bad(ErrorCode::Unsupported,
                  "The stores of a kernel are no chain of rows, each read by the next.");
  std::vector<RowStage> stages;
  std::vector<WalkedDim> dims;  // of the former stage
  for (int i = 0; i < sink.source_count(); ++i) {
    RowStage stage;
    stage.store = sink.src(i);
    if (!stage.store.is(Op::Store) || stage.store.source_count() != 2) return bad;
    if (i > 0) IGNIS_TRY(find_reads(graph, dims, stages.back().slot, stage));
    size_t marked = 0;
    for (const Node& n : toposort(stage.store.src(0)))
      marked += n.is(Op::Range) && n.axis_kind() == AxisKind::Thread;
    dims = slowest_dims(stage.store);
    const bool is_last = i + 1 == sink.source_count();
    if (!is_last || i == 0) {
      if (marked == 0 || dims.size() < marked) return bad;
      dims.resize(marked);
      std::vector<Node> own;
      for (const WalkedDim& d : dims) own.push_back(d.range);
      if (i == 0) {
        stage.rows = own.back();
        stage.outer.assign(own.begin(), own.end() - 1);
      }
      own.pop_back();
      if (own != stage.outer || dims.back().range != stage.rows) return bad;
    }
    std::vector<Node> walked = stage.outer;
    walked.push_back(stage.rows);
    for (size_t a = 0; a < walked.size(); ++a) {
      if (walked[a].axis_kind() != AxisKind::Thread ||
          std::count(walked.begin(), walked.end(), walked[a]) != 1)
        return bad;
    }
    if (walked.size() != marked) return bad;
    const Node param = stage.store.src(0).src(0);
    const ParamArg buffer = decode_param(param);
    stage.slot = slot_of(stage.store.src(0));
    stage.extent = stage.rows.range_extent();
    if (is_last) {
      const Layout layout =
          buffer.layout.digits.empty() ? Layout::planar(buffer.shape) : buffer.layout;
      stage.row_elements = layout.storage_count() / (stage.extent * outer_count(stage));
    } else {
      const size_t row = dims.back().dim;
      stage.row_elements = dim_stride(buffer, row);
      for (size_t a = 0; a + 1 < dims.size(); ++a) {
        stage.outer_elements.push_back(dim_stride(buffer, dims[a].dim));
        if (buffer.layout.has_halo() && buffer.layout.halo_lo[dims[a].dim] != 0) return bad;
      }
      if (buffer.layout.has_halo()) {
        stage.halo_lo = buffer.layout.halo_lo[row];
        stage.halo_hi = buffer.layout.halo_hi[row];
      }
    }
    stage.row_bytes = stage.row_elements * size_bytes(param.dtype());
    stages.push_back(std::move(stage));
  }
  return stages;
}

int64_t outer_count(const RowStage& stage) {
  int64_t count = 1;
  for (const Node& range : stage.outer) count *= range.range_extent();
  return count;
}

bool rows_are_alike(std::span<const RowStage> stages) {
  for (size_t i = 1; i < stages.size(); ++i) {
    if (!is_own_row(stages[i].window) || stages[i].extent != stages[0].extent) return false;
  }
  return true;
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
