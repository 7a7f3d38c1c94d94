#include "ignis/codegen/optimize/loop_plan.h"

#include "ignis/base/math.h"
#include "ignis/codegen/optimize/stage.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace ignis::codegen {

std::vector<std::pair<int64_t, int64_t>> LoopPlan::parts(int axis, int64_t extent) const {
  std::vector<std::pair<int64_t, int64_t>> list;
  int64_t begin = 0;
  for (const Segment& s : segments) {
    if (s.axis != axis) continue;
    for (const int64_t cut : s.cuts) {
      list.emplace_back(begin, cut);
      begin = cut;
    }
  }
  list.emplace_back(begin, extent);
  return list;
}

int64_t LoopPlan::tiles(int axis, int64_t extent) const {
  const int64_t size = axis == vector_axis ? int64_t{lanes} * vectors
                       : axis == tile_axis ? tile
                                           : 1;
  int64_t count = 0;
  for (const auto& [begin, end] : parts(axis, extent)) count += (end - begin + size - 1) / size;
  return count;
}

TileCover cover(int64_t extent, int64_t tile) {
  TileCover c;
  c.count = ceil_div(extent, tile);
  c.size = ceil_div(extent, c.count);
  c.large = extent - c.count * (c.size - 1);
  return c;
}

bool BandAxes::holds(int axis) const {
  return axis == rows || std::find(outer.begin(), outer.end(), axis) != outer.end();
}

int64_t LoopPlan::unroll_of(int axis) const {
  for (const Unroll& u : unrolls) {
    if (u.axis == axis) return u.factor;
  }
  return 1;
}

const LoopPlan::SplitReduce* LoopPlan::split_of(int axis) const {
  for (const SplitReduce& s : splits) {
    if (s.axis == axis) return &s;
  }
  return nullptr;
}

namespace {

std::string action(const char* name, const std::vector<int64_t>& args) {
  std::string text = std::string(name) + "(";
  bool first = true;
  for (const int64_t a : args) {
    if (!first) text += ",";
    text += std::to_string(a);
    first = false;
  }
  return text + ")";
}

}  // namespace

Result<ParsedAction> parse_action(const std::string& text) {
  const Error bad(ErrorCode::InvalidArgument,
                  "'" + text + "' is not a scheduling action of the form NAME(n,…).");
  const size_t open = text.find('(');
  if (open == std::string::npos || text.back() != ')') return bad;
  ParsedAction parsed;
  parsed.name = text.substr(0, open);
  const char* at = text.data() + open + 1;
  const char* end = text.data() + text.size() - 1;
  while (at < end) {
    int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (next != end && *next != ',')) return bad;
    parsed.args.push_back(value);
    at = next == end ? end : next + 1;
  }
  return parsed;
}

std::vector<std::string> LoopPlan::to_actions() const {
  std::vector<std::string> list;
  if (vector_axis >= 0) list.push_back(action("VECTOR", {vector_axis, lanes, vectors}));
  if (tile_axis >= 0 && !transposes) list.push_back(action("TILE_REG", {tile_axis, tile}));
  if (transposes) list.push_back(action("TRANSPOSE", {tile_axis}));
  for (const Segment& s : segments) {
    std::vector<int64_t> args{s.axis};
    args.insert(args.end(), s.cuts.begin(), s.cuts.end());
    list.push_back(action("SEGMENT", args));
  }
  std::string order = "REORDER(";
  bool any = false;
  for (const Loop& l : loops) {
    if (l.chunk != 0) continue;
    if (any) order += ",";
    order += std::to_string(l.axis);
    any = true;
  }
  if (any) list.push_back(order + ")");
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].chunk != 0) {
      list.push_back(
          action("TILE_CACHE", {loops[i].axis, loops[i].chunk, static_cast<int64_t>(i)}));
    }
  }
  if (!thread_axes.empty())
    list.push_back(action("THREAD", std::vector<int64_t>(thread_axes.begin(), thread_axes.end())));
  for (const SplitReduce& s : splits)
    list.push_back(action("SPLIT_REDUCE", {s.axis, s.lanes, s.partials}));
  for (const Unroll& u : unrolls) list.push_back(action("UNROLL", {u.axis, u.factor}));
  if (staged_axis >= 0) list.push_back(action("STAGE", {staged_axis}));
  if (slides) list.push_back(action("SLIDE", {tile_axis}));
  return list;
}

