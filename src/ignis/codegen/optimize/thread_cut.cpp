#include "ignis/codegen/optimize/thread_cut.h"

#include "ignis/base/math.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

namespace ignis::codegen {
namespace {

// Rough rates of one core; only their relations matter.
constexpr double kCyclesPerNs = 3;
constexpr double kFarBytesPerNs = 25;   // beyond the core's own caches
constexpr double kNearBytesPerNs = 50;  // its second-level cache
constexpr double kClearly = 0.96;       // a later candidate must be as much better
constexpr double kTurnNs = 30;          // of the loops inside a turn of the cut's outer axes

class ThreadCut {
 public:
  ThreadCut(const Kernel& kernel, const Target& target, const LoopPlan& plan)
      : k_(kernel), plan_(plan), threads_(std::max(2, target.threads)) {
    // Two multiply-adds a cycle.
    flops_per_ns_ = target.vector_bytes / 4 * 2 * 2 * kCyclesPerNs;
    l2_bytes_ = target.l2_bytes;
    for (const ir::Node& n : ir::toposort(k_.stored_value())) {
      const AxisMask axes = k_.axes_of(n);
      bool is_below_reduce = false;
      for (size_t a = 0; a < k_.axes().size(); ++a)
        is_below_reduce |= k_.axes()[a].is_reduce && (axes & axis_bit(static_cast<int>(a))) != 0;
      store_ops_ += ir::is_elementwise(n.op()) && is_float(n.dtype()) && !is_below_reduce;
    }
  }

  std::vector<int> choose(Notes& why) const {
    std::vector<int> best;
    std::string tried;
    double least = 0;
    for (const std::vector<int>& order : orders()) {
      for (size_t n = 1; n <= order.size(); ++n) {
        const std::vector<int> axes(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n));
        const double ns = cost_ns(axes);
        append(tried, say(text(axes), " ", ns / 1e3, " us"));
        if (!best.empty() && ns >= kClearly * least) continue;
        best = axes;
        least = ns;
      }
    }
    if (!best.empty())
      why.push_back(say("threads cut ", text(best), ", slowest of ", threads_, ": ", tried));
    return best;
  }

 private:
  static std::string text(const std::vector<int>& axes) {
    std::string list;
    for (const int a : axes) list += (list.empty() ? "(" : ",") + std::to_string(a);
    return list + ")";
  }
  int64_t extent(int axis) const { return k_.axes()[static_cast<size_t>(axis)].extent; }
  int64_t tiles(int axis) const { return plan_.tiles(axis, extent(axis)); }

  /// Orders whose beginnings are tried: that of the loops; the vector's axis last, so that a thread keeps its rows from
  /// kernel to kernel; and first, so that it reads only its part of the weights.
  std::vector<std::vector<int>> orders() const {
    std::vector<int> loops, rows;
    for (const LoopPlan::Loop& l : plan_.loops) {
      if (l.chunk != 0 || tiles(l.axis) < 2) continue;
      loops.push_back(l.axis);
      if (l.axis != plan_.vector_axis) rows.push_back(l.axis);
    }
    std::vector<int> last = rows, first = rows;
    if (loops.size() > rows.size()) {
      last.push_back(plan_.vector_axis);
      first.insert(first.begin(), plan_.vector_axis);
    }
    return {last, loops, first};
  }

  /// Tiles of each axis that the largest part goes over.
  std::vector<int64_t> covered(const std::vector<int>& axes) const {
    std::vector<int64_t> list(k_.axes().size());
    int64_t units = 1;
    for (size_t a = 0; a < list.size(); ++a)
      list[a] = k_.axes()[a].is_reduce ? extent(static_cast<int>(a)) : tiles(static_cast<int>(a));
    for (const int a : axes) units *= tiles(a);
    int64_t left = ceil_div(units, threads_);
    for (size_t i = axes.size(); i-- > 0;) {
      const auto a = static_cast<size_t>(axes[i]);
      const int64_t all = list[a];
      list[a] = std::min(all, left);
      left = ceil_div(left, all);
    }
    return list;
  }

  int64_t elements(size_t axis, const std::vector<int64_t>& covers) const {
    if (k_.axes()[axis].is_reduce) return covers[axis];
    const int a = static_cast<int>(axis);
    return std::min(extent(a), covers[axis] * ceil_div(extent(a), tiles(a)));
  }

  /// Bytes of the different elements that are accessed: terms that walk within what smaller ones reach widen it, others
  /// repeat it.
  double bytes(const Address& at, const std::vector<int64_t>& covers, DType dtype) const {
    struct Term {
      int64_t step, count;
    };
    std::vector<Term> terms;
    for (const auto& t : at.linear) {
      int64_t count = elements(static_cast<size_t>(t.axis), covers);
      if (at.divisor(t.axis) != 0) count = std::min(count, at.divisor(t.axis));
      terms.push_back({std::abs(t.coefficient), count});
    }
    for (const auto& t : at.divs) {
      const int64_t step = t.coefficient + at.coefficient(t.axis) * t.divisor;
      terms.push_back(
          {std::abs(step), (elements(static_cast<size_t>(t.axis), covers) - 1) / t.divisor + 1});
    }
    for (const auto& t : at.opaque) {
      for (size_t a = 0; a < covers.size(); ++a) {
        if ((t.axes & axis_bit(static_cast<int>(a))) != 0)
          terms.push_back({std::numeric_limits<int32_t>::max(), elements(a, covers)});
      }
    }
    std::sort(terms.begin(), terms.end(),
              [](const Term& x, const Term& y) { return x.step < y.step; });
    double reach = 1, count = 1;
    for (const auto& [step, times] : terms) {
      const double far = static_cast<double>(step) * static_cast<double>(times - 1);
      count *=
          static_cast<double>(step) <= reach ? (reach + far) / reach : static_cast<double>(times);
      reach += far;
    }
    return count * size_bytes(dtype);
  }

