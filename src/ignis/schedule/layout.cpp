#include "ignis/schedule/layout.h"

#include "ignis/base/math.h"
#include "ignis/ir/affine.h"
#include "ignis/ir/layout_index.h"
#include "ignis/ir/range.h"
#include "ignis/ir/simplify.h"
#include "ignis/schedule/draft.h"
#include "ignis/schedule/indexing.h"
#include "ignis/schedule/winograd.h"

#include <algorithm>
#include <map>
#include <unordered_set>

namespace ignis::schedule {
namespace {

using ir::AxisKind;
using ir::Graph;
using ir::Layout;
using ir::Node;
using ir::Op;

/// A halo grows a buffer; beyond this many elements on a side a gate is kept instead.
constexpr int64_t kMaxHalo = 32;
/// Below this many channels a buffer that is only copied for its halo stays planar: rows copy as vectors.
constexpr int64_t kMinChannelsLast = 8;

int64_t max_range_id(const Node& sink) {
  int64_t id = -1;
  for (const Node& n : ir::toposort(sink)) {
    if (n.is(Op::Range)) id = std::max(id, n.id_arg());
  }
  return id;
}

bool uses_kind(const Node& expression, AxisKind kind) {
  for (const Node& n : ir::toposort(expression)) {
    if (n.is(Op::Range) && n.axis_kind() == kind) return true;
  }
  return false;
}

Layout channels_last(const Shape& shape, std::vector<int64_t> lo = {},
                     std::vector<int64_t> hi = {}) {
  std::vector<int> perm{0};
  for (size_t d = 2; d < shape.size(); ++d) perm.push_back(static_cast<int>(d));
  perm.push_back(1);
  return Layout::permuted(shape, perm, std::move(lo), std::move(hi));
}

Layout planar(const Shape& shape, std::vector<int64_t> lo, std::vector<int64_t> hi) {
  std::vector<int> perm;
  for (size_t d = 0; d < shape.size(); ++d) perm.push_back(static_cast<int>(d));
  return Layout::permuted(shape, perm, std::move(lo), std::move(hi));
}

class LayoutChooser {
 public:
  LayoutChooser(Schedule& schedule, std::vector<Draft>& drafts, const Target& target,
                const Options& options)
      : schedule_(schedule),
        drafts_(drafts),
        target_(target),
        options_(options),
        g_(*schedule.graph) {}

  void run() {
    find_channels_last();
    detach_outputs();
    place_halos();
    for (size_t i = 0; i < schedule_.buffers.size(); ++i) {
      Buffer& b = schedule_.buffers[i];
      if (b.role == BufferRole::Temporary && wants_channels_last(static_cast<int>(i)) &&
          !b.layout.has_halo()) {
        b.layout = channels_last(b.shape);
      }
    }
    for (size_t i = 0; i < drafts_.size(); ++i) {
      auto winograd = use_winograd(schedule_, drafts_[i], target_, options_);
      if (!winograd) continue;
      drafts_[i] = std::move(winograd->output);
      for (Draft& d : winograd->before) before_.emplace(i, std::move(d));
    }
    for (size_t i = 0; i < drafts_.size(); ++i) order_reduce_ranges(drafts_[i]);
    for (size_t i = 0; i < drafts_.size(); ++i) pack_operands(i);
    drain_pending();
  }

 private:
  Buffer& buffer(int id) { return schedule_.buffers[static_cast<size_t>(id)]; }
  int buffer_at(const Draft& d, int slot) const { return d.buffers[static_cast<size_t>(slot)]; }
  bool wants_channels_last(int id) const { return channels_last_.count(id) != 0; }

  int add_buffer(DType dtype, const Shape& shape, Layout layout, const std::string& name,
                 BufferRole role = BufferRole::Temporary) {
    return schedule::add_buffer(schedule_, role, dtype, shape, std::move(layout), name);
  }

