#include "ignis/base/math.h"
#include "ignis/codegen/optimize/loop_plan.h"
#include "ignis/codegen/optimize/stage.h"
#include "ignis/codegen/optimize/thread_cut.h"

#include <algorithm>
#include <numeric>

// The recipes of kernel-codegen.md 13.0 as one procedure over address strides: it never asks which operator made a
// kernel, only which loads move with which axis.
namespace ignis::codegen {
namespace {

using ir::Node;
using ir::Op;

/// An inner tile axis is taken when its tiles are at least this share of the largest.
constexpr double kInnerTileShare = 0.7;
/// Combinations in the body of a reduction's loop; where tiles know what of their windows lies in padding, a window whole.
constexpr int64_t kMaxUnrolled = 128, kMaxUnrolledAtRims = 256;

std::string kib(int64_t bytes) { return say(static_cast<double>(bytes) / 1024, " KiB"); }

class Chooser {
 public:
  Chooser(const Kernel& kernel, const Target& target, FloatLevel level, const BandAxes* band,
          Notes& why)
      : k_(kernel), target_(target), level_(level), is_banded_(band != nullptr), why_(why) {
    if (is_banded_) band_ = *band;
  }

  LoopPlan choose() {
    lanes_ = std::max(1, target_.vector_bytes / std::max(1, std::max(k_.widest_bytes(), 1)));
    choosing_axis_ = find_choosing_axis();
    choose_vector_axis();
    split_reduces();
    if (!choose_transpose()) choose_tile();
    order_loops();
    if (!is_banded_) choose_thread_axes(k_, target_, plan_, why_);
    choose_segments();
    choose_unrolls();
    plan_.slides = should_slide();
    choose_stage();
    std::erase_if(plan_.loops,
                  [&](const LoopPlan::Loop& l) { return band_.holds(l.axis) && l.chunk != 0; });
    return plan_;
  }

 private:
  int64_t extent(int axis) const { return k_.axes()[static_cast<size_t>(axis)].extent; }
  std::vector<int> outputs() const {
    std::vector<int> list;
    for (size_t a = 0; a < k_.axes().size(); ++a) {
      if (!k_.axes()[a].is_reduce) list.push_back(static_cast<int>(a));
    }
    return list;
  }
  const Address& stored() const { return k_.address(k_.store().src(0)); }
  const Address& address(const Node& load) const { return k_.address(load.src(0)); }

  /// The reduces whose accumulators are the register tile: those in lanes of the stored value.
  std::vector<const ReduceSite*> tile_reduces() const {
    std::vector<const ReduceSite*> list;
    if (plan_.vector_axis < 0) return list;
    for (const ReduceSite& r : k_.reduces()) {
      if ((r.outer & axis_bit(plan_.vector_axis)) != 0) list.push_back(&r);
    }
    return list;
  }

  /// Whether what is computed changes at some value of an axis: its loop wants segments, not tiles.
  bool is_gated(int axis) const;

  /// Whether neighbours along an output axis read some elements both: a window that steps by less than it spans.
  bool windows_overlap(const Address& at, const ReduceSite& site, int axis) const {
    const int64_t step = std::abs(at.coefficient(axis));
    if (step == 0 || !at.opaque.empty()) return false;
    return std::any_of(site.axes.begin(), site.axes.end(), [&](int a) {
      const int64_t c = std::abs(at.coefficient(a));
      return c != 0 && std::lcm(step, c) / c < extent(a);
    });
  }

  /// Every reduced operand moves with the vector: depthwise windows, pools.
  bool all_in_lanes() const {
    for (const ReduceSite* r : tile_reduces()) {
      for (const Node& load : r->loads) {
        if (address(load).coefficient(plan_.vector_axis) == 0) return false;
      }
    }
    return true;
  }

  /// What moves with the vector is read again through its window only: windows over row-major planes.
  bool is_window_of_planes() const {
    for (const ReduceSite* r : tile_reduces()) {
      for (const Node& load : r->loads) {
        const Address& at = address(load);
        if (at.coefficient(plan_.vector_axis) == 0) continue;
        for (const int a : outputs()) {
          if (extent(a) > 1 && !at.depends_on(a)) return false;
        }
      }
    }
    return true;
  }