  double cost_ns(const std::vector<int>& axes) const {
    const std::vector<int64_t> covers = covered(axes);
    int64_t units = 1;
    for (const int a : axes) units *= tiles(a);
    const double share =
        static_cast<double>(ceil_div(units, threads_)) / static_cast<double>(units);
    // A short last vector makes a tile of the vector's axis cheaper than its share says.
    double uneven = 1;
    const int v = plan_.vector_axis;
    if (v >= 0 && axes.front() == v) {
      const int64_t vectors = ceil_div<int64_t>(extent(v), plan_.lanes);
      uneven = static_cast<double>(tiles(v) * plan_.vectors) / static_cast<double>(vectors);
    }
    const auto points = [&](AxisMask mask) {  // of all threads' work and of this part's
      double all = 1, cut = 1;
      for (size_t a = 0; a < covers.size(); ++a) {
        if ((mask & axis_bit(static_cast<int>(a))) == 0) continue;
        all *= static_cast<double>(extent(static_cast<int>(a)));
        if (std::find(axes.begin(), axes.end(), static_cast<int>(a)) != axes.end())
          cut *= static_cast<double>(covers[a]) / static_cast<double>(tiles(static_cast<int>(a)));
      }
      return std::pair{all, std::max(cut, share)};
    };
    AxisMask outputs = 0;
    for (size_t a = 0; a < covers.size(); ++a) {
      if (!k_.axes()[a].is_reduce) outputs |= axis_bit(static_cast<int>(a));
    }
    double flops = points(outputs).first * share * static_cast<double>(store_ops_);
    for (const ReduceSite& r : k_.reduces()) {
      AxisMask mask = r.outer;
      for (const int a : r.axes) mask |= axis_bit(a);
      // What the cut axes do not change, each thread computes.
      bool moves = true;
      for (const int a : axes) moves &= (r.outer & axis_bit(a)) != 0;
      const auto [all, cut] = points(mask);
      flops += 2 * all * (moves ? share : cut);
    }
    double ns = flops / flops_per_ns_;

    int64_t turns = 1;
    for (size_t i = 0; i + 1 < axes.size(); ++i) turns *= covers[static_cast<size_t>(axes[i])];
    ns += static_cast<double>(turns - 1) * kTurnNs;
    const bool panels_outside = axes.size() > 1 && v >= 0 && axes.front() == v;
    double box = 1;  // share of what is covered along each axis
    for (const int a : axes)
      box *= static_cast<double>(covers[static_cast<size_t>(a)]) / static_cast<double>(tiles(a));
    const auto read = [&](const Address& at, DType dtype) {
      double size = bytes(at, covers, dtype);
      if (std::all_of(axes.begin(), axes.end(), [&](int a) { return at.depends_on(a); }))
        size *= share / box;
      ns += size / kFarBytesPerNs;
      if (v < 0 || axes.size() < 2) return;
      if (panels_outside && !at.depends_on(v) && size > static_cast<double>(l2_bytes_) / 2)
        ns += size * static_cast<double>(covers[static_cast<size_t>(v)] - 1) / kFarBytesPerNs;
      bool is_again = at.depends_on(v);  // in each turn
      for (size_t i = 0; i + 1 < axes.size(); ++i)
        is_again &= !at.depends_on(axes[i]) && stands_inside(axes[i], v);
      if (is_again) ns += size * static_cast<double>(turns - 1) / kNearBytesPerNs;
    };
    for (const ir::Node& load : k_.loads()) read(k_.address(load.src(0)), load.dtype());
    const ir::Node stored = k_.store().src(0);
    read(k_.address(stored), stored.dtype());
    return ns * uneven;
  }

  /// Whether a loop over `other` stands outside the one over `axis`.
  bool stands_inside(int axis, int other) const {
    for (const LoopPlan::Loop& l : plan_.loops) {
      if (l.axis == other) return true;
      if (l.axis == axis) return false;
    }
    return false;
  }

  const Kernel& k_;
  const LoopPlan& plan_;
  int64_t threads_, l2_bytes_ = 0;
  int store_ops_ = 0;
  double flops_per_ns_ = 1;
};

}  // namespace

void choose_thread_axes(const Kernel& kernel, const Target& target, LoopPlan& plan, Notes& why) {
  plan.thread_axes = ThreadCut(kernel, target, plan).choose(why);
}

}  // namespace ignis::codegen