  bool is_window(const Draft& draft, const LoadSite& site);
  bool is_planar_window(const Draft& draft, const LoadSite& site, Notes* why = nullptr);
  bool is_window_read(const Draft& draft, const LoadSite& site) {
    return is_window(draft, site) && !is_planar_window(draft, site);
  }
  void find_channels_last();
  void detach_outputs();
  void place_halos();
  bool needs_channels_last_copy(const Draft& draft, const LoadSite& site);
  bool halo_of(const LoadSite& site, const Shape& shape, std::vector<int64_t>& lo,
               std::vector<int64_t>& hi);
  void order_reduce_ranges(Draft& draft);
  void pack_operands(size_t index);
  bool sums_in_lanes(Draft& draft, const LoadSite& site, const Node& other, const Node& v,
                     const PlainAffine& at);
  Node vector_range(const Draft& draft);
  std::optional<PlainAffine> address(const Draft& draft, const LoadSite& site);
  void drain_pending();
  /// A buffer that already holds this packing (one weight read by many kernels), or -1.
  int find_pack(const Pack& pack, const Layout& layout) {
    for (const Pack& p : schedule_.packs) {
      if (p.source == pack.source && p.extents == pack.extents &&
          p.source_strides == pack.source_strides && p.source_base == pack.source_base &&
          buffer(p.dest).layout == layout) {
        return p.dest;
      }
    }
    return -1;
  }

  Schedule& schedule_;
  std::vector<Draft>& drafts_;
  const Target& target_;
  const Options& options_;
  Graph& g_;
  std::unordered_set<int> channels_last_;
  std::multimap<size_t, Draft> before_, after_;  ///< drafts to insert around drafts_[key]
};

/// A reading of [N, C, spatial…] by a convolution or pool: under a reduce, every spatial index moves with an output
/// axis, and either the channel is reduced against constant weights or a window slides.
bool LayoutChooser::is_window(const Draft& draft, const LoadSite& site) {
  const Shape& shape = buffer(buffer_at(draft, site.slot)).shape;
  if (!site.reduce || shape.size() < 3) return false;
  bool slides = false;
  int64_t spatial = 1;
  for (size_t d = 2; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    spatial *= shape[d];
    if (!uses_kind(site.index[d], AxisKind::Loop)) return false;
    slides |= uses_kind(site.index[d], AxisKind::Reduce);
  }
  if (spatial == 1) return false;
  if (!uses_kind(site.index[1], AxisKind::Reduce)) return slides;
  // Channels are reduced: the other factor decides between a convolution and a product of two activations.
  const Node value = site.reduce.src(0);
  if (!value.is(Op::Mul)) return false;
  for (int i = 0; i < 2; ++i) {
    const Node other = value.src(i);
    if (other == site.load || !other.is(Op::Load)) continue;
    const int slot = static_cast<int>(other.src(0).src(0).arg().ints[0]);
    if (buffer(buffer_at(draft, slot)).role == BufferRole::Constant) return true;
  }
  return false;
}

/// A window over each plane by itself, from a graph input to a graph output, that had better stay in row-major planes:
/// channels-last takes two copies, planes leave lanes empty at the end of each row.
bool LayoutChooser::is_planar_window(const Draft& draft, const LoadSite& site, Notes* why) {
  const Buffer &in = buffer(buffer_at(draft, site.slot)), &out = buffer(draft.buffers[0]);
  const std::vector<Node> stored = store_index(draft);
  if (options_.planar_windows == Choice::Off || in.role != BufferRole::Input ||
      out.role != BufferRole::Output || site.index.size() != stored.size() ||
      site.index[1] != stored[1])
    return false;
  // Who reads the result otherwise may want channels last.
  for (const Draft& d : drafts_) {
    if (std::find(d.buffers.begin() + 1, d.buffers.end(), draft.buffers[0]) != d.buffers.end())
      return false;
  }
  if (options_.planar_windows == Choice::On) return true;
  // Cycles for a vector, roughly: of one point of a window in planes, read straight from memory, by shuffles, or lane by
  // lane; of one channels last; of a copy that turns.
  constexpr double kPlanar = 0.6, kShuffled = 1.2, kChannelsLast = 1, kCopied = 6;
  const int64_t lanes = target_.lanes(in.dtype);
  const auto column = plain_affine(g_, site.index.back());
  const int64_t step =
      column && stored.back().is(Op::Range) ? column->coefficient(stored.back()) : 0;
  const double planar = step == 1   ? kPlanar
                        : step == 2 ? kShuffled
                                    : kChannelsLast * static_cast<double>(lanes);
  double points = 1;
  for (int i = 1; i < site.reduce.source_count(); ++i)
    points *= static_cast<double>(site.reduce.src(i).range_extent());
  const auto vectors = [&](const Shape& shape, size_t axis) {  // with that axis in lanes
    return static_cast<double>(element_count(shape) / shape[axis] * ceil_div(shape[axis], lanes));
  };
  const double planes = planar * points * vectors(out.shape, out.shape.size() - 1);
  const double turned = kChannelsLast * points * vectors(out.shape, 1) +
                        kCopied * (vectors(in.shape, 1) + vectors(out.shape, 1));
  if (why != nullptr)
    why->push_back(say("window over planes ", planes, " of ", turned, " cycles between copies"));
  return planes < turned;
}

void LayoutChooser::find_channels_last() {
  std::vector<std::vector<LoadSite>> sites;
  for (Draft& d : drafts_) {
    sites.push_back(loads_of(d));
    for (const LoadSite& site : sites.back()) {
      if (!is_window(d, site) || is_planar_window(d, site, &d.why)) continue;
      channels_last_.insert(buffer_at(d, site.slot));
      const int out = d.buffers[0];
      if (buffer(out).shape.size() == buffer(buffer_at(d, site.slot)).shape.size())
        channels_last_.insert(out);
    }
  }
  // Elementwise kernels pass the layout on, in both directions, until nothing changes.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < drafts_.size(); ++i) {
      const Draft& d = drafts_[i];
      const int out = d.buffers[0];
      const std::vector<Node> stored = store_index(d);
      if (buffer(out).shape.size() < 3) continue;
      for (const LoadSite& site : sites[i]) {
        const int in = buffer_at(d, site.slot);
        if (site.reduce || buffer(in).shape.size() != stored.size() ||
            buffer(in).role == BufferRole::Constant)
          continue;
        int64_t spatial = 1;
        for (size_t k = 2; k < stored.size(); ++k) spatial *= buffer(in).shape[k];
        if (spatial == 1 || site.index.size() != stored.size() || site.index[1] != stored[1])
          continue;
        if (wants_channels_last(in) && channels_last_.insert(out).second) changed = true;
      }
    }
  }
}