LoopPlan default_plan(const Kernel& kernel) {
  LoopPlan plan;
  for (size_t i = 0; i < kernel.axes().size(); ++i) {
    if (!kernel.axes()[i].is_reduce) plan.loops.push_back({static_cast<int>(i), 0});
  }
  return plan;
}

Result<LoopPlan> apply_actions(const Kernel& kernel, const std::vector<std::string>& actions) {
  LoopPlan plan = default_plan(kernel);
  for (const std::string& text : actions) {
    IGNIS_TRY_ASSIGN(const ParsedAction a, parse_action(text));
    const auto arg = [&](size_t i) { return i < a.args.size() ? a.args[i] : int64_t{-1}; };
    if (a.name == "VECTOR" && a.args.size() == 3) {
      plan.vector_axis = static_cast<int>(arg(0));
      plan.lanes = static_cast<int>(arg(1));
      plan.vectors = static_cast<int>(arg(2));
    } else if (a.name == "TILE_REG" && a.args.size() == 2) {
      plan.tile_axis = static_cast<int>(arg(0));
      plan.tile = arg(1);
    } else if (a.name == "TRANSPOSE" && a.args.size() == 1) {
      plan.tile_axis = static_cast<int>(arg(0));
      plan.tile = plan.lanes;
      plan.transposes = true;
    } else if (a.name == "SEGMENT" && a.args.size() >= 2) {
      plan.segments.push_back(
          {static_cast<int>(arg(0)), std::vector<int64_t>(a.args.begin() + 1, a.args.end())});
    } else if (a.name == "REORDER") {
      std::erase_if(plan.loops, [](const LoopPlan::Loop& l) { return l.chunk == 0; });
      for (const int64_t axis : a.args) plan.loops.push_back({static_cast<int>(axis), 0});
    } else if (a.name == "TILE_CACHE" && a.args.size() == 3 && arg(1) > 0 && arg(2) >= 0 &&
               arg(2) <= static_cast<int64_t>(plan.loops.size())) {
      plan.loops.insert(plan.loops.begin() + arg(2), {static_cast<int>(arg(0)), arg(1)});
    } else if (a.name == "THREAD" && !a.args.empty()) {
      plan.thread_axes.assign(a.args.begin(), a.args.end());
    } else if (a.name == "SPLIT_REDUCE" && a.args.size() == 3) {
      plan.splits.push_back(
          {static_cast<int>(arg(0)), static_cast<int>(arg(1)), static_cast<int>(arg(2))});
    } else if (a.name == "UNROLL" && a.args.size() == 2) {
      plan.unrolls.push_back({static_cast<int>(arg(0)), arg(1)});
    } else if (a.name == "STAGE" && a.args.size() == 1) {
      plan.staged_axis = static_cast<int>(arg(0));
    } else if (a.name == "SLIDE" && a.args.size() == 1 && plan.tile_axis >= 0 &&
               arg(0) == plan.tile_axis) {
      plan.slides = true;
    } else {
      return Error(ErrorCode::InvalidArgument, "'" + text + "' is not a known scheduling action.");
    }
  }
  IGNIS_TRY(verify_plan(kernel, plan));
  return plan;
}

