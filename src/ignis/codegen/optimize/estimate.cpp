#include "ignis/base/math.h"
#include "ignis/codegen/optimize/search_space.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace ignis::codegen {
namespace {

// Of one core; only their relations matter.
constexpr double kCyclesPerNs = 3;
constexpr double kOpsPerCycle = 2;    // vector operations
constexpr double kLoadsPerCycle = 2;  // vector loads
constexpr double kLatency = 4;        // cycles from a multiply-add to the next on its accumulator
constexpr double kL2BytesPerCycle = 32, kL3BytesPerCycle = 12, kMemoryBytesPerCycle = 6;
constexpr double kTurnCycles = 6;  // of a loop around tiles

class Estimate {
 public:
  Estimate(const Kernel& kernel, const LoopPlan& plan, const Target& target)
      : k_(kernel), plan_(plan), target_(target) {}

  double ns() const {
    const double compute = compute_cycles();
    double slowest = compute;
    for (const auto& [size, bytes_per_cycle] : {std::pair{target_.l1_bytes, kL2BytesPerCycle},
                                                std::pair{target_.l2_bytes, kL3BytesPerCycle},
                                                std::pair{target_.l3_bytes, kMemoryBytesPerCycle}})
      slowest = std::max(slowest, bytes_beyond(static_cast<double>(size)) / bytes_per_cycle);
    // What is not the slowest is not hidden wholly either.
    return (slowest + 0.1 * compute + turns() * kTurnCycles) / kCyclesPerNs;
  }

 private:
  int64_t extent(int axis) const { return k_.axes()[static_cast<size_t>(axis)].extent; }
  bool is_output(size_t axis) const { return !k_.axes()[axis].is_reduce; }
  double tiles(int axis) const { return static_cast<double>(plan_.tiles(axis, extent(axis))); }

  double turns() const {
    double count = 1;
    for (size_t a = 0; a < k_.axes().size(); ++a) {
      if (is_output(a)) count *= tiles(static_cast<int>(a));
    }
    return count;
  }

  /// Vector loads of one access in one step of a tile.
  double loads_of(const Address& at, bool in_lanes, int lanes) const {
    const int v = plan_.vector_axis, m = plan_.tile_axis;
    double count = 1;
    if (m >= 0 && at.depends_on(m)) count *= static_cast<double>(plan_.tile);
    if (!in_lanes || v < 0 || !at.depends_on(v)) return count;
    const int64_t step = at.coefficient(v);
    count *= plan_.vectors;
    const bool is_plain = step == 1 || (step == 0 && at.divisor(v) != 0);
    return is_plain || plan_.transposes ? count : count * lanes;
  }

  static double operations(const ir::Node& root) {
    double count = 0;
    for (const ir::Node& n : ir::toposort(root)) {
      count += ir::is_elementwise(n.op()) && is_float(n.dtype());
    }
    return std::max(1.0, count);
  }

  double compute_cycles() const {
    const int v = plan_.vector_axis, m = plan_.tile_axis;
    double cycles = 0;
    for (const ReduceSite& site : k_.reduces()) {
      const bool in_lanes = v >= 0 && (site.outer & axis_bit(v)) != 0;
      const bool in_tile = m >= 0 && (site.outer & axis_bit(m)) != 0;
      int lanes = in_lanes ? plan_.lanes : 1;
      double partials = 1, steps = 1;
      for (const int a : site.axes) {
        double count = static_cast<double>(extent(a));
        if (const LoopPlan::SplitReduce* split = plan_.split_of(a)) {
          count = static_cast<double>(ceil_div<int64_t>(extent(a), split->lanes));
          partials = split->partials;
        }
        steps *= count;
      }
      for (size_t a = 0; a < k_.axes().size(); ++a) {
        if (is_output(a) && (site.outer & axis_bit(static_cast<int>(a))) != 0)
          steps *= tiles(static_cast<int>(a));
      }
      const double copies =
          (in_lanes ? plan_.vectors : 1) * (in_tile ? static_cast<double>(plan_.tile) : 1);
      const double ops = copies * (site.is_product ? 1 : operations(site.node.src(0)));
      double loads = 0;
      for (const ir::Node& load : site.loads)
        loads += loads_of(k_.address(load.src(0)), in_lanes, lanes);
      // A window that slides loads what copies share once.
      if (plan_.slides) loads *= 0.6;
      const double excess = copies + (in_lanes ? plan_.vectors : 1) + 1 - target_.vector_registers;
      if (excess > 0) loads += 2 * excess;
      double step = std::max(ops / kOpsPerCycle, loads / kLoadsPerCycle);
      step = std::max(step, kLatency * ops / (copies * partials));
      double unrolled = 1;
      for (const int a : site.axes) unrolled *= static_cast<double>(plan_.unroll_of(a));
      cycles += steps * (step + 1 / (unrolled * partials));
    }
    // What is computed for each stored element.
    const double lanes = v >= 0 ? plan_.lanes : 1;
    double stored = 1;
    for (size_t a = 0; a < k_.axes().size(); ++a) {
      if (!is_output(a)) continue;
      const int axis = static_cast<int>(a);
      stored *= axis == v ? static_cast<double>(ceil_div<int64_t>(extent(axis), plan_.lanes))
                          : static_cast<double>(extent(axis));
    }
    double ops = 1;
    for (const ir::Node& n : ir::toposort(k_.stored_value())) {
      bool is_below_reduce = false;
      const AxisMask axes = k_.axes_of(n);
      for (size_t a = 0; a < k_.axes().size(); ++a)
        is_below_reduce |= !is_output(a) && (axes & axis_bit(static_cast<int>(a))) != 0;
      ops += ir::is_elementwise(n.op()) && !is_below_reduce;
    }
    const Address& to = k_.address(k_.store().src(0));
    const bool scatters = v >= 0 && to.coefficient(v) != 1 && !plan_.transposes;
    return cycles + stored * (ops / kOpsPerCycle + (scatters ? lanes : 1));
  }