/// A kernel that computes channels last must not scatter into a planar graph output.
void LayoutChooser::detach_outputs() {
  for (size_t i = 0; i < drafts_.size(); ++i) {
    Draft& d = drafts_[i];
    const int out = d.buffers[0];
    if (buffer(out).role != BufferRole::Output || !wants_channels_last(out)) continue;
    const Shape shape = buffer(out).shape;
    bool reads_window = false;
    for (const LoadSite& site : loads_of(d)) reads_window |= is_window_read(d, site);
    if (!reads_window || shape[1] == 1) continue;
    const int temp =
        add_buffer(buffer(out).dtype, shape, channels_last(shape), buffer(out).name + ".cl");
    channels_last_.insert(temp);
    // Other kernels that read the output read the copy's source instead.
    for (Draft& reader : drafts_) {
      for (size_t s = 0; s < reader.buffers.size(); ++s) {
        if (reader.buffers[s] == out) reader.buffers[s] = temp;
      }
    }
    std::vector<Node> ranges;
    for (size_t a = 0; a < shape.size(); ++a) {
      ranges.push_back(shape[a] == 1 ? g_.constant(DType::WeakInt, 0)
                                     : g_.range(shape[a], static_cast<int64_t>(a), AxisKind::Loop));
    }
    Draft source;
    source.order = d.order;
    const Node value = load_buffer(g_, source, temp, shape, buffer(out).dtype, ranges);
    Draft copy = copy_draft(g_, source, out, shape, buffer(out).dtype, ranges, value);
    after_.emplace(i, std::move(copy));
  }
}

