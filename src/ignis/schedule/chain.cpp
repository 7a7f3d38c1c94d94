#include "ignis/schedule/chain.h"

#include "ignis/base/math.h"
#include "ignis/ir/affine.h"
#include "ignis/ir/layout_index.h"
#include "ignis/ir/row_chain.h"
#include "ignis/schedule/draft.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace ignis::schedule {
namespace {

using ir::AxisKind;
using ir::Graph;
using ir::Node;
using ir::Op;

/// A band's share of L2; the rest is for what streams through: constants, the first store's operands, the last's result.
constexpr double kL2Share = 0.75;
/// The same when little else is left by what each band reads; were it less, that is read from behind L2 for each, and bands are
/// large so that they are few.
constexpr double kLeastL2Share = 0.25;
/// Time to move a byte within L2 by the time it costs to write it to memory behind L2 and to read it from there.
constexpr double kMoveCost = 0.5;
/// Time to read a byte from behind L2 by the same.
constexpr double kReadCost = 0.25;
/// Rows of further ranges are smaller and fill fewer tiles: they must gain as much more.
constexpr double kClearly = 1.1;

/// Whether a store computes different things at the values of a range that it walks, beyond what borders ask for: not all
/// rows are alike.
bool chooses(const Node& store, const std::vector<Node>& walk) {
  return std::any_of(walk.begin(), walk.end(),
                     [&](const Node& range) { return ir::chooses_by(store.src(1), range); });
}

std::string mb(double bytes) { return say(bytes / 1e6, " MB"); }

class Chainer {
 public:
  Chainer(Schedule& schedule, const Target& target, Choice mode)
      : s_(schedule), g_(*schedule.graph), target_(target), mode_(mode) {}

  void run() {
    count_uses();
    gather();
    std::vector<Kernel> kernels;
    for (size_t first = 0; first < s_.kernels.size();) {
      size_t end = first + 1;
      while (end < s_.kernels.size() && may_join(s_.kernels[end - 1], s_.kernels[end])) ++end;
      cut(first, end, kernels);
      first = end;
    }
    s_.kernels = std::move(kernels);
  }

 private:
  struct Uses {
    int reads = 0, writes = 0;  // kernels
  };

  const Buffer& buffer(int id) const { return s_.buffers[static_cast<size_t>(id)]; }

  void count_uses() {
    uses_.resize(s_.buffers.size());
    for (const Kernel& k : s_.kernels) {
      for (size_t slot = 0; slot < k.buffers.size(); ++slot) {
        Uses& uses = uses_[static_cast<size_t>(k.buffers[slot])];
        (slot == 0 ? uses.writes : uses.reads) += 1;
      }
    }
  }

  /// The outer ranges of a kernel's store and, last, its rows; empty when it walks none so.
  using Walk = std::vector<Node>;
  Walk first_walk(const Kernel& kernel, size_t outer) const;
  Walk next_walk(const Kernel& from, const Kernel& to, size_t outer) const;
  std::vector<Walk> walks_of(size_t first, size_t last, size_t outer) const;
  size_t most_outer(const Kernel& kernel) const;
  /// Whether neighbours along a range are neighbours in the stored buffer.
  bool stores_side_by_side(const Kernel& kernel, const Node& range) const {
    const auto at = plain_affine(g_, ir::flat_offset(g_, index_of(kernel.sink.src(0).src(0)),
                                                     buffer(kernel.buffers[0]).layout));
    return !at || at->coefficient(range) == 1;
  }
  bool may_join(const Kernel& from, const Kernel& to) const;
  void gather();
  void cut(size_t first, size_t end, std::vector<Kernel>& out);
  struct ReadAgain {
    int64_t constants = 0, others = 0;  // bytes
  };
  ReadAgain read_again(const Kernel& chain, const std::vector<ir::RowStage>& stages) const;
  double choose_bands(Kernel& chain) const;
  void shrink_buffers(const Kernel& chain);
  Kernel join(size_t first, size_t last, const std::vector<Walk>& walks);