Status verify_plan(const Kernel& kernel, const LoopPlan& plan) {
  const auto bad = [](const std::string& what) {
    return Error(ErrorCode::InvalidArgument, what, "IllegalAction");
  };
  const auto& axes = kernel.axes();
  const auto is_output = [&](int a) {
    return a >= 0 && a < static_cast<int>(axes.size()) && !axes[static_cast<size_t>(a)].is_reduce;
  };
  const auto is_reduce = [&](int a) {
    return a >= 0 && a < static_cast<int>(axes.size()) && axes[static_cast<size_t>(a)].is_reduce;
  };
  std::set<int> own;
  for (size_t i = 0; i < plan.loops.size(); ++i) {
    const LoopPlan::Loop& l = plan.loops[i];
    if (!is_output(l.axis))
      return bad("A loop stands over axis " + std::to_string(l.axis) +
                 ", which is no output axis.");
    if (l.chunk < 0)
      return bad("A cache tile of axis " + std::to_string(l.axis) + " has a negative size.");
    if (l.chunk == 0) {
      if (!own.insert(l.axis).second)
        return bad("Axis " + std::to_string(l.axis) + " has two loops.");
      continue;
    }
    const bool later =
        std::any_of(plan.loops.begin() + static_cast<std::ptrdiff_t>(i) + 1, plan.loops.end(),
                    [&](const LoopPlan::Loop& m) { return m.axis == l.axis; });
    const bool twice =
        std::count_if(plan.loops.begin(), plan.loops.end(), [&](const LoopPlan::Loop& m) {
          return m.axis == l.axis && m.chunk != 0;
        }) > 1;
    if (!later || own.count(l.axis) != 0 || twice) {
      return bad("The cache tile of axis " + std::to_string(l.axis) +
                 " must be one and stand outside its loop.");
    }
  }
  for (size_t a = 0; a < axes.size(); ++a) {
    if (!axes[a].is_reduce && own.count(static_cast<int>(a)) == 0) {
      return bad("Output axis " + std::to_string(a) + " has no loop.");
    }
  }
  if (plan.vector_axis >= 0 &&
      (!is_output(plan.vector_axis) || plan.lanes < 1 || plan.vectors < 1)) {
    return bad("VECTOR needs an output axis and positive sizes.");
  }
  if (plan.tile_axis >= 0 &&
      (!is_output(plan.tile_axis) || plan.tile < 1 || plan.tile_axis == plan.vector_axis)) {
    return bad("TILE_REG needs an output axis other than the vector's and a positive size.");
  }
  std::set<int> segmented;
  for (const LoopPlan::Segment& s : plan.segments) {
    const bool turns = plan.transposes && (s.axis == plan.vector_axis || s.axis == plan.tile_axis);
    const int64_t unit = s.axis == plan.vector_axis ? std::max(plan.lanes, 1) : 1;
    bool legal = is_output(s.axis) && !turns && segmented.insert(s.axis).second;
    int64_t last = 0;
    for (const int64_t cut : s.cuts) {
      legal =
          legal && cut > last && cut < axes[static_cast<size_t>(s.axis)].extent && cut % unit == 0;
      last = cut;
    }
    if (!legal) {
      return bad("SEGMENT of axis " + std::to_string(s.axis) +
                 " needs an output axis that is not turned and ascending cuts inside it, between "
                 "vectors.");
    }
  }
  if (plan.transposes && (plan.vector_axis < 0 || plan.vectors != 1 || plan.tile != plan.lanes)) {
    return bad("TRANSPOSE needs one vector and a tile of as many copies as it has lanes.");
  }
  std::set<int> cut;
  for (const int a : plan.thread_axes) {
    if (!is_output(a) || !cut.insert(a).second)
      return bad("THREAD of axis " + std::to_string(a) + " needs output axes, each once.");
  }
  for (const LoopPlan::SplitReduce& s : plan.splits) {
    if (!is_reduce(s.axis) || s.lanes < 1 || s.partials < 1)
      return bad("SPLIT_REDUCE needs a reduce axis.");
    for (const ReduceSite& site : kernel.reduces()) {
      const bool has = std::find(site.axes.begin(), site.axes.end(), s.axis) != site.axes.end();
      if (has && plan.vector_axis >= 0 && (site.outer & axis_bit(plan.vector_axis)) != 0) {
        return bad("SPLIT_REDUCE of a reduce that is already in lanes of the output.");
      }
      if (has && site.axes.back() != s.axis)
        return bad("SPLIT_REDUCE needs the innermost reduce axis.");
    }
  }
  for (const LoopPlan::Unroll& u : plan.unrolls) {
    if (!is_reduce(u.axis) || u.factor < 1 || u.factor > axes[static_cast<size_t>(u.axis)].extent) {
      return bad("UNROLL(" + std::to_string(u.axis) + "," + std::to_string(u.factor) +
                 ") does not fit its axis.");
    }
  }
  if (plan.staged_axis >= 0) IGNIS_TRY(find_stage(kernel, plan, plan.staged_axis));
  return Status::ok();
}

}  // namespace ignis::codegen