/// A window without padding over the channels of a graph input, each by itself: planes would be read across.
bool LayoutChooser::needs_channels_last_copy(const Draft& draft, const LoadSite& site) {
  const Buffer& b = buffer(buffer_at(draft, site.slot));
  return b.role == BufferRole::Input && site.load.source_count() != 3 &&
         b.shape[1] >= kMinChannelsLast && uses_kind(site.index[1], AxisKind::Loop);
}

bool LayoutChooser::halo_of(const LoadSite& site, const Shape& shape, std::vector<int64_t>& lo,
                            std::vector<int64_t>& hi) {
  if (site.load.source_count() != 3 || !site.load.src(1).is_const_value(0)) return false;
  std::unordered_set<Node> expected;
  ir::RangeAnalysis ranges;
  lo.assign(shape.size(), 0);
  hi.assign(shape.size(), 0);
  for (size_t d = 0; d < shape.size(); ++d) {
    const ir::Interval span = ranges.interval(site.index[d]);
    if (!span.is_bounded()) return false;
    lo[d] = std::max<int64_t>(0, -span.lo);
    hi[d] = std::max<int64_t>(0, span.hi - (shape[d] - 1));
    if (lo[d] > kMaxHalo || hi[d] > kMaxHalo) return false;
    for (const Node& c : clauses(in_bounds(g_, site.index[d], shape[d]))) {
      expected.insert(c);
      expected.insert(ir::simplify(g_, c));  // the form it has in a simplified kernel
    }
  }
  for (const Node& c : clauses(site.load.src(2))) {
    if (expected.count(c) == 0) return false;
  }
  return true;
}

void LayoutChooser::place_halos() {
  struct Need {
    std::vector<int64_t> lo, hi;
    std::vector<std::pair<size_t, Node>> loads;  // draft, gated load
  };
  std::map<int, Need> needs;
  for (size_t i = 0; i < drafts_.size(); ++i) {
    for (const LoadSite& site : loads_of(drafts_[i])) {
      const int id = buffer_at(drafts_[i], site.slot);
      std::vector<int64_t> lo, hi;
      if (!is_window_read(drafts_[i], site)) continue;
      if (needs_channels_last_copy(drafts_[i], site)) {
        lo.assign(buffer(id).shape.size(), 0);
        hi = lo;
      } else if (!halo_of(site, buffer(id).shape, lo, hi)) {
        continue;
      }
      Need& need = needs[id];
      need.lo.resize(lo.size());
      need.hi.resize(hi.size());
      for (size_t d = 0; d < lo.size(); ++d) {
        need.lo[d] = std::max(need.lo[d], lo[d]);
        need.hi[d] = std::max(need.hi[d], hi[d]);
      }
      need.loads.emplace_back(i, site.load);
    }
  }
  for (auto& [id, need] : needs) {
    const Shape shape = buffer(id).shape;
    int target = id;
    const bool owned = buffer(id).role == BufferRole::Temporary;
    if (!owned) {
      const bool few = shape[1] < kMinChannelsLast;
      target =
          add_buffer(buffer(id).dtype, shape,
                     few ? planar(shape, need.lo, need.hi) : channels_last(shape, need.lo, need.hi),
                     buffer(id).name + ".halo");
      std::vector<Node> ranges;
      for (size_t a = 0; a < shape.size(); ++a) {
        ranges.push_back(shape[a] == 1
                             ? g_.constant(DType::WeakInt, 0)
                             : g_.range(shape[a], static_cast<int64_t>(a), AxisKind::Loop));
      }
      Draft source;
      size_t first = need.loads.front().first;
      for (const auto& use : need.loads) first = std::min(first, use.first);
      source.order = drafts_[first].order;
      const Node value = load_buffer(g_, source, id, shape, buffer(id).dtype, ranges);
      before_.emplace(first,
                      copy_draft(g_, source, target, shape, buffer(id).dtype, ranges, value));
    } else {
      buffer(id).layout = wants_channels_last(id) ? channels_last(shape, need.lo, need.hi)
                                                  : planar(shape, need.lo, need.hi);
    }
    std::map<size_t, std::unordered_map<Node, Node>> maps;
    for (const auto& [i, load] : need.loads) {
      Draft& d = drafts_[i];
      maps[i][load] = load_buffer(g_, d, target, shape, load.dtype(), index_of(load.src(0)));
    }
    for (auto& [i, map] : maps) replace(g_, drafts_[i], map);
  }
}

