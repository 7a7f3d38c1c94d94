#include "ignis/schedule/chain.h"

#include "ignis/ir/affine.h"
#include "ignis/ir/row_chain.h"

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
/// Time to move a byte within L2 by the time it costs to write it to memory behind L2 and to read it from there.
constexpr double kMoveCost = 0.5;

std::string mb(double bytes) { return say(bytes / 1e6, " MB"); }

class Chainer {
 public:
  Chainer(Schedule& schedule, const Target& target, Choice mode)
      : s_(schedule), g_(*schedule.graph), target_(target), mode_(mode) {}

  void run() {
    count_uses();
    std::vector<Kernel> kernels;
    for (size_t first = 0; first < s_.kernels.size();) {
      size_t end = first + 1;
      while (end < s_.kernels.size() && !rows_of(end - 1, end).empty()) ++end;
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
  Node store_of(size_t kernel) const { return s_.kernels[kernel].sink.src(0); }

  void count_uses() {
    uses_.resize(s_.buffers.size());
    for (const Kernel& k : s_.kernels) {
      for (size_t slot = 0; slot < k.buffers.size(); ++slot) {
        Uses& uses = uses_[static_cast<size_t>(k.buffers[slot])];
        (slot == 0 ? uses.writes : uses.reads) += 1;
      }
    }
  }

  std::vector<Node> rows_of(size_t first, size_t last) const;
  std::optional<size_t> slowest_dim(const Buffer& b) const;
  void cut(size_t first, size_t end, std::vector<Kernel>& out);
  double choose_bands(Kernel& chain) const;
  void shrink_buffers(const Kernel& chain);
  Kernel join(size_t first, size_t last, const std::vector<Node>& rows);

  Schedule& s_;
  Graph& g_;
  const Target& target_;
  Choice mode_;
  std::vector<Uses> uses_;
};

/// The dim that storage walks slowest, of those with more than one value.
std::optional<size_t> Chainer::slowest_dim(const Buffer& b) const {
  for (const ir::LayoutDigit& digit : b.layout.digits) {
    const auto dim = static_cast<size_t>(digit.dim);
    if (digit.extent == 1) continue;
    if (digit.divisor != 1) return std::nullopt;
    return dim;
  }
  return std::nullopt;
}

/// Whether a store computes different things at the values of a range, beyond what borders ask for: rows are alike.
bool chooses_by(const Node& store, const Node& range) {
  constexpr int kBorders = 2;
  int comparisons = 0;
  for (const Node& n : ir::toposort(store.src(1))) {
    comparisons += n.is(Op::Cmplt) && (n.src(0) == range || n.src(1) == range);
  }
  return comparisons > kBorders;
}

/// The row range of each kernel from `first` to `last`; empty when they are no chain.
std::vector<Node> Chainer::rows_of(size_t first, size_t last) const {
  std::vector<Node> rows;
  for (size_t k = first; k < last; ++k) {
    const Kernel &from = s_.kernels[k], &to = s_.kernels[k + 1];
    if (from.at_load || to.at_load || store_of(k).source_count() != 2 ||
        store_of(k + 1).source_count() != 2)
      return {};
    const int between = from.buffers[0];
    const Uses& uses = uses_[static_cast<size_t>(between)];
    if (buffer(between).role != BufferRole::Temporary || uses.reads != 1 || uses.writes != 1)
      return {};
    const auto slot = std::find(to.buffers.begin() + 1, to.buffers.end(), between);
    if (slot == to.buffers.end()) return {};
    // Rows are stored whole, one after the other.
    const auto dim = slowest_dim(buffer(between));
    if (!dim) return {};
    const Node own = store_of(k).src(0).src(static_cast<int>(*dim) + 1);
    if (!own.is(Op::Range) || own.range_extent() != buffer(between).shape[*dim] ||
        row_dim(store_of(k), own) != dim || (!rows.empty() && rows.back() != own))
      return {};
    const auto window = ir::find_row_window(g_, store_of(k + 1), slot - to.buffers.begin(), *dim);
    if (!window || !row_dim(store_of(k + 1), window->rows)) return {};
    if (chooses_by(store_of(k), own) || chooses_by(store_of(k + 1), window->rows)) return {};
    if (rows.empty()) rows.push_back(own);
    rows.push_back(window->rows);
  }
  return rows;
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
      const std::vector<Node> rows = rows_of(first + begin, first + n - 1);
      if (rows.empty()) break;
      Kernel chain = join(first + begin, first + n - 1, rows);
      const double gain = best[begin].gain + choose_bands(chain);
      if (begin + 2 == n) pairs[begin + 1] = chain.why.back();
      if (gain > best[n].gain) best[n] = {gain, begin, std::move(chain)};
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

/// Chooses the bands: as many rows as stay in L2, two bands at least for each thread. Returns the bytes that need not leave L2 less
/// what moving rows from band to band costs; 0 or less where a chain does not pay.
double Chainer::choose_bands(Kernel& chain) const {
  const auto stages = ir::row_stages(g_, chain.sink);
  if (!stages) {
    chain.why.push_back(stages.error().message());
    return -1;
  }
  const int64_t most = ir::most_band_rows(
      *stages, static_cast<int64_t>(kL2Share * static_cast<double>(target_.l2_bytes)));
  const int64_t extent = stages->back().extent;
  const std::string name = say("a chain of ", stages->size());
  if (most == 0 && mode_ != Choice::On) {
    chain.why.push_back(name + " has no room for its rows in L2");
    return -1;
  }
  ir::Bands bands;
  bands.units = std::clamp<int64_t>(target_.threads, 1, extent);
  bands.rows = std::max<int64_t>(1, most);
  if (mode_ != Choice::On)
    bands.rows = std::clamp<int64_t>(extent / (2 * bands.units), 1, bands.rows);
  std::vector<Node> stores;
  for (int i = 0; i < chain.sink.source_count(); ++i) stores.push_back(chain.sink.src(i));
  chain.sink = g_.make(Op::Sink, DType::Void, stores, ir::encode(bands));
  if (mode_ == Choice::On) {
    chain.why.push_back(name + " is legal and asked for");
    return static_cast<double>(stages->size() - 1);
  }
  int64_t constants = 0;
  for (const int id : chain.buffers) {
    if (buffer(id).role == BufferRole::Constant) constants += buffer(id).size_bytes();
  }
  // They are read again for each band.
  if (constants > target_.l2_bytes / 4) {
    chain.why.push_back(say(name, " reads ", mb(static_cast<double>(constants)),
                            " of constants for each band, a quarter of L2 is ",
                            mb(static_cast<double>(target_.l2_bytes) / 4)));
    return -1;
  }
  double saved = 0, moved = 0;
  double advance = static_cast<double>(bands.rows);
  for (size_t i = stages->size() - 1; i-- > 0;) {
    const ir::RowWindow& window = (*stages)[i + 1].window;
    const auto slot = static_cast<size_t>((*stages)[i].slot);
    advance *= static_cast<double>(window.stride);
    const auto kept =
        static_cast<double>(std::max<int64_t>(0, window.last - window.first + 1 - window.stride));
    const bool leaves = buffer(chain.buffers[slot]).size_bytes() > target_.l2_bytes / 2;
    const auto bytes = static_cast<double>((*stages)[i].extent * (*stages)[i].row_bytes);
    saved += leaves ? bytes : 0;
    moved += bytes * kMoveCost * kept / advance;
  }
  chain.why.push_back(say(name, " saves ", mb(saved), " and moves rows for ", mb(moved),
                          ", in bands of ", bands.rows, " of ", extent, " rows, ", most, " fit ",
                          kL2Share, " of L2"));
  return saved - moved;
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
/// those of rows are of AxisKind::Thread.
Kernel Chainer::join(size_t first, size_t last, const std::vector<Node>& rows) {
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
        const bool is_rows = n == rows[k - first];
        map[n] =
            g_.range(n.src(0), next_id + n.id_arg(), is_rows ? AxisKind::Thread : n.axis_kind());
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
