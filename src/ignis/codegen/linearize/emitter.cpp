#include "ignis/codegen/linearize/emitter.h"

#include "ignis/codegen/linearize/emitter_state.h"

#include <algorithm>

namespace ignis::codegen {

std::vector<Segment> Emitter::make_segments(int axis) const {
  const int64_t n = extent(axis);
  if (axis == plan_.vector_axis) {
    const int64_t tile = int64_t{plan_.lanes} * plan_.vectors;
    std::vector<Segment> list;
    if (n / tile > 0) list.push_back({0, tile, n / tile});
    if (n % tile != 0) list.push_back({n / tile * tile, n % tile, 1});
    return list;
  }
  if (axis == plan_.tile_axis && plan_.transposes) {
    std::vector<Segment> list;
    if (n / plan_.tile > 0) list.push_back({0, plan_.tile, n / plan_.tile});
    if (n % plan_.tile != 0) list.push_back({n / plan_.tile * plan_.tile, n % plan_.tile, 1});
    return list;
  }
  if (axis == plan_.tile_axis) {
    // Two neighbouring sizes cover the axis without a short rest.
    const int64_t count = (n + plan_.tile - 1) / plan_.tile;
    const int64_t size = (n + count - 1) / count;
    const int64_t large = n - count * (size - 1);
    std::vector<Segment> list{{0, size, large}};
    if (count > large) list.push_back({large * size, size - 1, count - large});
    return list;
  }
  for (const LoopPlan::Segment& s : plan_.segments) {
    if (s.axis != axis) continue;
    std::vector<Segment> list;
    int64_t begin = 0;
    for (const int64_t cut : s.cuts) {
      list.push_back({begin, 1, cut - begin});
      begin = cut;
    }
    list.push_back({begin, 1, n - begin});
    return list;
  }
  return {{0, 1, n}};
}

/// Iterations of a loop within one segment of its axis.
int64_t Emitter::units_of(size_t level, size_t segment) const {
  const LoopPlan::Loop& loop = plan_.loops[level];
  const int64_t count = segments_[static_cast<size_t>(loop.axis)][segment].count;
  return loop.chunk != 0 ? (count + loop.chunk - 1) / loop.chunk : count;
}

int64_t Emitter::run() {
  if (plan_.staged_axis >= 0) {
    auto stage = find_stage(k_, plan_, plan_.staged_axis);
    IGNIS_CHECK(stage.has_value()) << "a plan is verified before it is emitted";
    stage_ = *std::move(stage);
  }
  for (size_t a = 0; a < k_.axes().size(); ++a) {
    if (!k_.axes()[a].is_reduce) segments_[a] = make_segments(static_cast<int>(a));
  }
  const Node part =
      b_.place(program_.graph->make(Op::Special, DType::Int64, std::span<const Node>{},
                                    ir::Arg{{0, (int64_t{1} << 31)}, "part"}));
  const Node parts =
      b_.place(program_.graph->make(Op::Special, DType::Int64, std::span<const Node>{},
                                    ir::Arg{{1, (int64_t{1} << 31)}, "parts"}));
  const auto thread_loops = static_cast<size_t>(plan_.thread_loops);
  int64_t total = 1;
  std::vector<int64_t> units(thread_loops, 0);
  for (size_t l = 0; l < thread_loops; ++l) {
    for (size_t s = 0; s < segments_[static_cast<size_t>(plan_.loops[l].axis)].size(); ++s)
      units[l] += units_of(l, s);
    total *= units[l];
  }
  // part of parts computes units [total * part / parts, total * (part + 1) / parts).
  const Node low = b_.value(Op::Cdiv, DType::Int64, {b_.mul(part, total), parts});
  const Node high = b_.value(Op::Cdiv, DType::Int64,
                             {b_.mul(b_.add(part, b_.constant(DType::Int64, 1)), total), parts});
  Block* block = b_.open(b_.top(), b_.value(Op::Sub, DType::Int64, {high, low}));
  Node rest = b_.add(low, block->range);
  thread_index_.resize(thread_loops);
  for (size_t l = thread_loops; l-- > 0;) {
    thread_index_[l] = l == 0 ? rest : b_.mod(rest, units[l]);
    if (l != 0) rest = b_.div(rest, units[l]);
  }
  emit_level(0, block);
  b_.close(block);
  program_.list = b_.take();
  return total;
}

void Emitter::emit_level(size_t level, Block* block) {
  if (level == plan_.loops.size()) {
    leaf(block);
    return;
  }
  const LoopPlan::Loop& loop = plan_.loops[level];
  const auto axis = static_cast<size_t>(loop.axis);
  const Window window = window_[axis];
  if (loop.chunk == 0 && window.segment >= 0) {  // inside its cache tile: a bound known at run time
    Block* inner = b_.open(block, window.count);
    enter(level, static_cast<size_t>(window.segment), b_.add(window.first, inner->range), inner);
    b_.close(inner);
    return;
  }
  const bool by_thread = level < thread_index_.size();
  int64_t start = 0;
  for (size_t s = 0; s < segments_[axis].size(); ++s) {
    const int64_t units = units_of(level, s);
    if (by_thread) {
      const Node index = thread_index_[level];
      Block* inner = block;
      if (segments_[axis].size() > 1) {
        // A branch is a loop of no or one iteration.
        Node inside =
            b_.value(Op::Cmplt, DType::Bool, {index, b_.constant(DType::Int64, start + units)});
        if (start > 0) {
          const Node after =
              b_.value(Op::Cmplt, DType::Bool, {b_.constant(DType::Int64, start - 1), index});
          inside = b_.value(Op::And, DType::Bool, {after, inside});
        }
        inner = b_.open(block, b_.value(Op::Cast, DType::Int64, {inside}));
      }
      Node local = b_.add(index, b_.constant(DType::Int64, -start));
      // The counter is 0 inside; adding it keeps loads that are only valid in this branch from moving out of it.
      if (inner != block) local = b_.add(local, inner->range);
      enter(level, s, local, inner);
      if (inner != block) b_.close(inner);
    } else if (units == 1) {
      enter(level, s, b_.constant(DType::Int64, 0), block);
    } else {
      Block* inner = b_.open(block, b_.constant(DType::Int64, units));
      enter(level, s, inner->range, inner);
      b_.close(inner);
    }
    start += units;
  }
}

void Emitter::enter(size_t level, size_t s, const Node& local, Block* block) {
  const LoopPlan::Loop& loop = plan_.loops[level];
  const auto axis = static_cast<size_t>(loop.axis);
  const Segment& segment = segments_[axis][s];
  if (loop.chunk != 0) {
    Window& window = window_[axis];
    window.segment = static_cast<int>(s);
    window.first = b_.mul(local, loop.chunk);
    const Node left = b_.add(b_.constant(DType::Int64, segment.count), b_.mul(window.first, -1));
    window.count = b_.min(left, b_.constant(DType::Int64, loop.chunk));
    emit_level(level + 1, block);
    window = Window{};
    return;
  }
  AxisValue& value = at(loop.axis);
  value = AxisValue{};
  value.bound = true;
  value.lo = segment.begin;
  value.hi = segment.begin + segment.tile * segment.count - 1;
  value.constant = segment.begin;
  if (local.is_const()) {
    value.constant += local.const_int() * segment.tile;
  } else {
    value.terms.emplace_back(local, segment.tile);
  }
  const int64_t saved_tile = tile_size_, saved_left = v_left_;
  if (loop.axis == plan_.tile_axis) tile_size_ = segment.tile;
  if (loop.axis == plan_.vector_axis) v_left_ = segment.tile;
  emit_level(level + 1, block);
  tile_size_ = saved_tile;
  v_left_ = saved_left;
  at(loop.axis) = AxisValue{};
}

void set_vector(AxisValue& value, const AxisValue& base, int k, int lanes, int64_t left) {
  value = base;
  value.constant = base.constant + int64_t{k} * lanes;
  value.lanes = lanes;
  value.valid = static_cast<int>(std::min<int64_t>(lanes, left - int64_t{k} * lanes));
}

void Emitter::leaf(Block* block) {
  const int v = plan_.vector_axis, m = plan_.tile_axis;
  const AxisValue v_base = v >= 0 ? at(v) : AxisValue{};
  const AxisValue m_base = m >= 0 ? at(m) : AxisValue{};
  const int vectors = v >= 0 ? static_cast<int>((v_left_ + plan_.lanes - 1) / plan_.lanes) : 1;
  const int64_t copies = m >= 0 ? tile_size_ : 1;
  for (int64_t j = 0; j < copies; ++j) {
    if (m >= 0) at(m).constant = m_base.constant + j;
    for (int k = 0; k < vectors; ++k) {
      if (v >= 0) set_vector(at(v), v_base, k, plan_.lanes, v_left_);
      store_tile(block);
      if (v >= 0) at(v) = v_base;
    }
    if (m >= 0) at(m) = m_base;
  }
}
Result<Program> emit_program(const Kernel& kernel, const LoopPlan& plan, FloatLevel level,
                             int64_t* parallel_units) {
  Program program;
  program.graph = std::make_shared<ir::Graph>();
  for (const Node& n : ir::toposort(kernel.sink())) {
    if (n.is(Op::Param))
      program.buffer_count = std::max(program.buffer_count, static_cast<int>(n.arg().ints[0]) + 1);
  }
  Emitter emitter(kernel, plan, level, program);
  *parallel_units = emitter.run();
  return program;
}

}  // namespace ignis::codegen