std::optional<PlainAffine> LayoutChooser::address(const Draft& draft, const LoadSite& site) {
  const Buffer& b = buffer(buffer_at(draft, site.slot));
  return plain_affine(g_, ir::flat_offset(g_, site.index, b.layout));
}

/// Loop order of each Reduce: the axis along which the streamed operands step furthest is outermost.
void LayoutChooser::order_reduce_ranges(Draft& draft) {
  std::unordered_map<Node, Node> map;
  const std::vector<LoadSite> sites = loads_of(draft);
  for (const Node& n : ir::toposort(draft.sink)) {
    if (!n.is(Op::Reduce) || n.source_count() < 3) continue;
    std::unordered_map<Node, int64_t> stride;
    for (const LoadSite& site : sites) {
      if (site.reduce != n || buffer(buffer_at(draft, site.slot)).role == BufferRole::Constant)
        continue;
      const auto at = address(draft, site);
      if (!at) continue;
      for (const auto& [range, c] : at->terms)
        stride[range] = std::max(stride[range], c < 0 ? -c : c);
    }
    std::vector<Node> ranges;
    for (int i = 1; i < n.source_count(); ++i) ranges.push_back(n.src(i));
    std::stable_sort(ranges.begin(), ranges.end(),
                     [&](const Node& a, const Node& b) { return stride[a] > stride[b]; });
    std::vector<Node> sources{n.src(0)};
    sources.insert(sources.end(), ranges.begin(), ranges.end());
    const Node reordered = g_.make(Op::Reduce, n.dtype(), sources, n.arg());
    if (reordered != n) map[n] = reordered;
  }
  // Nested reduces are rare; the outer ones are found in later rounds when the inner were replaced.
  if (!map.empty()) replace(g_, draft, map);
}

/// The output range along which the stored buffer is contiguous: the axis of the vector.
Node LayoutChooser::vector_range(const Draft& draft) {
  const Buffer& out = buffer(draft.buffers[0]);
  const std::vector<Node> index = store_index(draft);
  const auto at = plain_affine(g_, ir::flat_offset(g_, index, out.layout));
  if (!at) return {};
  for (const auto& [range, c] : at->terms) {
    if (c == 1) return range;
  }
  return {};
}

/// Whether a product of so few columns, along `v`, that they fill few lanes had better have its terms there: one sum for each
/// element, both operands read along their rows. `at`: the address of the operand that moves with the columns.
bool LayoutChooser::sums_in_lanes(Draft& draft, const LoadSite& site, const Node& other,
                                  const Node& v, const PlainAffine& at) {
  const Node terms = site.reduce.src(1);
  if (options_.sums_in_lanes == Choice::Off || options_.float_level == FloatLevel::Strict ||
      site.reduce.source_count() != 2 || !other.is(Op::Load) || other.source_count() != 1 ||
      at.coefficient(terms) == 0)
    return false;
  const auto slot = static_cast<int>(other.src(0).src(0).arg().ints[0]);
  const auto row = plain_affine(
      g_, ir::flat_offset(g_, index_of(other.src(0)), buffer(buffer_at(draft, slot)).layout));
  if (!row || row->coefficient(terms) != 1) return false;
  if (options_.sums_in_lanes == Choice::On) return true;
  // Cycles: two multiply-adds, or loads for one, each; the lanes of a sum are folded at its end.
  constexpr int64_t kFold = 40;
  const int64_t width = target_.lanes(site.load.dtype());
  const int64_t count = terms.range_extent(), columns = v.range_extent();
  const int64_t along_terms = columns * (ceil_div(count, width) + kFold);
  const int64_t along_columns = ceil_div(columns, width) * count / 2;
  if (columns < width) {
    draft.why.push_back(say("sums in lanes ", along_terms, " of ", along_columns, " cycles with ",
                            columns, " columns in lanes"));
  }
  return along_terms < along_columns;
}