  void choose_vector_axis();
  int operations_below(const Node& root) const;
  void split_reduces();
  bool choose_transpose();
  int find_choosing_axis() const;
  void choose_tile();
  int64_t most_copies(int axis, int64_t vectors, int64_t limit) const;
  void order_loops();
  void choose_segments();
  void choose_unrolls();
  bool should_slide();
  void choose_stage();
  int64_t tiles(int axis) const;
  int64_t shared_bytes() const;
  void push_in_order(const std::vector<int>& outer);
  bool goes_down();

  const Kernel& k_;
  const Target& target_;
  FloatLevel level_;
  bool is_banded_;
  BandAxes band_;
  Notes& why_;
  int lanes_ = 1;
  int choosing_axis_ = -1;
  bool streams_weights_ = false;  ///< a vector operand is shared along the tile axis: a contraction
  LoopPlan plan_;
};

void Chooser::choose_vector_axis() {
  for (const ReduceSite& r : k_.reduces()) {
    if (r.node.dtype() == DType::Bool)
      return;  // lanes of bool accumulators are not worth their code
  }
  double best = 0;
  std::string tried;
  for (const int a : outputs()) {
    if (extent(a) < 2 || band_.holds(a) || a == choosing_axis_) continue;
    const auto score = [&](const Address& at, double weight) {
      const int64_t c = at.coefficient(a);
      bool opaque = false;
      for (const auto& t : at.opaque) opaque |= (t.axes & axis_bit(a)) != 0;
      if (opaque) return -3 * weight;
      if (c == 1) return 2 * weight;
      if (c == 2 && &at != &stored()) return 0.5 * weight;  // read by shuffles
      if (c == 0) return at.divisor(a) != 0 ? -3 * weight : weight;
      return -4 * weight;
    };
    double total = score(stored(), 1.5);
    for (const Node& load : k_.loads()) {
      double weight = 1;
      for (const ReduceSite& r : k_.reduces()) {
        if (std::find(r.loads.begin(), r.loads.end(), load) != r.loads.end()) weight = 8;
      }
      total += score(address(load), weight);
    }
    // A short axis fills few lanes.
    total *= std::min(1.0, static_cast<double>(extent(a)) / lanes_);
    append(tried, say("axis ", a, " of ", extent(a), " ", total));
    if (total > best) {
      best = total;
      plan_.vector_axis = a;
    }
  }
  if (!tried.empty()) {
    why_.push_back(say("lanes along ",
                       plan_.vector_axis < 0 ? "none" : say("axis ", plan_.vector_axis),
                       ", by how addresses step: ", tried));
  }
  if (plan_.vector_axis < 0) return;
  // Narrower registers for a short axis: no lane is masked away.
  while (lanes_ > 4 && extent(plan_.vector_axis) <= lanes_ / 2) lanes_ /= 2;
  plan_.lanes = lanes_;
}

/// Elementwise operations of an expression.
int Chooser::operations_below(const Node& root) const {
  int count = 0;
  for (const Node& n : ir::toposort(root)) count += ir::is_elementwise(n.op());
  return count;
}

void Chooser::split_reduces() {
  if (level_ == FloatLevel::Strict) return;
  for (const ReduceSite& r : k_.reduces()) {
    if (r.axes.empty() || r.node.dtype() == DType::Bool) continue;
    if (plan_.vector_axis >= 0 && (r.outer & axis_bit(plan_.vector_axis)) != 0) continue;
    const int axis = r.axes.back();
    if (extent(axis) < lanes_) continue;
    bool contiguous = true, any = false;
    for (const Node& load : r.loads) {
      const Address& at = address(load);
      const int64_t c = at.coefficient(axis);
      contiguous &= (c == 0 || c == 1) && at.divisor(axis) == 0;
      for (const auto& t : at.opaque) contiguous &= (t.axes & axis_bit(axis)) == 0;
      any |= c == 1;
    }
    if (!contiguous || !any) continue;
    // Enough chains to hide the latency of what accumulates; a body of many operations hides it by itself.
    const int64_t vectors = extent(axis) / lanes_;
    const int operations = operations_below(r.node.src(0));
    const int64_t chains = operations > 2 ? 4 : 8;
    why_.push_back(say("sum over axis ", axis, " in ", std::min(chains, vectors),
                       " parts: ", operations, " operations a term, ", vectors, " vectors"));
    plan_.splits.push_back({axis, lanes_, static_cast<int>(std::min(chains, vectors))});
  }
}

/// A kernel that only moves values between two orders: the store runs along one axis, a load along another. Blocks of
/// lanes x lanes elements are turned in registers, so that both sides move whole vectors; narrower ones for short axes.
bool Chooser::choose_transpose() {
  if (!k_.reduces().empty() || (lanes_ & (lanes_ - 1)) != 0) return false;
  for (int lanes = lanes_; lanes >= 4; lanes /= 2) {
    const auto fills = [&](int axis) { return !band_.holds(axis) && extent(axis) >= lanes / 2; };
    int v = -1, m = -1;
    for (const int a : outputs()) {
      if (stored().coefficient(a) == 1 && fills(a)) v = a;
    }
    if (v < 0) continue;
    for (const Node& load : k_.loads()) {
      const Address& at = address(load);
      if (at.coefficient(v) == 0 || at.coefficient(v) == 1 || at.divisor(v) != 0 ||
          load.source_count() != 1)
        continue;
      for (const int a : outputs()) {
        if (a != v && at.coefficient(a) == 1 && at.divisor(a) == 0 && fills(a)) m = a;
      }
    }
    if (m < 0) continue;
    plan_.vector_axis = v;
    plan_.lanes = lanes;
    plan_.vectors = 1;
    plan_.tile_axis = m;
    plan_.tile = lanes;
    plan_.transposes = true;
    why_.push_back(
        say("turned in blocks of ", lanes, ": stored along axis ", v, ", read along axis ", m));
    return true;
  }
  return false;
}

/// A short axis that only chooses between three values or more (two are the inside and a border): with all its copies in
/// one tile no choice is left, and what the values share is computed once.
int Chooser::find_choosing_axis() const {
  constexpr int64_t kMaxCopies = 16;
  if (!k_.reduces().empty()) return -1;
  for (const int a : outputs()) {
    if (!band_.holds(a) && extent(a) <= kMaxCopies &&
        ir::chooses_by(k_.stored_value(), k_.axes()[static_cast<size_t>(a)].range))
      return a;
  }
  return -1;
}

void Chooser::choose_tile() {
  const int v = plan_.vector_axis;
  if (choosing_axis_ >= 0) {
    plan_.tile_axis = choosing_axis_;
    plan_.tile = extent(choosing_axis_);
    why_.push_back(say("tile of all ", plan_.tile, " along axis ", choosing_axis_,
                       ": it only chooses between values"));
    return;
  }
  if (v < 0) return;
  const int64_t vectors = ceil_div<int64_t>(extent(v), lanes_);
  const auto reduces = tile_reduces();
  if (reduces.empty()) {
    plan_.vectors = static_cast<int>(std::min<int64_t>(vectors, k_.reduces().empty() ? 4 : 2));
    return;
  }
  // Registers left for accumulators once the operands of one step have theirs. In depthwise windows, where every operand
  // moves with the vector or planes are read, the inputs that neighbouring copies share take as many again.
  const bool wide_file = target_.vector_registers >= 32;
  const bool in_lanes = all_in_lanes() || is_window_of_planes();
  // AArch64 has no memory operands: what x86 multiplies straight from memory takes registers there.
  const int64_t file_budget = !wide_file ? 12 : target_.arch == Arch::AArch64 ? 20 : 24;
  const int64_t budget = in_lanes ? target_.vector_registers / 2 : file_budget;
  // A packed operand fixes how many vectors lie side by side.
  int64_t panel = 0;
  for (const ReduceSite* r : reduces) {
    for (const Node& load : r->loads) panel = std::max(panel, address(load).divisor(v));
  }
  int64_t width = std::min<int64_t>(vectors, in_lanes && !wide_file ? 1 : 2);
  if (panel > 0 && panel % lanes_ == 0) width = std::min<int64_t>(vectors, panel / lanes_);
  // The second tile axis: one along which a vector operand repeats. The innermost is best, its copies read and write
  // neighbouring memory and share the window that slides along it; an outer one must make much larger tiles.
  const int64_t limit = std::max<int64_t>(1, budget / width);
  int best = -1;
  double best_fill = 0, most = 0;  // mean tile sizes
  std::string tried;
  for (const int a : outputs()) {
    const bool is_rows = a == band_.rows && band_.most_tile > 1;
    if (a == v || extent(a) < 2 || (band_.holds(a) && !is_rows)) continue;
    bool used = false, reused = false;
    for (const ReduceSite* r : reduces) {
      used |= (r->outer & axis_bit(a)) != 0;
      for (const Node& load : r->loads) {
        const Address& at = address(load);
        reused |= at.coefficient(v) != 0 && (!at.depends_on(a) || windows_overlap(at, *r, a));
      }
    }
    if (!used || !reused) continue;
    const double fill = static_cast<double>(extent(a)) /
                        static_cast<double>(ceil_div(extent(a), most_copies(a, width, limit)));
    append(tried, say("axis ", a, " of ", extent(a), " ", fill));
    most = std::max(most, fill);
    if (fill >= kInnerTileShare * most || best_fill < kInnerTileShare * most) {
      best_fill = fill;
      best = a;
    }
  }
  streams_weights_ = best >= 0;
  if (best < 0) {
    // Nothing is read twice. Where the sum is long, a step reads as much of a row as registers can take.
    int64_t points = 1;
    for (const int a : reduces.front()->axes) points *= extent(a);
    int64_t widest = points > 64 ? target_.vector_registers / 2 : 4;
    if (outputs().size() == 1 && target_.threads > 1)
      widest = std::min(widest, ceil_div<int64_t>(vectors, 2 * target_.threads));
    plan_.vectors = static_cast<int>(std::min<int64_t>(vectors, panel > 0 ? width : widest));
    why_.push_back(say("no tile, ", plan_.vectors, " vectors a step of ", vectors,
                       ": no operand is read twice, ", points, " terms a sum"));
    return;
  }
  plan_.vectors = static_cast<int>(width);
  plan_.tile_axis = best;
  const int64_t copies = most_copies(best, width, limit);
  plan_.tile = cover(extent(best), copies).size;
  why_.push_back(say("tile of ", plan_.tile, " along axis ", best, " by ", width,
                     " vectors, mean copies of ", copies, " that registers hold: ", tried));
}

/// Copies along a tile axis: in a band's rows as many as it has memory for; where gates change along the axis, not more than
/// leave the window unrolled whole, so that each copy knows which of its points lie in padding.
int64_t Chooser::most_copies(int axis, int64_t vectors, int64_t limit) const {
  if (axis == band_.rows) limit = std::min(limit, band_.most_tile);
  if (!is_gated(axis)) return limit;
  int64_t points = vectors;
  for (const ReduceSite* r : tile_reduces()) {
    int64_t own = vectors;
    for (const int a : r->axes) own *= extent(a);
    points = std::max(points, own);
  }
  return points > kMaxUnrolledAtRims ? limit : std::min(limit, kMaxUnrolledAtRims / points);
}

int64_t Chooser::tiles(int axis) const { return plan_.tiles(axis, extent(axis)); }

void Chooser::order_loops() {
  const int v = plan_.vector_axis, m = plan_.tile_axis;
  // Output axes stand from the largest stride of the stored buffer to the smallest.
  std::vector<int> rest;
  for (const int a : outputs()) {
    if (a != v && a != m) rest.push_back(a);
  }
  if (streams_weights_ && !all_in_lanes()) {
    // Contraction: [batch…][chunk of rows][panel][row][tile]. One panel of weights stays in L1/L2 while the rows of a
    // chunk, which stay in L2, pass under it.
    int row = m;
    for (const int a : rest) {
      bool streams = false, batches = false;  // other panels for each step: no rows of one
      for (const ReduceSite* r : tile_reduces()) {
        for (const Node& load : r->loads) {
          const bool is_panel = address(load).coefficient(v) != 0 || address(load).divisor(v) != 0;
          (is_panel ? batches : streams) |= address(load).depends_on(a);
        }
      }
      const bool is_fixed = band_.holds(a) && a != band_.rows;
      if (streams && !batches && extent(a) > 1 && !is_fixed) row = a;
    }
    int64_t bytes_per_row = 1;
    for (const ReduceSite* r : tile_reduces()) {
      for (const Node& load : r->loads) {
        const Address& at = address(load);
        if (at.coefficient(v) != 0 || !at.depends_on(row)) continue;
        int64_t row_bytes = size_bytes(load.dtype());
        if (row == m) {
          for (const int a : r->axes) row_bytes *= at.depends_on(a) ? extent(a) : 1;
          row_bytes *= plan_.tile;
        } else {
          row_bytes *= std::abs(at.coefficient(row));
        }
        bytes_per_row = std::max(bytes_per_row, row_bytes);
      }
    }
    int64_t depth = 1;
    for (const int a : tile_reduces().front()->axes) depth *= extent(a);
    constexpr int64_t kShallow = 64;  // writing the result takes as long as computing it
    if (shared_bytes() <= target_.l1_bytes / 2 || depth <= kShallow) {
      // A tile's rows are read once and its results written in long runs, without chunks: panels stay in L1, all or so many
      // at a time.
      push_in_order(rest);
      why_.push_back(say("rows outside: panels of ", kib(shared_bytes()), " in L1 of ",
                         kib(target_.l1_bytes), ", ", depth, " terms a sum"));
      return;
    }
    const int64_t rows = tiles(row);
    const int64_t chunk = std::clamp<int64_t>(target_.l2_bytes / 2 / bytes_per_row, 1, rows);
    for (const int a : rest) {
      if (a != row) plan_.loops.push_back({a, 0});
    }
    if (chunk < rows) plan_.loops.push_back({row, ceil_div(rows, ceil_div(rows, chunk))});
    why_.push_back(say("panels outside: ", kib(shared_bytes()), " in L1 of ", kib(target_.l1_bytes),
                       "; ", chunk, " of ", rows, " tiles along axis ", row, " of ",
                       kib(bytes_per_row), " in half of L2"));
    plan_.loops.push_back({v, 0});
    if (row != m) plan_.loops.push_back({row, 0});
    plan_.loops.push_back({m, 0});
    return;
  }
  push_in_order(rest);
}

/// Bytes of the operands that every row of a contraction or window reads again: weights.
int64_t Chooser::shared_bytes() const {
  const int v = plan_.vector_axis, m = plan_.tile_axis;
  int64_t sum = 0;
  for (const ReduceSite* r : tile_reduces()) {
    for (const Node& load : r->loads) {
      const Address& at = address(load);
      if (at.coefficient(v) == 0 || at.depends_on(m)) continue;
      int64_t bytes = extent(v) * size_bytes(load.dtype());
      for (const int a : r->axes) bytes *= at.depends_on(a) ? extent(a) : 1;
      sum += bytes;
    }
  }
  return sum;
}

/// Whether a window over a band goes down the rows tile by tile: where the rows that it reads for one tile stay in L1, each
/// comes from L2 once instead of once for every row of the window.
bool Chooser::goes_down() {
  const int v = plan_.vector_axis, m = plan_.tile_axis;
  if (!is_banded_ || v < 0 || tile_reduces().empty() || !all_in_lanes()) return false;
  int64_t bytes = 0;
  for (const ReduceSite* r : tile_reduces()) {
    for (const Node& load : r->loads) {
      const Address& at = address(load);
      const int64_t row = at.coefficient(band_.rows);
      if (row == 0) continue;
      int64_t rows = 1, across = at.coefficient(m) * (plan_.tile - 1) + extent(v);
      bool overlaps = false;  // with the window of the next row
      for (const int a : r->axes) {
        const int64_t reach = at.coefficient(a) * (extent(a) - 1);
        if (at.coefficient(a) > at.coefficient(m) * extent(m) / 2) {
          rows *= extent(a);
          overlaps |= reach >= row;
        } else {
          across += reach;
        }
      }
      if (!overlaps) return false;
      bytes += rows * across * size_bytes(load.dtype());
    }
  }
  if (bytes == 0) return false;
  why_.push_back(say("window ", bytes <= target_.l1_bytes ? "down" : "along",
                     " the rows: one tile reads ", kib(bytes), ", L1 has ", kib(target_.l1_bytes)));
  return bytes <= target_.l1_bytes;
}

/// The loops in the order of the stored buffer, the tile innermost. Weights that L1 does not hold are taken in parts,
/// each for all rows.
void Chooser::push_in_order(const std::vector<int>& outer) {
  const int v = plan_.vector_axis, m = plan_.tile_axis;
  for (const int a : outer) plan_.loops.push_back({a, 0});
  if (m >= 0) plan_.loops.insert(goes_down() ? plan_.loops.begin() : plan_.loops.end(), {m, 0});
  if (v >= 0) plan_.loops.push_back({v, 0});
  const int64_t tile_elements = int64_t{plan_.lanes} * plan_.vectors;
  // A contraction's panels share L1 with little else; beside a window's weights its rows want to stay, of at least two
  // tiles for each pixel, so that neighbouring lines are fetched together.
  const bool is_window = all_in_lanes();
  const int64_t share = is_window ? 8 : 2;
  if (m >= 0 && streams_weights_ && shared_bytes() > target_.l1_bytes / share) {
    const int64_t tile_bytes = shared_bytes() * tile_elements / extent(v);
    const int64_t chunk =
        std::max<int64_t>(is_window ? 2 : 1, target_.l1_bytes / share / tile_bytes);
    if (tiles(v) > chunk) {
      plan_.loops.insert(plan_.loops.begin(), {v, chunk});
      why_.push_back(say(chunk, " of ", tiles(v), " tiles along axis ", v,
                         " at a time: weights of ", kib(shared_bytes()), ", their part of L1 ",
                         kib(target_.l1_bytes / share)));
    }
  }
}

/// Clauses `a < b` on indices: of the gates of the store and of loads, and of choices between a value and what stands in padding.
std::vector<Node> gate_clauses(const Kernel& kernel) {
  std::vector<Node> stack, clauses;
  if (kernel.store().source_count() == 3) stack.push_back(kernel.store().src(2));
  for (const Node& load : kernel.loads()) {
    if (load.source_count() == 3) stack.push_back(load.src(2));
  }
  for (const Node& n : ir::toposort(kernel.stored_value())) {
    if (n.is(Op::Where)) stack.push_back(n.src(0));
  }
  while (!stack.empty()) {
    const Node n = stack.back();
    stack.pop_back();
    if (n.is(Op::And)) {
      stack.push_back(n.src(0));
      stack.push_back(n.src(1));
    } else if (n.is(Op::Cmplt) && !is_float(n.src(0).dtype()) &&
               std::find(clauses.begin(), clauses.end(), n) == clauses.end()) {
      clauses.push_back(n);
    }
  }
  return clauses;
}

bool Chooser::is_gated(int axis) const {
  const std::vector<Node> clauses = gate_clauses(k_);
  return std::any_of(clauses.begin(), clauses.end(), [&](const Node& clause) {
    return (k_.axes_of(clause) & axis_bit(axis)) != 0;
  });
}

/// Loops whose middle part proves every gate are cut there: only the rim pays for padding.
void Chooser::choose_segments() {
  if (plan_.transposes) return;
  const std::vector<Node> clauses = gate_clauses(k_);
  ir::RangeAnalysis ranges;
  for (const int a : outputs()) {
    // Without a window, vectors with masks cost little.
    const bool is_tiled = a == plan_.vector_axis || a == plan_.tile_axis;
    if (band_.holds(a) || a == choosing_axis_ || (is_tiled && tile_reduces().empty()) ||
        plan_.segments.size() == 3)
      continue;
    int64_t lo = 0, hi = extent(a) - 1;  // where every clause that moves with the axis holds
    for (const Node& clause : clauses) {
      const ir::Affine left = ir::to_affine(k_.graph(), clause.src(0));
      const ir::Affine right = ir::to_affine(k_.graph(), clause.src(1));
      int64_t slack = right.constant - left.constant - 1,
              factor = 0;  // holds when slack + factor * axis >= 0
      bool known = true;
      const auto add = [&](const ir::Affine& side, int64_t sign) {
        for (const auto& [atom, c] : side.terms) {
          const Node range = atom.is(Op::Cast) ? atom.src(0) : atom;
          if (!range.is(Op::Range)) {
            const ir::Interval span = ranges.interval(atom) * ir::Interval::point(sign * c);
            known &=
                span.has_low() && !ir::depends_on(atom, k_.axes()[static_cast<size_t>(a)].range);
            if (known) slack += span.lo;
          } else if (k_.axis_of(range) == a) {
            factor += sign * c;
          } else {
            slack += std::min<int64_t>(0, sign * c * (range.range_extent() - 1));
          }
        }
      };
      add(right, 1);
      add(left, -1);
      if (!known || factor == 0) continue;
      if (factor > 0) lo = std::max(lo, -ir::floor_div(slack, factor));
      if (factor < 0) hi = std::min(hi, ir::floor_div(slack, -factor));
    }
    if (hi - lo + 1 == extent(a) || hi - lo + 1 < extent(a) / 2) continue;
    // The tiles that hold a rim stand by themselves.
    LoopPlan::Segment segment{a, {}};
    const int64_t size = a == plan_.vector_axis ? int64_t{plan_.lanes} * plan_.vectors
                         : a == plan_.tile_axis ? plan_.tile
                                                : 1;
    const int64_t first = ceil_div(lo, size) * size;
    const int64_t last = a == plan_.vector_axis
                             ? (hi + 1) / size * size
                             : extent(a) - ceil_div(extent(a) - hi - 1, size) * size;
    if (first > 0 && first < extent(a)) segment.cuts.push_back(first);
    if (last > first && last < extent(a)) segment.cuts.push_back(last);
    if (!segment.cuts.empty()) plan_.segments.push_back(std::move(segment));
  }
}

void Chooser::choose_unrolls() {
  const bool has_rims = plan_.tile_axis >= 0 && is_gated(plan_.tile_axis);
  const int64_t most = has_rims ? kMaxUnrolledAtRims : kMaxUnrolled;
  for (const ReduceSite& r : k_.reduces()) {
    int64_t instances = 1;
    if (plan_.vector_axis >= 0 && (r.outer & axis_bit(plan_.vector_axis)) != 0)
      instances *= plan_.vectors;
    if (plan_.tile_axis >= 0 && (r.outer & axis_bit(plan_.tile_axis)) != 0) instances *= plan_.tile;
    int64_t copies = 1;
    for (size_t i = r.axes.size(); i-- > 0;) {
      const int a = r.axes[i];
      if (plan_.split_of(a) != nullptr) break;
      const int64_t n = extent(a);
      if (n * copies * instances <= most && n <= 9) {
        plan_.unrolls.push_back({a, n});
        copies *= n;
        continue;
      }
      if (copies == 1) {
        int64_t u = std::clamp<int64_t>(48 / instances, 1, 4);
        while (u > 1 && n % u != 0 && n < 4 * u) --u;
        if (u > 1) plan_.unrolls.push_back({a, std::min(u, n)});
      }
      break;
    }
  }
}

/// Whether copies of the tile read some operand at common places, and there are registers for the other operand of all
/// the points of a window's row (half of them: the rest folds into the multiply-adds as operands in memory).
bool Chooser::should_slide() {
  const int m = plan_.tile_axis;
  if (m < 0 || level_ == FloatLevel::Strict) return false;
  for (const ReduceSite* r : tile_reduces()) {
    for (const Node& load : r->loads) {
      const int64_t step = std::abs(address(load).coefficient(m));
      if (step == 0 || !address(load).opaque.empty()) continue;
      for (const int a : r->axes) {
        const int64_t points = plan_.unroll_of(a), c = std::abs(address(load).coefficient(a));
        if (points < 2 || c == 0) continue;
        // copies * step == points * c for numbers within the tile and the row.
        const int64_t common = std::lcm(step, c);
        if (common / step >= plan_.tile || common / c >= points) continue;
        const int64_t registers = plan_.tile * plan_.vectors + points * plan_.vectors / 2 + 2;
        why_.push_back(
            say("bodies along ",
                registers <= target_.vector_registers ? "what copies share" : "the window",
                ": sharing takes ", registers, " registers of ", target_.vector_registers));
        return registers <= target_.vector_registers;
      }
    }
  }
  return false;
}

/// Terms that take more than a few operations are kept while their row stays in a cache.
void Chooser::choose_stage() {
  constexpr int kCheap = 8;  // operations
  for (const LoopPlan::SplitReduce& s : plan_.splits) {
    const int64_t row_bytes = extent(s.axis) * size_bytes(k_.store().src(0).dtype());
    if (row_bytes > target_.l2_bytes / 2) continue;
    const auto stage = find_stage(k_, plan_, s.axis);
    if (!stage) continue;
    int operations = 0;
    for (const Node& n : ir::toposort(stage->repeat)) {
      operations +=
          ir::is_elementwise(n.op()) && (k_.axes_of(n) & axis_bit(plan_.vector_axis)) != 0;
    }
    why_.push_back(say("terms along axis ", s.axis,
                       operations <= kCheap ? " computed again: " : " kept: ", operations,
                       " operations, kept above ", kCheap));
    if (operations <= kCheap) continue;
    plan_.staged_axis = s.axis;
    return;
  }
}

}  // namespace

LoopPlan choose_plan(const Kernel& kernel, const Target& target, FloatLevel level,
                     const BandAxes* band, Notes& why) {
  return Chooser(kernel, target, level, band, why).choose();
}

}  // namespace ignis::codegen
