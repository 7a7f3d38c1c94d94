#include "ignis/codegen/optimize/search_space.h"

#include "ignis/base/math.h"
#include "ignis/codegen/optimize/chain_plan.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

namespace ignis::codegen {
namespace {

constexpr int64_t kMostCopies =
    128;  // of a reduce body: more is code nobody's instruction cache holds

class Neighbours {
 public:
  Neighbours(const Kernel& kernel, const LoopPlan& plan, const Target& target, FloatLevel level,
             const BandAxes* band)
      : k_(kernel),
        plan_(plan),
        target_(target),
        regroups_(level != FloatLevel::Strict),
        band_(band) {
    for (size_t a = 0; a < k_.axes().size(); ++a) {
      if (!k_.axes()[a].is_reduce) outputs_.push_back(static_cast<int>(a));
    }
  }

  std::vector<LoopPlan> list() {
    vary_lanes();
    vary_vectors();
    vary_tile();
    vary_axes();
    vary_order();
    vary_cache_tiles();
    vary_threads();
    vary_splits();
    vary_unrolls();
    vary_switches();
    return std::move(list_);
  }

 private:
  int64_t extent(int axis) const { return k_.axes()[static_cast<size_t>(axis)].extent; }
  int64_t tiles(int axis) const { return plan_.tiles(axis, extent(axis)); }

  void add(LoopPlan plan) {
    if (plan == plan_ || !verify_plan(k_, plan)) return;
    // Accumulators that registers cannot hold are never worth a try.
    if (!k_.reduces().empty() && !plan.transposes && plan.vectors * plan.tile > accumulators())
      return;
    if (band_ != nullptr) {
      // The tile of rows is that of the other stores too.
      const bool keeps_tile = plan.tile_axis != band_->rows ||
                              (plan.tile_axis == plan_.tile_axis && plan.tile == plan_.tile);
      if (!keeps_tile || !verify_band(k_, plan, *band_)) return;
    }
    if (std::find(list_.begin(), list_.end(), plan) == list_.end())
      list_.push_back(std::move(plan));
  }
  int64_t accumulators() const { return std::max(1, target_.vector_registers - 2); }

  /// Vectors side by side that a packed operand allows: they divide its panel.
  bool fits_panels(int axis, int64_t width) const {
    for (const ir::Node& load : k_.loads()) {
      const int64_t panel = k_.address(load.src(0)).divisor(axis);
      if (panel != 0 && panel % width != 0 && width % panel != 0) return false;
    }
    return true;
  }

  void vary_lanes() {
    const int v = plan_.vector_axis;
    if (v < 0 || plan_.transposes) return;
    const int most = std::max(1, target_.vector_bytes / std::max(1, k_.widest_bytes()));
    for (const int lanes : {plan_.lanes / 2, plan_.lanes * 2}) {
      if (lanes < 2 || lanes > most) continue;
      LoopPlan plan = plan_;
      plan.lanes = lanes;
      // As many elements side by side as before where that goes.
      plan.vectors = std::max(1, plan_.lanes * plan_.vectors / lanes);
      if (fits_panels(v, int64_t{plan.lanes} * plan.vectors)) add(plan);
    }
  }

  void vary_vectors() {
    const int v = plan_.vector_axis;
    if (v < 0 || plan_.transposes) return;
    const int64_t all = ceil_div<int64_t>(extent(v), plan_.lanes);
    for (const int vectors : {1, 2, 3, 4, 6, 8}) {
      if (vectors > all || !fits_panels(v, int64_t{plan_.lanes} * vectors)) continue;
      LoopPlan plan = plan_;
      plan.vectors = vectors;
      add(plan);
      // The same number of accumulators, in another form.
      if (plan.tile_axis < 0 || plan_.tile < 2) continue;
      plan.tile =
          std::clamp<int64_t>(plan_.tile * plan_.vectors / vectors, 1, extent(plan.tile_axis));
      add(plan);
    }
  }

  void vary_tile() {
    const int m = plan_.tile_axis;
    if (m < 0 || plan_.transposes) return;
    std::set<int64_t> sizes;
    for (int64_t parts = tiles(m) - 2; parts <= tiles(m) + 3; ++parts) {
      if (parts >= 1) sizes.insert(ceil_div(extent(m), parts));
    }
    for (const int64_t size : {plan_.tile - 2, plan_.tile - 1, plan_.tile + 1, plan_.tile + 2,
                               plan_.tile / 2, plan_.tile * 2, accumulators() / plan_.vectors})
      sizes.insert(size);
    for (const int64_t size : sizes) {
      if (size < 1 || size > extent(m)) continue;
      LoopPlan plan = plan_;
      plan.tile = size;
      add(plan);
    }
  }

  /// Other axes in lanes, and other second axes of the tile.
  void vary_axes() {
    for (const int a : outputs_) {
      if (extent(a) < 2) continue;
      if (a != plan_.tile_axis && a != plan_.vector_axis && !plan_.transposes &&
          plan_.vector_axis >= 0) {
        LoopPlan plan = without_segment(a);
        plan.slides = false;
        plan.tile_axis = a;
        const int64_t limit = std::max<int64_t>(1, accumulators() * 3 / 4 / plan.vectors);
        plan.tile = ceil_div(extent(a), ceil_div(extent(a), limit));
        add(plan);
      }
      if (a == plan_.vector_axis) continue;
      LoopPlan plan = without_segment(a);
      plan.vector_axis = a;
      plan.lanes = std::max(1, target_.vector_bytes / std::max(1, k_.widest_bytes()));
      while (plan.lanes > 4 && extent(a) <= plan.lanes / 2) plan.lanes /= 2;
      plan.vectors = 1;
      plan.transposes = plan.slides = false;
      plan.staged_axis = -1;
      plan.splits.clear();
      if (plan.tile_axis == a || plan_.transposes) {
        plan.tile_axis = -1;
        plan.tile = 1;
      }
      if (plan.vectors * plan.tile > accumulators()) plan.tile = accumulators();
      add(plan);
    }
    if (plan_.tile_axis < 0) return;
    LoopPlan plan = plan_;
    plan.tile_axis = -1;
    plan.tile = 1;
    plan.transposes = plan.slides = false;
    add(plan);
  }
  LoopPlan without_segment(int axis) const {
    LoopPlan plan = plan_;
    std::erase_if(plan.segments, [&](const LoopPlan::Segment& s) { return s.axis == axis; });
    return plan;
  }