void LayoutChooser::pack_operands(size_t index) {
  Draft& draft = drafts_[index];
  const Node v = vector_range(draft);
  if (!v) return;
  const int64_t width = target_.lanes(DType::Float32);
  std::unordered_map<Node, Node> map;
  for (const LoadSite& site : loads_of(draft)) {
    if (!site.reduce || site.load.source_count() != 1) continue;
    const Node value = site.reduce.src(0);
    if (!value.is(Op::Mul) || (value.src(0) != site.load && value.src(1) != site.load)) continue;
    const Node other = value.src(0) == site.load ? value.src(1) : value.src(0);
    const int id = buffer_at(draft, site.slot);
    const bool constant = buffer(id).role == BufferRole::Constant;
    const bool from_model = constant && buffer(id).data.bytes != nullptr;
    const auto at = address(draft, site);
    if (!at || at->coefficient(v) == 0) continue;

    std::vector<Node> outer, reduces;
    for (int i = 1; i < site.reduce.source_count(); ++i) {
      if (at->coefficient(site.reduce.src(i)) != 0) reduces.push_back(site.reduce.src(i));
    }
    for (const auto& [range, c] : at->terms) {
      if (range != v && std::find(reduces.begin(), reduces.end(), range) == reduces.end())
        outer.push_back(range);
    }
    std::sort(outer.begin(), outer.end(),
              [](const Node& a, const Node& b) { return a.id_arg() < b.id_arg(); });
    if (reduces.empty()) continue;
    const bool shares_vector_axis = ir::depends_on(other, v);
    int64_t reuse = 1;  // how often each element is read
    for (const Node& r : draft.ranges) {
      if (at->coefficient(r) == 0) reuse *= r.range_extent();
    }
    const bool repays = constant || reuse >= 8 || options_.sums_in_lanes == Choice::On;
    const bool in_rows = repays && !shares_vector_axis && sums_in_lanes(draft, site, other, v, *at);
    if (!constant && !in_rows) {
      int64_t row = 0;
      for (const Node& r : reduces) row = std::max(row, at->coefficient(r));
      const bool is_strided = at->coefficient(v) != 1;
      if (shares_vector_axis || reuse < 8 || (!is_strided && (row < 256 || reuse < 32))) continue;
    }
    draft.why.push_back(say("'", buffer(id).name, "' in panels: each element is read ", reuse,
                            " times", constant ? ", laid once" : ", laid in each run"));
    const int64_t extent = v.range_extent();
    int64_t panel = extent;
    if (!shares_vector_axis && extent > width) {
      panel = reuse < 4 ? std::min<int64_t>(4 * width, (extent + width - 1) / width * width)
                        : 2 * width;
    }
    // Dims of the packed buffer: outer…, v, reduces…; digits: outer…, v / panel, reduces…, v % panel.
    Shape shape;
    std::vector<Node> dims = outer;
    dims.push_back(v);
    dims.insert(dims.end(), reduces.begin(), reduces.end());
    std::vector<int> perm;
    for (size_t d = 0; d < dims.size(); ++d) shape.push_back(dims[d].range_extent());
    const int v_dim = static_cast<int>(outer.size());
    for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
      if (d != v_dim || panel < extent || in_rows) perm.push_back(d);
    }
    Layout layout;
    if (in_rows) {
      layout = Layout::permuted(shape, perm);
    } else if (panel < extent) {
      layout = Layout::blocked(shape, perm, v_dim, panel);
    } else {
      perm.push_back(v_dim);
      layout = Layout::permuted(shape, perm);
    }
    Pack pack;
    pack.source = id;
    pack.extents = shape;
    pack.source_base = at->constant;
    for (const Node& d : dims) pack.source_strides.push_back(at->coefficient(d));
    int packed = from_model ? find_pack(pack, layout) : -1;
    if (packed < 0) {
      packed = add_buffer(buffer(id).dtype, shape, layout, buffer(id).name + ".packed",
                          constant ? BufferRole::Constant : BufferRole::Temporary);
      pack.dest = packed;
      if (from_model) {
        schedule_.packs.push_back(std::move(pack));
      } else {
        Draft copy = copy_draft(g_, draft, packed, shape, buffer(id).dtype, dims, site.load);
        copy.at_load = constant;
        before_.emplace(index, std::move(copy));
      }
    }
    map[site.load] = load_buffer(g_, draft, packed, shape, site.load.dtype(), dims);
  }
  if (!map.empty()) replace(g_, draft, map);
}

