#include "ignis/codegen/optimize/stage.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ignis::codegen {
namespace {

using ir::Node;
using ir::Op;

/// Compares two expressions, one axis of the first taken for another one.
class Renamed {
 public:
  Renamed(const Kernel& kernel, int from, int to) : k_(kernel), from_(from), to_(to) {}

  bool same(const Node& a, const Node& b) {
    if (a == b && (k_.axes_of(a) & axis_bit(from_)) == 0) return true;
    if (a.op() != b.op() || a.dtype() != b.dtype() || a.source_count() != b.source_count())
      return false;
    if (a.is(Op::Range)) return k_.axis_of(a) == from_ && k_.axis_of(b) == to_;
    if (a.is(Op::Reduce)) return a == b;
    const auto [known, is_new] = known_.emplace(std::pair{a.id(), b.id()}, true);
    if (!is_new) return known->second;
    const bool answer = compare(a, b);
    known_[{a.id(), b.id()}] = answer;
    return answer;
  }

 private:
  bool compare(const Node& a, const Node& b) {
    const int first = a.is(Op::Load) ? 1 : 0;
    if (!(a.arg() == b.arg())) return false;
    if (a.is(Op::Load) && (a.src(0).src(0) != b.src(0).src(0) || place(a, true) != place(b, false)))
      return false;
    for (int i = first; i < a.source_count(); ++i) {
      if (!same(a.src(i), b.src(i))) return false;
    }
    return true;
  }

  using Place = std::map<std::pair<int, int64_t>, int64_t>;  // axis, divisor (-1: whole): factor
  Place place(const Node& load, bool rename) const {
    const Address& at = k_.address(load.src(0));
    const auto name = [&](int axis) { return rename && axis == from_ ? to_ : axis; };
    Place terms;
    terms[{-1, 0}] = at.constant;
    if (!at.opaque.empty()) terms[{-2, load.id()}] = 1;  // equal to nothing else
    for (const auto& t : at.linear) terms[{name(t.axis), -1}] += t.coefficient;
    for (const auto& t : at.divs) terms[{name(t.axis), t.divisor}] += t.coefficient;
    std::erase_if(terms, [](const auto& t) { return t.second == 0; });
    return terms;
  }

  const Kernel& k_;
  const int from_, to_;
  std::map<std::pair<uint32_t, uint32_t>, bool> known_;
};

}  // namespace

Result<Stage> find_stage(const Kernel& kernel, const LoopPlan& plan, int axis) {
  const auto bad = [&](const char* why) {
    return Error(ErrorCode::InvalidArgument,
                 "STAGE(" + std::to_string(axis) + ") is not possible: " + why, "IllegalAction");
  };
  const int v = plan.vector_axis;
  if (v < 0 || plan.split_of(axis) == nullptr)
    return bad("it needs VECTOR and SPLIT_REDUCE of the axis.");
  Stage stage;
  AxisMask outputs = 0;
  for (size_t a = 0; a < kernel.axes().size(); ++a) {
    if (!kernel.axes()[a].is_reduce) outputs |= axis_bit(static_cast<int>(a));
  }
  for (const ReduceSite& site : kernel.reduces()) {
    if (site.axes.size() == 1 && site.axes[0] == axis) stage.site = &site;
  }
  if (stage.site == nullptr) return bad("no reduction runs over this axis alone.");
  const auto& axes = kernel.axes();
  if (axes[static_cast<size_t>(axis)].extent != axes[static_cast<size_t>(v)].extent ||
      (stage.site->outer | axis_bit(v)) != outputs || (stage.site->outer & axis_bit(v)) != 0)
    return bad("a row of the result is not what the reduction runs over.");
  // The whole row belongs to one pass of the loops outside; the vector's loop is the innermost.
  if (plan.tile_axis >= 0 || plan.loops.empty() || plan.loops.back().axis != v ||
      std::find(plan.thread_axes.begin(), plan.thread_axes.end(), v) != plan.thread_axes.end() ||
      std::count_if(plan.loops.begin(), plan.loops.end(),
                    [&](const LoopPlan::Loop& l) { return l.axis == v; }) != 1)
    return bad("the loop along the row must be one, innermost and not cut between threads.");
  const Node store = kernel.store(), index = store.src(0);
  const Address& at = kernel.address(index);
  const Node terms = stage.site->node.src(0);
  if (store.source_count() != 2 || at.coefficient(v) != 1 || at.divisor(v) != 0 ||
      !at.opaque.empty() || terms.dtype() != index.dtype())
    return bad("the stored row is not contiguous elements of the terms' type.");
  for (const Node& load : kernel.loads()) {
    if (load.src(0).src(0) == index.src(0)) return bad("the kernel reads what it writes.");
  }
  Renamed renamed(kernel, axis, v);
  for (const Node& n : ir::toposort(kernel.stored_value())) {
    if (n.op() == terms.op() && n != terms && renamed.same(terms, n)) stage.repeat = n;
  }
  if (!stage.repeat) return bad("the stored value does not take the terms again.");
  return stage;
}

}  // namespace ignis::codegen