  void vary_order() {
    for (size_t i = 0; i + 1 < plan_.loops.size(); ++i) {
      LoopPlan plan = plan_;
      std::swap(plan.loops[i], plan.loops[i + 1]);
      add(plan);
    }
    for (size_t i = 0; i < plan_.loops.size(); ++i) {
      for (const bool is_inside : {false, true}) {  // to one end
        LoopPlan plan = plan_;
        const auto at = plan.loops.begin() + static_cast<std::ptrdiff_t>(i);
        if (is_inside) {
          std::rotate(at, at + 1, plan.loops.end());
        } else {
          std::rotate(plan.loops.begin(), at, at + 1);
        }
        add(plan);
      }
    }
  }

  void vary_cache_tiles() {
    for (size_t i = 0; i < plan_.loops.size(); ++i) {
      const LoopPlan::Loop& loop = plan_.loops[i];
      if (loop.chunk != 0) {
        for (const int64_t chunk : {loop.chunk / 2, loop.chunk * 2}) {
          if (chunk < 1 || chunk >= tiles(loop.axis)) continue;
          LoopPlan plan = plan_;
          plan.loops[i].chunk = chunk;
          add(plan);
        }
        LoopPlan plan = plan_;
        plan.loops.erase(plan.loops.begin() + static_cast<std::ptrdiff_t>(i));
        add(plan);
        continue;
      }
      if (i == 0 || tiles(loop.axis) < 4) continue;
      for (const int64_t parts : {2, 4, 8}) {
        const int64_t chunk = ceil_div<int64_t>(tiles(loop.axis), parts);
        if (chunk < 2) continue;
        LoopPlan plan = plan_;
        plan.loops.insert(plan.loops.begin(), {loop.axis, chunk});
        add(plan);
      }
    }
  }

  void vary_threads() {
    if (target_.threads < 2 || band_ != nullptr) return;
    const auto cut = [&](std::vector<int> axes) {
      LoopPlan plan = plan_;
      plan.thread_axes = std::move(axes);
      add(plan);
    };
    for (const int a : outputs_) {
      if (tiles(a) < 2) continue;
      cut({a});
      for (const int b : outputs_) {
        if (b != a && tiles(b) >= 2) cut({a, b});
      }
    }
  }

  void vary_splits() {
    if (!regroups_) return;
    for (size_t i = 0; i < plan_.splits.size(); ++i) {
      for (const int partials : {1, 2, 4, 8, 12}) {
        LoopPlan plan = plan_;
        plan.splits[i].partials = partials;
        add(plan);
      }
      for (const int lanes : {plan_.splits[i].lanes / 2, plan_.splits[i].lanes * 2}) {
        if (lanes < 2 || lanes * 4 > target_.vector_bytes) continue;
        LoopPlan plan = plan_;
        plan.splits[i].lanes = lanes;
        add(plan);
      }
    }
  }

  void vary_unrolls() {
    for (const ReduceSite& site : k_.reduces()) {
      for (const int a : site.axes) {
        for (const int64_t factor : {int64_t{1}, int64_t{2}, int64_t{4}, int64_t{8}, extent(a)}) {
          if (factor > extent(a)) continue;
          LoopPlan plan = plan_;
          std::erase_if(plan.unrolls, [&](const LoopPlan::Unroll& u) { return u.axis == a; });
          if (factor > 1) plan.unrolls.push_back({a, factor});
          int64_t copies = int64_t{plan.vectors} * plan.tile;
          for (const int other : site.axes) copies *= plan.unroll_of(other);
          if (copies <= kMostCopies) add(plan);
        }
      }
    }
  }

  void vary_switches() {
    for (size_t i = 0; i < plan_.segments.size(); ++i) {
      LoopPlan plan = plan_;
      plan.segments.erase(plan.segments.begin() + static_cast<std::ptrdiff_t>(i));
      add(plan);
    }
    if (regroups_ && plan_.tile_axis >= 0 && !plan_.transposes) {
      LoopPlan plan = plan_;
      plan.slides = !plan.slides;
      add(plan);
    }
    for (const LoopPlan::SplitReduce& split : plan_.splits) {
      LoopPlan plan = plan_;
      plan.staged_axis = plan.staged_axis == split.axis ? -1 : split.axis;
      add(plan);
    }
  }

  const Kernel& k_;
  const LoopPlan& plan_;
  const Target& target_;
  bool regroups_;
  const BandAxes* band_;
  std::vector<int> outputs_;
  std::vector<LoopPlan> list_;
};

}  // namespace

std::vector<LoopPlan> neighbour_plans(const Kernel& kernel, const LoopPlan& plan,
                                      const Target& target, FloatLevel level,
                                      const BandAxes* band) {
  return Neighbours(kernel, plan, target, level, band).list();
}

}  // namespace ignis::codegen