void LayoutChooser::drain_pending() {
  std::vector<Draft> all;
  for (size_t i = 0; i < drafts_.size(); ++i) {
    for (auto [it, end] = before_.equal_range(i); it != end; ++it)
      all.push_back(std::move(it->second));
    all.push_back(std::move(drafts_[i]));
    for (auto [it, end] = after_.equal_range(i); it != end; ++it)
      all.push_back(std::move(it->second));
  }
  drafts_ = std::move(all);
}

/// Smallest divisor c by which `range` is divided or reduced somewhere, or 0.
int64_t modular_divisor(const Node& sink, const Node& range) {
  int64_t best = 0;
  for (const Node& n : ir::toposort(sink)) {
    if ((!n.is(Op::Floordiv) && !n.is(Op::Floormod)) || n.src(0) != range || !n.src(1).is_const())
      continue;
    const int64_t c = n.src(1).const_int();
    if (c > 1 && range.range_extent() % c == 0 && c < range.range_extent() &&
        (best == 0 || c < best))
      best = c;
  }
  return best;
}

Node split_range(Graph& g, const Node& root, const Node& range, const Node& outer,
                 const Node& inner, int64_t c) {
  const Node whole =
      g.alu(Op::Add, {g.alu(Op::Mul, {outer, g.constant(DType::WeakInt, c)}), inner});
  std::unordered_map<Node, Node> done;
  std::vector<Node> sources;
  for (const Node& n : ir::toposort(root)) {
    if (n == range) {
      done[n] = whole;
      continue;
    }
    sources.clear();
    for (int i = 0; i < n.source_count(); ++i) {
      if (n.is(Op::Reduce) && i > 0 && n.src(i) == range) {
        sources.push_back(outer);
        sources.push_back(inner);
      } else {
        sources.push_back(done.at(n.src(i)));
      }
    }
    done[n] = g.rebuild(n, sources);
  }
  return ir::simplify(g, done.at(root));
}

}  // namespace

void split_modular_ranges(Graph& g, Draft& draft) {
  for (int round = 0; round < 32; ++round) {
    bool changed = false;
    for (const Node& n : ir::toposort(draft.sink)) {
      if (!n.is(Op::Range)) continue;
      const int64_t c = modular_divisor(draft.sink, n);
      if (c == 0) continue;
      const int64_t id = max_range_id(draft.sink) + 1;
      const Node outer = g.range(n.range_extent() / c, id, n.axis_kind());
      const Node inner = g.range(c, id + 1, n.axis_kind());
      draft.sink = split_range(g, draft.sink, n, outer, inner, c);
      const auto at = std::find(draft.ranges.begin(), draft.ranges.end(), n);
      if (at != draft.ranges.end()) {
        *at = inner;
        draft.ranges.insert(std::find(draft.ranges.begin(), draft.ranges.end(), inner), outer);
      }
      changed = true;
      break;
    }
    if (!changed) return;
  }
}

void choose_layouts(Schedule& schedule, std::vector<Draft>& drafts, const Target& target,
                    const Options& options) {
  LayoutChooser(schedule, drafts, target, options).run();
}

}  // namespace ignis::schedule
