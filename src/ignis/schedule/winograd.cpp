#include "ignis/schedule/winograd.h"

#include "ignis/ir/affine.h"
#include "ignis/ir/simplify.h"
#include "ignis/schedule/draft.h"
#include "ignis/schedule/indexing.h"
#include "ignis/schedule/winograd_window.h"

#include <algorithm>
#include <array>
#include <cmath>

// With d the 4 x 4 inputs and g the 3 x 3 weights of one channel, the 2 x 2 outputs are A' ((G g G') * (B' d B)) A:
//   B' = 1  0 -1  0    G =  1    0    0     A' = 1  1  1  0
//        0  1  1  0        1/2  1/2  1/2         0  1 -1 -1
//        0 -1  1  0        1/2 -1/2  1/2
//        0  1  0 -1         0    0    1
// The products `*` of all tiles and channels, one of the 16 places at a time, are matrix products.
namespace ignis::schedule {
namespace {

using ir::AxisKind;
using ir::Graph;
using ir::Node;
using ir::Op;

/// A Range (or 0 where the extent is 1) numbered after those made before.
class Ranges {
 public:
  Ranges(Graph& graph, int64_t next) : g_(graph), next_(next) {}
  Node make(int64_t extent, AxisKind kind = AxisKind::Loop) {
    return extent == 1 ? g_.constant(DType::WeakInt, 0) : g_.range(extent, next_++, kind);
  }

 private:
  Graph& g_;
  int64_t next_;
};

std::vector<Node> only_ranges(const std::vector<Node>& list) {
  std::vector<Node> ranges;
  for (const Node& n : list) {
    if (n.is(Op::Range)) ranges.push_back(n);
  }
  return ranges;
}

class Rewriter {
 public:
  Rewriter(Schedule& schedule, Draft& draft, const Target& target, const Options& options)
      : schedule_(schedule),
        draft_(draft),
        target_(target),
        options_(options),
        g_(*schedule.graph) {}

  std::optional<WinogradDrafts> run();

 private:
  Buffer& buffer(int id) { return schedule_.buffers[static_cast<size_t>(id)]; }
  const Buffer& buffer_of(const LoadSite& site) {
    return buffer(draft_.buffers[static_cast<size_t>(site.slot)]);
  }
  int add_buffer(const Shape& shape, const std::string& name, BufferRole role) {
    return schedule::add_buffer(schedule_, role, DType::Float32, shape, ir::Layout::planar(shape),
                                name);
  }

  int64_t spread(int64_t tiles, int64_t channels) const;
  void widen_halo();

  Node weak(int64_t v) { return g_.constant(DType::WeakInt, v); }
  Node plus(const Node& a, int64_t v) {
    return v == 0 ? a : ir::simplify(g_, g_.alu(Op::Add, {a, weak(v)}));
  }
  Node times(const Node& a, int64_t v) { return ir::simplify(g_, g_.alu(Op::Mul, {a, weak(v)})); }
  Node add(const Node& a, const Node& b) { return g_.alu(Op::Add, {a, b}); }
  Node sub(const Node& a, const Node& b) { return g_.alu(Op::Sub, {a, b}); }
  /// values[place], chosen by comparisons: a kernel that has all places in one tile computes what they share once.
  Node choose(const Node& place, const std::vector<Node>& values);
  Draft start_draft(int stored) const;
  void finish_draft(Draft& draft, const Shape& shape, const std::vector<Node>& index,
                    const Node& value);
  /// The tile's number in the plane.
  Node tile_of(const Node& i, const Node& j) {
    return ir::simplify(g_, g_.alu(Op::Add, {times(i, w_.tile_columns()), j}));
  }

  Draft transform_input();
  Draft transform_weights();
  Draft multiply();
  Draft transform_output();