  /// Elements of each axis below the loops from `depth` on: a tile's, and what those loops walk.
  std::vector<int64_t> covered(size_t depth) const {
    std::vector<int64_t> list(k_.axes().size());
    for (size_t a = 0; a < list.size(); ++a) {
      const int axis = static_cast<int>(a);
      list[a] = is_output(a) ? std::min(extent(axis), tile_size(axis)) : extent(axis);
    }
    for (size_t i = depth; i < plan_.loops.size(); ++i) {
      const int axis = plan_.loops[i].axis;
      int64_t& count = list[static_cast<size_t>(axis)];
      int64_t all = extent(axis);
      // Inside the loop over chunks, the axis's own loop walks one chunk.
      if (plan_.loops[i].chunk == 0) {
        for (size_t j = 0; j < depth; ++j) {
          if (plan_.loops[j].axis == axis && plan_.loops[j].chunk != 0)
            all = std::min(all, plan_.loops[j].chunk * tile_size(axis));
        }
      }
      count = std::max(count, all);
    }
    return list;
  }
  int64_t tile_size(int axis) const {
    return ceil_div(extent(axis), plan_.tiles(axis, extent(axis)));
  }

  static double reach(const Address& at, const std::vector<int64_t>& covers, DType dtype) {
    double count = 1;
    for (const auto& t : at.linear) {
      double n = static_cast<double>(covers[static_cast<size_t>(t.axis)]);
      if (at.divisor(t.axis) != 0) n = std::min(n, static_cast<double>(at.divisor(t.axis)));
      count *= n;
    }
    for (const auto& t : at.divs)
      count *=
          static_cast<double>(ceil_div<int64_t>(covers[static_cast<size_t>(t.axis)], t.divisor));
    for (const auto& t : at.opaque) {
      for (size_t a = 0; a < covers.size(); ++a) {
        if ((t.axes & axis_bit(static_cast<int>(a))) != 0) count *= static_cast<double>(covers[a]);
      }
    }
    return count * size_bytes(dtype);
  }

  /// Bytes that come from beyond a cache of this size.
  double bytes_beyond(double cache_bytes) const {
    struct Access {
      const Address* at;
      DType dtype;
    };
    std::vector<Access> accesses;
    for (const ir::Node& load : k_.loads())
      accesses.push_back({&k_.address(load.src(0)), load.dtype()});
    accesses.push_back({&k_.address(k_.store().src(0)), k_.store().src(0).dtype()});
    // The outermost loop whose body's bytes stay in the cache.
    size_t depth = plan_.loops.size();
    for (size_t d = 0; d <= plan_.loops.size(); ++d) {
      const std::vector<int64_t> covers = covered(d);
      double all = 0;
      for (const Access& a : accesses) all += reach(*a.at, covers, a.dtype);
      if (all > 0.7 * cache_bytes) continue;
      depth = d;
      break;
    }
    const std::vector<int64_t> inside = covered(depth);
    double sum = 0;
    for (const Access& a : accesses) {
      double turns = 1;
      bool varies = false;  // an access that the next loops do not move stays where it is
      for (size_t i = depth; i-- > 0;) {
        const int axis = plan_.loops[i].axis;
        varies |= a.at->depends_on(axis);
        if (!varies) continue;
        const std::vector<int64_t> outer = covered(i), inner = covered(i + 1);
        turns *= static_cast<double>(
            ceil_div(outer[static_cast<size_t>(axis)], inner[static_cast<size_t>(axis)]));
      }
      sum += turns * reach(*a.at, inside, a.dtype);
    }
    return sum;
  }

  const Kernel& k_;
  const LoopPlan& plan_;
  const Target& target_;
};

}  // namespace

double estimate_ns(const Kernel& kernel, const LoopPlan& plan, const Target& target) {
  return Estimate(kernel, plan, target).ns();
}

}  // namespace ignis::codegen
