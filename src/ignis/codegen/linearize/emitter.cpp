#include "ignis/codegen/linearize/emitter.h"

#include "ignis/codegen/linearize/emitter_state.h"

#include <algorithm>

namespace ignis::codegen {

std::vector<Segment> Emitter::make_segments(int axis) const {
  std::vector<Segment> list;
  for (const auto& [begin, end] : plan_.parts(axis, extent(axis))) {
    const int64_t n = end - begin;
    if (axis == plan_.vector_axis || (axis == plan_.tile_axis && plan_.transposes)) {
      const int64_t tile =
          axis == plan_.vector_axis ? int64_t{plan_.lanes} * plan_.vectors : plan_.tile;
      if (n / tile > 0) list.push_back({begin, tile, n / tile});
      if (n % tile != 0) list.push_back({begin + n / tile * tile, n % tile, 1});
    } else if (axis == plan_.tile_axis) {
      const TileCover c = cover(n, plan_.tile);
      list.push_back({begin, c.size, c.large});
      if (c.count > c.large)
        list.push_back({begin + c.large * c.size, c.size - 1, c.count - c.large});
    } else {
      list.push_back({begin, 1, n});
    }
  }
  return list;
}

int64_t Emitter::tiles_of(int axis) const {
  int64_t count = 0;
  for (const Segment& s : segments_[static_cast<size_t>(axis)]) count += s.count;
  return count;
}

Emitter::Emitter(const Kernel& kernel, const LoopPlan& plan, FloatLevel level, Program& program,
                 BlockBuilder& builder)
    : k_(kernel), plan_(plan), level_(level), program_(program), b_(builder) {
  values_.resize(kernel.axes().size());
  segments_.resize(kernel.axes().size());
  window_.resize(kernel.axes().size());
  if (plan_.staged_axis >= 0) {
    auto stage = find_stage(k_, plan_, plan_.staged_axis);
    IGNIS_CHECK(stage.has_value()) << "a plan is verified before it is emitted";
    stage_ = *std::move(stage);
  }
  for (size_t a = 0; a < k_.axes().size(); ++a) {
    if (!k_.axes()[a].is_reduce) segments_[a] = make_segments(static_cast<int>(a));
  }
}

void Emitter::run_band(const BandAxes& axes, const Band& band, Block* block) {
  shifts_ = band.shifts;
  Block* inner = b_.open(block, b_.constant(DType::Int64, 1));
  anchor_ = inner->range;
  Window& rows = window_[static_cast<size_t>(axes.rows)];
  if (axes.rows == plan_.tile_axis) rows = {Window::Part, 0, band.first_tile, band.end_tile};
  else rows = {Window::CacheTile, 0, band.first, band.end};
  for (size_t i = 0; i < axes.outer.size(); ++i) {
    window_[static_cast<size_t>(axes.outer[i])] = {
        Window::OneTile, 0, band.outer[i], b_.add(band.outer[i], b_.constant(DType::Int64, 1))};
  }
  emit_level(0, inner);
  b_.close(inner);
}

/// THREAD: the tiles of the thread axes counted together are cut between the parts. Whole turns of the last axis are
/// iterations of a loop here; within one, the loops over that axis go over what is the part's.
int64_t Emitter::run_parts() {
  const Node part =
      b_.place(program_.graph->make(Op::Special, DType::Int64, std::span<const Node>{},
                                    ir::Arg{{0, (int64_t{1} << 31)}, "part"}));
  const Node parts =
      b_.place(program_.graph->make(Op::Special, DType::Int64, std::span<const Node>{},
                                    ir::Arg{{1, (int64_t{1} << 31)}, "parts"}));
  int64_t total = 1;
  for (const int a : plan_.thread_axes) total *= tiles_of(a);
  // part of parts computes units [total * part / parts, total * (part + 1) / parts).
  const Node low = b_.value(Op::Cdiv, DType::Int64, {b_.mul(part, total), parts});
  const Node high = b_.value(Op::Cdiv, DType::Int64,
                             {b_.mul(b_.add(part, b_.constant(DType::Int64, 1)), total), parts});
  if (total == 1) {  // nothing to cut: the last part does it
    Block* block = b_.open(b_.top(), b_.value(Op::Sub, DType::Int64, {high, low}));
    emit_level(0, block);
    b_.close(block);
    return total;
  }
  const int last = plan_.thread_axes.back();
  const int64_t turn = tiles_of(last);
  if (turn == total) {
    window_[static_cast<size_t>(last)] = {Window::Part, 0, low, high};
    emit_level(0, b_.top());
    return total;
  }
  const Node begin = b_.div(low, turn);
  const Node end = b_.div(b_.add(high, b_.constant(DType::Int64, turn - 1)), turn);
  Block* block = b_.open(b_.top(), b_.value(Op::Sub, DType::Int64, {end, begin}));
  Node rest = b_.add(begin, block->range);
  const Node before = b_.mul(rest, -turn);  // units of the turns before this one, negative
  const Node zero = b_.constant(DType::Int64, 0);
  window_[static_cast<size_t>(last)] = {
      Window::Part, 0, b_.max(b_.add(low, before), zero),
      b_.min(b_.add(high, before), b_.constant(DType::Int64, turn))};
  for (size_t i = plan_.thread_axes.size() - 1; i-- > 0;) {
    const int axis = plan_.thread_axes[i];
    const Node index = i == 0 ? rest : b_.mod(rest, tiles_of(axis));
    if (i != 0) rest = b_.div(rest, tiles_of(axis));
    window_[static_cast<size_t>(axis)] = {Window::OneTile, 0, index,
                                          b_.add(index, b_.constant(DType::Int64, 1))};
  }
  emit_level(0, block);
  b_.close(block);
  return total;
}

void Emitter::emit_level(size_t level, Block* block) {
  if (level == plan_.loops.size()) {
    leaf(block);
    return;
  }
  const auto axis = static_cast<size_t>(plan_.loops[level].axis);
  if (window_[axis].kind == Window::CacheTile) {
    const Window window = window_[axis];
    enter_range(level, window.segment, window.first, window.end, block);
    return;
  }
  int64_t start = 0;
  for (size_t s = 0; s < segments_[axis].size(); ++s) {
    emit_segment(level, s, start, block);
    start += segments_[axis][s].count;
  }
}

/// A loop, or the loop over its cache tiles, within one segment of the axis, before which `start` tiles stand.
void Emitter::emit_segment(size_t level, size_t s, int64_t start, Block* block) {
  const auto axis = static_cast<size_t>(plan_.loops[level].axis);
  const int64_t count = segments_[axis][s].count;
  const Window window = window_[axis];
  if (window.kind == Window::OneTile && segments_[axis].size() == 1) {
    if (plan_.loops[level].chunk == 0) enter(level, s, window.first, block);
    else emit_level(level + 1, block);
    return;
  }
  Node first = b_.constant(DType::Int64, 0), end = b_.constant(DType::Int64, count);
  if (window.kind != Window::None) {
    first = window.first;
    end = window.end;
    if (segments_[axis].size() > 1) {  // what of the window lies in this segment
      const Node before = b_.constant(DType::Int64, -start);
      first = b_.max(b_.add(first, before), b_.constant(DType::Int64, 0));
      end = b_.max(b_.min(b_.add(end, before), b_.constant(DType::Int64, count)), first);
    }
  }
  const int64_t chunk = plan_.loops[level].chunk;
  if (chunk == 0) {
    enter_range(level, s, first, end, block);
    return;
  }
  const Node left = b_.add(end, b_.mul(first, -1));
  const Node chunks = b_.div(b_.add(left, b_.constant(DType::Int64, chunk - 1)), chunk);
  const bool loops = !chunks.is_const_value(1);
  Block* inner = loops ? b_.open(block, chunks) : block;
  if (loops) first = b_.add(first, b_.mul(inner->range, chunk));
  window_[axis] = {Window::CacheTile, s, first,
                   b_.min(b_.add(first, b_.constant(DType::Int64, chunk)), end)};
  emit_level(level + 1, inner);
  window_[axis] = window;
  if (loops) b_.close(inner);
}

/// The axis's own loop over the tiles [first, end) of a segment.
void Emitter::enter_range(size_t level, size_t s, const Node& first, const Node& end,
                          Block* block) {
  const Node count = b_.add(end, b_.mul(first, -1));
  if (count.is_const_value(1)) {
    enter(level, s, first, block);
    return;
  }
  // The counter is part of every value inside, so that what is only valid there does not move out of it.
  Block* inner = b_.open(block, count);
  enter(level, s, b_.add(first, inner->range), inner);
  b_.close(inner);
}

void Emitter::enter(size_t level, size_t s, const Node& local, Block* block) {
  const LoopPlan::Loop& loop = plan_.loops[level];
  const Segment& segment = segments_[static_cast<size_t>(loop.axis)][s];
  AxisValue& value = at(loop.axis);
  value = AxisValue{};
  value.bound = true;
  value.lo = segment.begin;
  value.hi = segment.begin + segment.tile * segment.count - 1;
  value.constant = segment.begin;
  if (local.is_const()) {
    value.constant += local.const_int() * segment.tile;
  } else {
    // The one tile of a segment stands at its begin: any factor is right, and this keeps whole vectors aligned.
    const bool is_tail = loop.axis == plan_.vector_axis && segment.count == 1;
    value.terms.emplace_back(local, is_tail ? int64_t{plan_.lanes} * plan_.vectors : segment.tile);
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
  const int64_t first = int64_t{k} * lanes;
  const int64_t valid = std::min<int64_t>(lanes, left - first);
  value = part_of_tile(base, left, first, valid);
  value.lanes = lanes;
  value.valid = static_cast<int>(valid);
}

AxisValue part_of_tile(const AxisValue& tile, int64_t size, int64_t first, int64_t count) {
  AxisValue part = tile;
  part.constant += first;
  part.lo += first;
  part.hi -= size - first - count;
  return part;
}

void Emitter::leaf(Block* block) {
  const int v = plan_.vector_axis, m = plan_.tile_axis;
  const AxisValue v_base = v >= 0 ? at(v) : AxisValue{};
  const AxisValue m_base = m >= 0 ? at(m) : AxisValue{};
  const int vectors = v >= 0 ? static_cast<int>((v_left_ + plan_.lanes - 1) / plan_.lanes) : 1;
  const int64_t copies = m >= 0 ? tile_size_ : 1;
  for (int64_t j = 0; j < copies; ++j) {
    if (m >= 0) at(m) = part_of_tile(m_base, tile_size_, j, 1);
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
  BlockBuilder builder(*program.graph);
  *parallel_units = Emitter(kernel, plan, level, program, builder).run_parts();
  program.list = builder.take();
  return program;
}

}  // namespace ignis::codegen