  Schedule& schedule_;
  Draft& draft_;
  const Target& target_;
  const Options& options_;
  Graph& g_;
  DenseWindow w_;
  int patches_ = -1, weights_ = -1, products_ = -1;  ///< buffers
};

/// Tiles at the far edge of an odd plane read one row or column more; what it holds reaches no output.
void Rewriter::widen_halo() {
  ir::Layout& layout = buffer(draft_.buffers[static_cast<size_t>(w_.input.slot)]).layout;
  const Shape& shape = buffer_of(w_.input).shape;
  std::vector<int64_t> lo = layout.halo_lo, hi = layout.halo_hi;
  lo.resize(4);
  hi.resize(4);
  const auto need = [&](size_t dim, int64_t tiles, int64_t first) {
    hi[dim] = std::max(hi[dim], first + kTile * (tiles - 1) + kPatch - shape[dim]);
  };
  need(2, w_.tile_rows(), w_.first_row);
  need(3, w_.tile_columns(), w_.first_column);
  if (lo == std::vector<int64_t>(4, 0) && hi == lo) return;
  layout = ir::Layout::permuted(shape, {0, 2, 3, 1}, std::move(lo), std::move(hi));
}

Node Rewriter::choose(const Node& place, const std::vector<Node>& values) {
  Node chosen = values.back();
  for (size_t i = values.size() - 1; i-- > 0;) {
    const Node is_up_to = g_.alu(Op::Cmplt, {place, weak(static_cast<int64_t>(i) + 1)});
    chosen = g_.alu(Op::Where, {is_up_to, values[i], chosen});
  }
  return chosen;
}

Draft Rewriter::start_draft(int stored) const {
  Draft draft;
  draft.order = draft_.order;
  draft.buffers.push_back(stored);
  // Named after the convolution; its later layers are the output's.
  for (const Node& layer : draft_.layers) {
    if (layer.is(Op::ReduceAxes)) draft.layers.push_back(layer);
  }
  return draft;
}

void Rewriter::finish_draft(Draft& draft, const Shape& shape, const std::vector<Node>& index,
                            const Node& value) {
  ir::ParamArg arg;
  arg.slot = 0;
  arg.shape = shape;
  std::vector<Node> sources{g_.param(DType::Float32, arg)};
  sources.insert(sources.end(), index.begin(), index.end());
  const Node at = g_.make(Op::Index, DType::Float32, sources);
  draft.sink = g_.make(Op::Sink, DType::Void, {g_.make(Op::Store, DType::Void, {at, value})});
}

/// patches[place][image][tile][channel] = B' d B
Draft Rewriter::transform_input() {
  Ranges ranges(g_, 0);
  Draft draft = start_draft(patches_);
  const Node place = ranges.make(kPlaces), image = ranges.make(w_.images());
  const Node i = ranges.make(w_.tile_rows()), j = ranges.make(w_.tile_columns());
  const Node channel = ranges.make(w_.channel.range_extent());
  draft.ranges = only_ranges({place, image, i, j, channel});
  const int source = draft_.buffers[static_cast<size_t>(w_.input.slot)];
  std::array<std::array<Node, kPatch>, kPatch> d, half;
  for (int64_t r = 0; r < kPatch; ++r) {
    for (int64_t c = 0; c < kPatch; ++c) {
      const std::vector<Node> at{image, channel, plus(times(i, kTile), w_.first_row + r),
                                 plus(times(j, kTile), w_.first_column + c)};
      d[static_cast<size_t>(r)][static_cast<size_t>(c)] =
          load_buffer(g_, draft, source, buffer(source).shape, DType::Float32, at);
    }
  }
  const auto transform = [&](const Node& a, const Node& b, const Node& c, const Node& e) {
    return std::array<Node, kPatch>{sub(a, c), add(b, c), sub(c, b), sub(b, e)};
  };
  for (size_t c = 0; c < kPatch; ++c) {
    const auto column = transform(d[0][c], d[1][c], d[2][c], d[3][c]);
    for (size_t r = 0; r < kPatch; ++r) half[r][c] = column[r];
  }
  std::vector<Node> values;
  for (size_t r = 0; r < kPatch; ++r) {
    for (const Node& v : transform(half[r][0], half[r][1], half[r][2], half[r][3]))
      values.push_back(v);
  }
  finish_draft(draft, buffer(patches_).shape, {place, image, tile_of(i, j), channel},
               choose(place, values));
  return draft;
}

/// weights[place][output][channel] = G g G', rounded once.
Draft Rewriter::transform_weights() {
  Ranges ranges(g_, 0);
  Draft draft = start_draft(weights_);
  draft.at_load = true;
  const Node place = ranges.make(kPlaces), output = ranges.make(w_.output.range_extent());
  const Node channel = ranges.make(w_.channel.range_extent());
  draft.ranges = only_ranges({place, output, channel});
  const int source = draft_.buffers[static_cast<size_t>(w_.weights.slot)];
  std::array<std::array<Node, kTaps>, kTaps> taps;
  std::array<std::array<Node, kTaps>, kPatch> half;
  for (int64_t r = 0; r < kTaps; ++r) {
    for (int64_t c = 0; c < kTaps; ++c) {
      std::vector<Node> at;
      for (const Node& index : w_.weights.index) {
        at.push_back(ir::simplify(g_, ir::substitute(g_, index,
                                                     {{w_.tap_row, weak(r)},
                                                      {w_.tap_column, weak(c)},
                                                      {w_.channel, channel},
                                                      {w_.output, output}})));
      }
      const Node value = load_buffer(g_, draft, source, buffer(source).shape, DType::Float32, at);
      taps[static_cast<size_t>(r)][static_cast<size_t>(c)] = g_.cast(value, DType::Float64);
    }
  }
  const Node a_half = g_.constant_float(DType::Float64, 0.5);
  const auto transform = [&](const Node& a, const Node& b, const Node& c) {
    const Node sum = g_.alu(Op::Mul, {add(a, c), a_half}), middle = g_.alu(Op::Mul, {b, a_half});
    return std::array<Node, kPatch>{a, add(sum, middle), sub(sum, middle), c};
  };
  for (size_t c = 0; c < kTaps; ++c) {
    const auto column = transform(taps[0][c], taps[1][c], taps[2][c]);
    for (size_t r = 0; r < kPatch; ++r) half[r][c] = column[r];
  }
  std::vector<Node> values;
  for (size_t r = 0; r < kPatch; ++r) {
    for (const Node& v : transform(half[r][0], half[r][1], half[r][2])) values.push_back(v);
  }
  finish_draft(draft, buffer(weights_).shape, {place, output, channel},
               g_.cast(choose(place, values), DType::Float32));
  return draft;
}

/// products[place][image][tile][output] = patches x weights
Draft Rewriter::multiply() {
  Ranges ranges(g_, 0);
  Draft draft = start_draft(products_);
  const Node place = ranges.make(kPlaces), image = ranges.make(w_.images());
  const Node tile = ranges.make(w_.tile_rows() * w_.tile_columns());
  const Node output = ranges.make(w_.output.range_extent());
  const Node channel = ranges.make(w_.channel.range_extent(), AxisKind::Reduce);
  draft.ranges = only_ranges({place, image, tile, output});
  const Node a = load_buffer(g_, draft, patches_, buffer(patches_).shape, DType::Float32,
                             {place, image, tile, channel});
  const Node b = load_buffer(g_, draft, weights_, buffer(weights_).shape, DType::Float32,
                             {place, output, channel});
  const Node sum = g_.make(Op::Reduce, DType::Float32, {g_.alu(Op::Mul, {a, b}), channel},
                           ir::Arg{{static_cast<int64_t>(Op::Add)}, {}});
  finish_draft(draft, buffer(products_).shape, {place, image, tile, output}, sum);
  return draft;
}

/// The convolution's kernel with A' products A in place of its sum, over tiles instead of pixels.
Draft Rewriter::transform_output() {
  Draft draft = draft_;
  int64_t next = 0;
  for (const Node& n : ir::toposort(draft.sink)) {
    if (n.is(Op::Range)) next = std::max(next, n.id_arg() + 1);
  }
  Ranges ranges(g_, next);
  const Node i = ranges.make(w_.tile_rows()), j = ranges.make(w_.tile_columns());
  const Node place = ranges.make(kTile * kTile);
  std::array<std::array<Node, kPatch>, kPatch> m;
  std::array<std::array<Node, kPatch>, kTile> half;
  for (int64_t p = 0; p < kPlaces; ++p) {
    m[static_cast<size_t>(p / kPatch)][static_cast<size_t>(p % kPatch)] =
        load_buffer(g_, draft, products_, buffer(products_).shape, DType::Float32,
                    {weak(p), w_.image, tile_of(i, j), w_.output});
  }
  const auto transform = [&](const Node& a, const Node& b, const Node& c, const Node& e) {
    return std::array<Node, kTile>{add(add(a, b), c), sub(sub(b, c), e)};
  };
  for (size_t c = 0; c < kPatch; ++c) {
    const auto column = transform(m[0][c], m[1][c], m[2][c], m[3][c]);
    for (size_t r = 0; r < kTile; ++r) half[r][c] = column[r];
  }
  std::vector<Node> values;
  for (size_t r = 0; r < kTile; ++r) {
    for (const Node& v : transform(half[r][0], half[r][1], half[r][2], half[r][3]))
      values.push_back(v);
  }
  const auto of_place = [&](Op op) { return g_.alu(op, {place, weak(kTile)}); };
  const Node row = ir::simplify(g_, add(times(i, kTile), of_place(Op::Floordiv)));
  const Node column = ir::simplify(g_, add(times(j, kTile), of_place(Op::Floormod)));
  // The last row or column of tiles in an odd plane stores only its first half.
  Node inside = both(g_, in_bounds(g_, row, w_.row.range_extent()),
                     in_bounds(g_, column, w_.column.range_extent()));
  std::unordered_map<Node, Node> map{
      {w_.reduce, choose(place, values)}, {w_.row, row}, {w_.column, column}};
  if (inside) {
    for (const LoadSite& site : loads_of(draft_)) {
      if (site.reduce) continue;
      const Node load = site.load;
      if (!ir::depends_on(load, w_.row) && !ir::depends_on(load, w_.column)) continue;
      const Node index = ir::simplify(g_, ir::substitute(g_, load.src(0), map));
      const Node gate =
          load.source_count() == 3
              ? both(g_, ir::simplify(g_, ir::substitute(g_, load.src(2), map)), inside)
              : inside;
      const Node otherwise = load.source_count() == 3 ? load.src(1) : g_.constant(load.dtype(), 0);
      map[load] = g_.make(Op::Load, load.dtype(), {index, otherwise, gate});
    }
  }
  const Node store = ir::substitute(g_, store_of(draft), map);
  const Node index = ir::simplify(g_, store.src(0)), value = ir::simplify(g_, store.src(1));
  draft.sink = g_.make(Op::Sink, DType::Void,
                       {inside ? g_.make(Op::Store, DType::Void, {index, value, inside})
                               : g_.make(Op::Store, DType::Void, {index, value})});
  draft.ranges = only_ranges({w_.image, w_.output, i, j, place});
  return draft;
}

/// Rows of a place in a buffer: the places of a tile are written together, so they must not fall into one set of L1.
int64_t Rewriter::spread(int64_t tiles, int64_t channels) const {
  constexpr int64_t kWay = 4096 / size_bytes(DType::Float32);
  return w_.images() * tiles * channels % kWay == 0 ? tiles + 1 : tiles;
}

std::optional<WinogradDrafts> Rewriter::run() {
  if (options_.winograd == Choice::Off || options_.float_level == FloatLevel::Strict)
    return std::nullopt;
  const std::optional<DenseWindow> window = find_dense_window(schedule_, draft_);
  if (!window) return std::nullopt;
  w_ = *window;
  const double channels = static_cast<double>(w_.channel.range_extent());
  constexpr double kMaxError = 1e-4;
  const double error = 32 * (std::sqrt(channels) + 8) * 0x1p-24;
  if (error > kMaxError) {
    draft_.why.push_back(say("no Winograd: its error bound ", error, " is above ", kMaxError));
    return std::nullopt;
  }
  if (options_.winograd == Choice::Auto && !winograd_pays(schedule_, w_, target_, draft_.why))
    return std::nullopt;
  const int64_t tiles = w_.tile_rows() * w_.tile_columns();
  const int64_t c = w_.channel.range_extent(), o = w_.output.range_extent();
  const std::string name = buffer(draft_.buffers[0]).name;
  patches_ = add_buffer({kPlaces, w_.images(), spread(tiles, c), c}, name + ".patches",
                        BufferRole::Temporary);
  products_ = add_buffer({kPlaces, w_.images(), spread(tiles, o), o}, name + ".products",
                         BufferRole::Temporary);
  weights_ =
      add_buffer({kPlaces, o, c}, buffer_of(w_.weights).name + ".winograd", BufferRole::Constant);
  const int64_t panel = 2 * target_.lanes(DType::Float32);
  buffer(weights_).layout = o > panel
                                ? ir::Layout::blocked(buffer(weights_).shape, {0, 1, 2}, 1, panel)
                                : ir::Layout::permuted(buffer(weights_).shape, {0, 2, 1});
  widen_halo();
  WinogradDrafts drafts;
  drafts.before = {transform_weights(), transform_input(), multiply()};
  drafts.output = transform_output();
  return drafts;
}

}  // namespace

std::optional<WinogradDrafts> use_winograd(Schedule& schedule, Draft& draft, const Target& target,
                                           const Options& options) {
  return Rewriter(schedule, draft, target, options).run();
}

}  // namespace ignis::schedule