  Schedule& s_;
  Graph& g_;
  const Target& target_;
  Choice mode_;
  std::vector<Uses> uses_;
};

/// How many ranges around the rows the kernel's stored buffer has at most.
size_t Chainer::most_outer(const Kernel& kernel) const {
  const size_t dims = ir::slowest_dims(kernel.sink.src(0)).size();
  return dims == 0 ? 0 : dims - 1;
}

Chainer::Walk Chainer::first_walk(const Kernel& kernel, size_t outer) const {
  const std::vector<ir::WalkedDim> dims = ir::slowest_dims(kernel.sink.src(0));
  Walk walk;
  for (size_t i = 0; i <= outer && i < dims.size(); ++i) walk.push_back(dims[i].range);
  if (walk.size() <= outer || chooses(kernel.sink.src(0), walk)) return {};
  return walk;
}

/// What `to` walks when it is joined to `from`; empty when it can't be.
Chainer::Walk Chainer::next_walk(const Kernel& from, const Kernel& to, size_t outer) const {
  if (from.at_load || to.at_load) return {};
  const Node source = from.sink.src(0), store = to.sink.src(0);
  const int between = from.buffers[0];
  const Uses& uses = uses_[static_cast<size_t>(between)];
  if (source.source_count() != 2 || store.source_count() != 2 ||
      buffer(between).role != BufferRole::Temporary || uses.reads != 1 || uses.writes != 1)
    return {};
  const auto slot = std::find(to.buffers.begin() + 1, to.buffers.end(), between);
  const std::vector<ir::WalkedDim> dims = ir::slowest_dims(source);
  if (slot == to.buffers.end() || dims.size() <= outer) return {};
  Walk walk;
  for (size_t i = 0; i <= outer; ++i) {
    const auto window = ir::find_row_window(g_, store, slot - to.buffers.begin(), dims[i].dim);
    if (!window || std::find(walk.begin(), walk.end(), window->rows) != walk.end()) return {};
    const bool is_same =
        ir::is_own_row(*window) && window->rows.range_extent() == dims[i].range.range_extent();
    if (i < outer && !is_same) return {};
    walk.push_back(window->rows);
  }
  return chooses(store, walk) ? Walk{} : walk;
}

/// What each kernel from `first` to `last` walks; empty when they are no chain.
std::vector<Chainer::Walk> Chainer::walks_of(size_t first, size_t last, size_t outer) const {
  std::vector<Walk> walks;
  for (size_t k = first; k < last; ++k) {
    const Walk own = first_walk(s_.kernels[k], outer);
    if (own.empty() || (!walks.empty() && walks.back() != own)) return {};
    if (walks.empty()) walks.push_back(own);
    Walk next = next_walk(s_.kernels[k], s_.kernels[k + 1], outer);
    if (next.empty()) return {};
    walks.push_back(std::move(next));
  }
  // Further in, rows must leave every store something to put in lanes.
  for (size_t k = first; outer > 0 && k <= last; ++k) {
    if (stores_side_by_side(s_.kernels[k], walks[k - first].back())) return {};
  }
  return walks;
}

bool Chainer::may_join(const Kernel& from, const Kernel& to) const {
  for (size_t outer = 0; outer <= most_outer(from); ++outer) {
    if (!first_walk(from, outer).empty() && !next_walk(from, to, outer).empty()) return true;
  }
  return false;
}

/// Brings each kernel behind the one that writes the largest buffer it may be joined by. What stands between does not
/// read that buffer, nor what the kernels joined so far write: it may as well run before them.
void Chainer::gather() {
  std::vector<Kernel>& kernels = s_.kernels;
  size_t run = 0;  // where the run begins that the former kernel ends
  std::vector<size_t> begins;
  for (size_t n = 0; n < kernels.size(); ++n) {
    std::optional<size_t> best;
    for (size_t from = 0; from < n; ++from) {
      const int id = kernels[from].buffers[0];
      const int64_t bytes = buffer(id).size_bytes();
      if (best && bytes <= buffer(kernels[*best].buffers[0]).size_bytes()) continue;
      if (mode_ != Choice::On && from + 1 < n && bytes <= target_.l2_bytes / 2) continue;
      if (may_join(kernels[from], kernels[n])) best = from;
    }
    run = best ? begins[*best] : n;
    begins.push_back(run);
    if (!best || *best + 1 == n) continue;
    const auto at = [](auto& list, size_t i) {
      return list.begin() + static_cast<std::ptrdiff_t>(i);
    };
    const size_t moved = n - 1 - *best, length = *best + 1 - run;
    std::rotate(at(kernels, run), at(kernels, *best + 1), at(kernels, n));
    std::rotate(at(begins, run), at(begins, *best + 1), at(begins, n));
    for (size_t i = run; i < n; ++i) begins[i] = i < run + moved ? begins[i] - length : run + moved;
    begins[n] = run + moved;
  }
}

/// Cuts a run of kernels, each two of which may be joined, where the chains between gain most together.
void Chainer::cut(size_t first, size_t end, std::vector<Kernel>& out) {
  struct Best {
    double gain = 0;
    size_t begin = 0;  // of the last chain
    Kernel chain;
  };
  std::vector<Best> best(end - first + 1);  // of the run's first kernels
  std::vector<std::string> pairs(end -
                                 first);  // what was compared of each kernel and the one before
  for (size_t n = 1; n < best.size(); ++n) {
    best[n] = {best[n - 1].gain, n - 1, s_.kernels[first + n - 1]};
    for (size_t begin = n - 1; begin-- > 0;) {
      bool is_chain = false;
      for (size_t outer = 0; outer <= most_outer(s_.kernels[first + begin]); ++outer) {
        const std::vector<Walk> walks = walks_of(first + begin, first + n - 1, outer);
        if (walks.empty()) continue;
        is_chain = true;
        Kernel chain = join(first + begin, first + n - 1, walks);
        const double gain = best[begin].gain + choose_bands(chain);
        if (begin + 2 == n) append(pairs[begin + 1], chain.why.back());
        const bool is_deeper = mode_ == Choice::Auto && best[n].begin == begin && outer > 0;
        if (gain > (is_deeper ? kClearly : 1) * best[n].gain)
          best[n] = {gain, begin, std::move(chain)};
      }
      if (!is_chain) break;
    }
  }
  std::vector<Kernel> chains;
  for (size_t n = best.size() - 1; n > 0; n = best[n].begin) {
    if (best[n].begin + 1 < n) shrink_buffers(best[n].chain);
    Notes& why = best[n].chain.why;
    if (best[n].begin > 0) why.push_back("with the kernel before, " + pairs[best[n].begin]);
    chains.push_back(std::move(best[n].chain));
  }
  std::move(chains.rbegin(), chains.rend(), std::back_inserter(out));
}

/// What each band of one value of the outer ranges reads: weights, and the keys and values of a head.
Chainer::ReadAgain Chainer::read_again(const Kernel& chain,
                                       const std::vector<ir::RowStage>& stages) const {
  std::vector<int64_t> bytes(chain.buffers.size(), 0);
  for (const ir::RowStage& stage : stages) {
    for (const Node& load : ir::toposort(stage.store.src(1))) {
      if (!load.is(Op::Load)) continue;
      const Node index = load.src(0);
      if (ir::depends_on(index, stage.rows)) continue;
      const auto slot = static_cast<size_t>(index.src(0).arg().ints[0]);
      int64_t part = buffer(chain.buffers[slot]).size_bytes();
      for (const Node& range : stage.outer)
        if (ir::depends_on(index, range)) part /= range.range_extent();
      bytes[slot] = std::max(bytes[slot], part);
    }
  }
  ReadAgain sum;
  for (size_t slot = 0; slot < bytes.size(); ++slot) {
    const bool is_constant = buffer(chain.buffers[slot]).role == BufferRole::Constant;
    (is_constant ? sum.constants : sum.others) += bytes[slot];
  }
  return sum;
}

/// Chooses the bands: as many rows as stay in L2 beside what each band reads, two bands at least for each thread. Returns
/// the bytes that need not leave L2 less what moving rows from band to band and reading operands again costs; 0 or less
/// where a chain does not pay.
double Chainer::choose_bands(Kernel& chain) const {
  const auto stages = ir::row_stages(g_, chain.sink);
  if (!stages) {
    chain.why.push_back(stages.error().message());
    return -1;
  }
  const auto l2 = static_cast<double>(target_.l2_bytes);
  const ReadAgain again = read_again(chain, *stages);
  const auto others = static_cast<double>(again.others);
  const bool keeps_others = others <= (1 - kLeastL2Share) * l2;
  const double band_bytes = std::min(kL2Share * l2, keeps_others ? l2 - others : l2);
  const int64_t most = ir::most_band_rows(*stages, static_cast<int64_t>(band_bytes));
  const int64_t extent = stages->back().extent, outer = ir::outer_count(stages->back());
  const std::string name = say("a chain of ", stages->size());
  if (most == 0 && mode_ != Choice::On) {
    chain.why.push_back(name + " has no room for its rows in L2");
    return -1;
  }
  ir::Bands bands;
  bands.units = std::clamp<int64_t>(target_.threads, 1, outer * extent);
  bands.rows = std::max<int64_t>(1, most);
  if (mode_ != Choice::On)
    bands.rows = std::clamp<int64_t>(outer * extent / (2 * bands.units), 1, bands.rows);
  std::vector<Node> stores;
  for (int i = 0; i < chain.sink.source_count(); ++i) stores.push_back(chain.sink.src(i));
  chain.sink = g_.make(Op::Sink, DType::Void, stores, ir::encode(bands));
  if (mode_ == Choice::On) {
    chain.why.push_back(name + " is legal and asked for");
    // The longest chains, of the smallest rows.
    return static_cast<double>(stages->size() - 1) +
           1e-3 * static_cast<double>(stages->back().outer.size());
  }
  // Weights that fill more than what a band leaves of L2 take longer to read again than they gain.
  if (again.constants > target_.l2_bytes / 4) {
    chain.why.push_back(say(name, " reads ", mb(static_cast<double>(again.constants)),
                            " of constants for each band, a quarter of L2 is ", mb(l2 / 4)));
    return -1;
  }
  double saved = 0, moved = 0;
  if (!keeps_others)
    moved += kReadCost * others * static_cast<double>(outer * ceil_div(extent, bands.rows));
  double advance = static_cast<double>(bands.rows);
  for (size_t i = stages->size() - 1; i-- > 0;) {
    const ir::RowWindow& window = (*stages)[i + 1].window;
    const auto slot = static_cast<size_t>((*stages)[i].slot);
    advance *= static_cast<double>(window.stride);
    const auto kept =
        static_cast<double>(std::max<int64_t>(0, window.last - window.first + 1 - window.stride));
    const bool leaves = buffer(chain.buffers[slot]).size_bytes() > target_.l2_bytes / 2;
    const auto bytes = static_cast<double>(outer * (*stages)[i].extent * (*stages)[i].row_bytes);
    saved += leaves ? bytes : 0;
    moved += bytes * kMoveCost * kept / advance;
  }
  const std::string around = outer > 1 ? say(outer, " times ") : "";
  chain.why.push_back(say(name, " saves ", mb(saved), " and moves or reads again ", mb(moved),
                          ", in bands of ", bands.rows, " of ", around, extent, " rows, ", most,
                          " fit ", band_bytes / l2, " of L2"));
  // The fullest unit has more than the mean.
  const int64_t rows = outer * extent;
  return (saved - moved) * static_cast<double>(rows) /
         static_cast<double>(bands.units * ceil_div(rows, bands.units));
}

/// Buffers between the stores of a chain have memory for a band of each unit.
void Chainer::shrink_buffers(const Kernel& chain) {
  const auto stages = ir::row_stages(g_, chain.sink);
  const auto bands = ir::bands_of(chain.sink);
  IGNIS_CHECK(stages.has_value() && bands.has_value()) << "a chain was joined wrongly";
  const std::vector<int64_t> held = ir::held_rows(*stages, bands->rows);
  for (size_t i = 0; i + 1 < stages->size(); ++i) {
    const ir::RowStage& stage = (*stages)[i];
    const auto slot = static_cast<size_t>(stage.slot);
    s_.buffers[static_cast<size_t>(chain.buffers[slot])].held_bytes =
        bands->units * held[i] * stage.row_bytes;
  }
}

/// One kernel of the stores from `first` to `last`: slot 0 is what the last one stores, ranges have ids of their own,
/// those of rows and around them are of AxisKind::Thread.
Kernel Chainer::join(size_t first, size_t last, const std::vector<Walk>& walks) {
  Kernel joined;
  joined.buffers.push_back(s_.kernels[last].buffers[0]);
  std::vector<Node> stores;
  int64_t next_id = 0;
  for (size_t k = first; k <= last; ++k) {
    const Kernel& kernel = s_.kernels[k];
    std::unordered_map<Node, Node> map;
    int64_t ids = 0;
    for (const Node& n : ir::toposort(kernel.sink)) {
      if (n.is(Op::Range)) {
        const Walk& walk = walks[k - first];
        const bool is_walked = std::find(walk.begin(), walk.end(), n) != walk.end();
        map[n] =
            g_.range(n.src(0), next_id + n.id_arg(), is_walked ? AxisKind::Thread : n.axis_kind());
        ids = std::max(ids, n.id_arg() + 1);
      } else if (n.is(Op::Param)) {
        ir::ParamArg arg = ir::decode_param(n);
        const int id = kernel.buffers[static_cast<size_t>(arg.slot)];
        const auto at = std::find(joined.buffers.begin(), joined.buffers.end(), id);
        arg.slot = at - joined.buffers.begin();
        if (at == joined.buffers.end()) joined.buffers.push_back(id);
        map[n] = g_.param(n.dtype(), arg);
      }
    }
    next_id += ids;
    const Node store = ir::substitute(g_, kernel.sink, map).src(0);
    joined.written.insert(joined.written.begin(),
                          static_cast<int>(store.src(0).src(0).arg().ints[0]));
    joined.layers.insert(joined.layers.end(), kernel.layers.begin(), kernel.layers.end());
    for (const std::string& note : kernel.why)
      joined.why.push_back(say("store ", k - first, ": ", note));
    stores.push_back(store);
  }
  joined.sink = g_.make(Op::Sink, DType::Void, stores);
  return joined;
}

}  // namespace

void chain_rows(Schedule& schedule, const Target& target, Choice mode) {
  if (mode == Choice::Off) return;
  Chainer(schedule, target, mode).run();
}

}  // namespace ignis::schedule
