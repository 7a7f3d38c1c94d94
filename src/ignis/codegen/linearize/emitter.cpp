#include "ignis/codegen/linearize/emitter.h"

#include "ignis/codegen/linearize/blocks.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

namespace ignis::codegen {
namespace {

using ir::Graph;
using ir::Node;
using ir::Op;

/// The value of an axis at the point being emitted: sum of program scalars times factors, plus a constant; for the
/// axis in lanes, plus the lane number.
struct AxisValue {
  std::vector<std::pair<Node, int64_t>> terms;
  int64_t constant = 0;
  int lanes = 1;  ///< > 1: lane l stands for value + l
  int valid = 1;  ///< lanes that lie inside the axis; the others are masked
  bool bound = false;
  int64_t lo = 0, hi = 0;  ///< what the value lies between in the current segment
};

/// Tiles of one axis that have the same size.
struct Segment {
  int64_t begin = 0, tile = 1, count = 0;
};

class Emitter {
 public:
  Emitter(const Kernel& kernel, const LoopPlan& plan, FloatLevel level, Program& program)
      : k_(kernel), plan_(plan), level_(level), program_(program), b_(*program.graph) {
    values_.resize(kernel.axes().size());
    segments_.resize(kernel.axes().size());
    window_.resize(kernel.axes().size());
  }

  int64_t run();

 private:
  struct Window {  // of an axis inside its cache tile
    int segment = -1;
    Node first, count;  // tile index of the first tile, number of tiles
  };

  int64_t extent(int axis) const { return k_.axes()[static_cast<size_t>(axis)].extent; }
  AxisValue& at(int axis) { return values_[static_cast<size_t>(axis)]; }
  std::vector<Segment> make_segments(int axis) const;
  int64_t units_of(size_t level, size_t segment) const;

  void emit_level(size_t level, Block* block);
  void enter(size_t level, size_t segment, const Node& local, Block* block);
  void leaf(Block* block);
  void store_tile(Block* block);

  // Values.
  Node eval(const Node& n);
  Node eval_new(const Node& n);
  Node eval_load(const Node& n);
  Node eval_const(const Node& n);
  Node eval_integer(const Node& n);  // weak index arithmetic
  bool can_transpose(const Address& address, int axis) const;
  Node load_transposed(const Node& load, const Node& param, const Address& address, int axis);
  ir::Interval bounds_of(const Node& n);
  Node open_gate(const Node& gate);
  Node axis_scalar(int axis);
  Node axis_value(int axis);
  Node offset_of(const Address& address);
  Node splat(const Node& v, int lanes);
  std::vector<Node> operands(const Node& n, int& lanes);
  Node mask_of(int valid, int lanes);
  int vector_axis_of(const Address& address) const;
  bool is_contiguous(const Address& address, int axis) const;

  // Reductions.
  void emit_reduce(const ReduceSite& site);
  Node identity(const Node& reduce);
  Node combine(const Node& reduce, const Node& a, const Node& b);
  Op combine_op(const Node& reduce) const;
  Node horizontal(const Node& reduce, Node v);
  std::vector<uint32_t> key_of(const Node& n);
  Block* home_of_axes(AxisMask mask);

  const Kernel& k_;
  const LoopPlan& plan_;
  FloatLevel level_;
  Program& program_;
  BlockBuilder b_;
  std::vector<AxisValue> values_;
  std::vector<std::vector<Segment>> segments_;
  std::vector<Window> window_;
  std::vector<Node> thread_index_;              ///< one per thread loop
  int64_t tile_size_ = 1;                       ///< copies on the tile axis in the current segment
  int64_t v_left_ = 0;                          ///< elements of the vector axis in the current tile
  std::map<std::vector<uint32_t>, Node> memo_;  ///< by expression and the values of its axes
};

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

/// Sets the vector axis to its k-th vector within the tile.
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

/// What an integer expression lies between in the current segments.
ir::Interval Emitter::bounds_of(const Node& n) {
  switch (n.op()) {
    case Op::Const: return n.is_const() ? ir::Interval::point(n.const_int()) : ir::Interval{};
    case Op::Range: {
      const int axis = k_.axis_of(n);
      const AxisValue& value = at(axis);
      if (value.bound && value.terms.empty() && value.lanes == 1)
        return ir::Interval::point(value.constant);
      if (k_.axes()[static_cast<size_t>(axis)].is_reduce || !value.bound)
        return {0, extent(axis) - 1};
      return {value.lo, value.hi};
    }
    case Op::Cast: return is_int(n.src(0).dtype()) ? bounds_of(n.src(0)) : ir::Interval{};
    case Op::Add: return bounds_of(n.src(0)) + bounds_of(n.src(1));
    case Op::Sub: return bounds_of(n.src(0)) - bounds_of(n.src(1));
    case Op::Mul: return bounds_of(n.src(0)) * bounds_of(n.src(1));
    default: return {};
  }
}

/// The clauses of a gate that the current segments do not prove; null when none is left.
Node Emitter::open_gate(const Node& gate) {
  if (gate.is(Op::And) && gate.dtype() == DType::Bool) {
    const Node a = open_gate(gate.src(0)), b = open_gate(gate.src(1));
    if (!a || !b) return a ? a : b;
    return k_.graph().alu(Op::And, {a, b});
  }
  if (gate.is(Op::Cmplt) && bounds_of(gate.src(0)).hi < bounds_of(gate.src(1)).lo) return {};
  return gate;
}

Node Emitter::splat(const Node& v, int lanes) {
  if (v.lanes() == lanes) return v;
  IGNIS_CHECK(v.lanes() == 1);
  return b_.value(Op::Broadcast, v.dtype(), {v}, {}, lanes);
}

Node Emitter::mask_of(int valid, int lanes) {
  std::vector<Node> bits;
  for (int l = 0; l < lanes; ++l) bits.push_back(b_.constant(DType::Bool, l < valid ? 1 : 0));
  return b_.value(Op::Stack, DType::Bool, bits, {}, lanes);
}

/// The axis in lanes that an address moves with, or -1.
int Emitter::vector_axis_of(const Address& address) const {
  for (size_t a = 0; a < values_.size(); ++a) {
    if (values_[a].lanes > 1 && address.depends_on(static_cast<int>(a))) return static_cast<int>(a);
  }
  return -1;
}

/// Lanes of `axis` read neighbouring elements.
bool Emitter::is_contiguous(const Address& address, int axis) const {
  const AxisValue& value = values_[static_cast<size_t>(axis)];
  if (address.coefficient(axis) != 1) return false;
  for (const auto& t : address.opaque) {
    if ((t.axes & axis_bit(axis)) != 0) return false;
  }
  const int64_t divisor = address.divisor(axis);
  if (divisor == 0) return true;
  // floor(axis / divisor) is one value for all lanes when vectors start at multiples of their length.
  if (divisor % value.lanes != 0 || value.constant % value.lanes != 0) return false;
  return std::all_of(value.terms.begin(), value.terms.end(),
                     [&](const auto& t) { return t.second % value.lanes == 0; });
}

Node Emitter::axis_scalar(int axis) {
  const AxisValue& value = at(axis);
  IGNIS_CHECK(value.bound) << "axis " << axis << " has no loop here";
  Node sum = b_.constant(DType::Int64, 0);
  for (const auto& [term, factor] : value.terms) sum = b_.add(sum, b_.mul(term, factor));
  return b_.add(sum, b_.constant(DType::Int64, value.constant));
}

Node Emitter::axis_value(int axis) {
  const AxisValue& value = at(axis);
  const Node scalar = axis_scalar(axis);
  if (value.lanes == 1) return scalar;
  std::vector<Node> steps;
  for (int l = 0; l < value.lanes; ++l) steps.push_back(b_.constant(DType::Int64, l));
  const Node iota = b_.value(Op::Stack, DType::Int64, steps, {}, value.lanes);
  return b_.value(Op::Add, DType::Int64, {splat(scalar, value.lanes), iota}, {}, value.lanes);
}

/// The scalar offset of an access; for an axis in lanes, that of lane 0.
Node Emitter::offset_of(const Address& address) {
  std::vector<std::pair<Node, int64_t>> terms;
  int64_t constant = address.constant;
  const auto add_term = [&](const Node& n, int64_t c) {
    if (n.is_const()) {
      constant += n.const_int() * c;
      return;
    }
    for (auto& [have, factor] : terms) {
      if (have == n) {
        factor += c;
        return;
      }
    }
    terms.emplace_back(n, c);
  };
  for (const Address::Linear& t : address.linear) {
    const AxisValue& value = at(t.axis);
    IGNIS_CHECK(value.bound) << "axis " << t.axis << " has no loop here";
    constant += t.coefficient * value.constant;
    for (const auto& [n, factor] : value.terms) add_term(n, factor * t.coefficient);
  }
  for (const Address::Div& t : address.divs) {
    const AxisValue& value = at(t.axis);
    // When every term is a multiple of the divisor the division is exact for each of them; when the divisor is a
    // multiple of one single term's factor and the constant stays below that factor, only that term counts.
    const bool exact = std::all_of(value.terms.begin(), value.terms.end(),
                                   [&](const auto& term) { return term.second % t.divisor == 0; });
    if (exact) {
      for (const auto& [n, factor] : value.terms) add_term(n, factor / t.divisor * t.coefficient);
      constant += value.constant / t.divisor * t.coefficient;
    } else if (value.terms.size() == 1 && t.divisor % value.terms[0].second == 0 &&
               value.constant < value.terms[0].second) {
      add_term(b_.div(value.terms[0].first, t.divisor / value.terms[0].second), t.coefficient);
    } else {
      add_term(b_.div(axis_scalar(t.axis), t.divisor), t.coefficient);
    }
  }
  for (const Address::Opaque& t : address.opaque)
    add_term(eval_integer(t.expression), t.coefficient);
  // Outer loops first, so that partial sums stay outside of inner loops; the constant last, where it folds into the
  // access itself.
  std::stable_sort(terms.begin(), terms.end(), [&](const auto& a, const auto& b) {
    return b_.home(a.first)->depth < b_.home(b.first)->depth;
  });
  Node sum = b_.constant(DType::Int64, 0);
  for (const auto& [n, c] : terms) {
    if (c != 0) sum = b_.add(sum, b_.mul(n, c));
  }
  return b_.add(sum, b_.constant(DType::Int64, constant));
}

/// Weak index expressions (parts of addresses that are not sums of ranges).
Node Emitter::eval_integer(const Node& n) {
  switch (n.op()) {
    case Op::Range: return axis_scalar(k_.axis_of(n));
    case Op::Const: return b_.constant(DType::Int64, n.const_int());
    case Op::Cast:
      if (n.src(0).dtype() == DType::WeakInt) return eval_integer(n.src(0));
      break;
    case Op::Add: return b_.add(eval_integer(n.src(0)), eval_integer(n.src(1)));
    case Op::Mul:
      if (n.src(1).is_const()) return b_.mul(eval_integer(n.src(0)), n.src(1).const_int());
      return b_.value(Op::Mul, DType::Int64, {eval_integer(n.src(0)), eval_integer(n.src(1))});
    case Op::Floordiv:
    case Op::Floormod: {
      const Node x = eval_integer(n.src(0)), y = eval_integer(n.src(1));
      const Node quotient = b_.value(Op::Cdiv, DType::Int64, {x, y});
      const Node remainder = b_.value(Op::Cmod, DType::Int64, {x, y});
      // Truncation rounds a negative quotient up: correct where the remainder's sign is not the divisor's.
      const Node zero = b_.constant(DType::Int64, 0);
      const Node sign =
          b_.value(Op::Cmplt, DType::Bool, {b_.value(Op::Xor, DType::Int64, {remainder, y}), zero});
      const Node off = b_.value(Op::And, DType::Bool,
                                {sign, b_.value(Op::Cmpne, DType::Bool, {remainder, zero})});
      if (n.is(Op::Floordiv)) {
        return b_.value(Op::Sub, DType::Int64, {quotient, b_.value(Op::Cast, DType::Int64, {off})});
      }
      return b_.value(Op::Add, DType::Int64,
                      {remainder, b_.value(Op::Where, DType::Int64, {off, y, zero})});
    }
    case Op::Max:
    case Op::Min:
      return b_.value(n.op(), DType::Int64, {eval_integer(n.src(0)), eval_integer(n.src(1))});
    case Op::Cmplt:
    case Op::Cmpne:
    case Op::Cmpeq:
      if (n.src(0).dtype() == DType::WeakInt || n.src(0).dtype() == DType::Int64) {
        return b_.value(n.op(), DType::Bool, {eval_integer(n.src(0)), eval_integer(n.src(1))});
      }
      break;
    case Op::And:
    case Op::Or:
    case Op::Xor:
      return b_.value(n.op(), n.dtype() == DType::Bool ? DType::Bool : DType::Int64,
                      {eval_integer(n.src(0)), eval_integer(n.src(1))});
    case Op::Where:
      return b_.value(Op::Where, DType::Int64,
                      {eval_integer(n.src(0)), eval_integer(n.src(1)), eval_integer(n.src(2))});
    default: break;
  }
  return eval(n);
}

std::vector<uint32_t> Emitter::key_of(const Node& n) {
  std::vector<uint32_t> key{n.id()};
  const AxisMask mask = k_.axes_of(n);
  for (size_t a = 0; a < values_.size(); ++a) {
    if ((mask & axis_bit(static_cast<int>(a))) == 0) continue;
    const AxisValue& value = values_[a];
    key.push_back(static_cast<uint32_t>(a));
    key.push_back(static_cast<uint32_t>(value.constant));
    key.push_back(static_cast<uint32_t>(value.constant >> 32));
    key.push_back(static_cast<uint32_t>(value.lanes * 4096 + value.valid));
    for (const auto& [t, factor] : value.terms) {
      key.push_back(t.id());
      key.push_back(static_cast<uint32_t>(factor));
    }
  }
  return key;
}

Node Emitter::eval(const Node& n) {
  if (n.is(Op::Const)) return eval_const(n);
  std::vector<uint32_t> key = key_of(n);
  auto it = memo_.find(key);
  if (it != memo_.end()) return it->second;
  if (n.is(Op::Reduce)) {
    for (const ReduceSite& site : k_.reduces()) {
      if (site.node == n) emit_reduce(site);
    }
    it = memo_.find(key);
    IGNIS_CHECK(it != memo_.end()) << "a reduction was not emitted for its tile";
    return it->second;
  }
  const Node result = eval_new(n);
  memo_[std::move(key)] = result;
  return result;
}

Node Emitter::eval_const(const Node& n) {
  if (n.is_invalid()) return b_.constant(strong(n.dtype()), 0);
  if (n.dtype() == DType::WeakInt) return b_.constant(DType::Int64, n.const_int());
  if (n.dtype() == DType::WeakFloat) return b_.constant_float(DType::Float32, n.const_float());
  return b_.place(program_.graph->make(Op::Const, n.dtype(), std::span<const Node>{}, n.arg()));
}

std::vector<Node> Emitter::operands(const Node& n, int& lanes) {
  std::vector<Node> list;
  lanes = 1;
  for (int i = 0; i < n.source_count(); ++i) {
    list.push_back(eval(n.src(i)));
    lanes = std::max(lanes, list.back().lanes());
  }
  for (Node& v : list) v = splat(v, lanes);
  return list;
}

Node Emitter::eval_new(const Node& n) {
  if (n.is(Op::Load)) return eval_load(n);
  if (n.is(Op::Range)) return axis_value(k_.axis_of(n));
  if (n.is(Op::Cast) && n.src(0).is(Op::Range)) {
    const Node v = axis_value(k_.axis_of(n.src(0)));
    return n.dtype() == DType::Int64 ? v : b_.value(Op::Cast, n.dtype(), {v}, {}, v.lanes());
  }
  IGNIS_CHECK(ir::is_elementwise(n.op())) << "cannot emit " << to_string(n.op());
  int lanes = 1;
  const std::vector<Node> list = operands(n, lanes);
  const DType dtype = n.dtype() == DType::WeakInt ? DType::Int64 : n.dtype();
  if (n.is(Op::Cast) && list[0].dtype() == dtype) return list[0];
  return b_.value(n.op(), dtype, list, n.arg(), lanes);
}

Node Emitter::eval_load(const Node& n) {
  const Address& address = k_.address(n.src(0));
  const Node param = b_.place(program_.graph->import(n.src(0).src(0)));
  const int axis = vector_axis_of(address);
  Node gate, alternative;
  if (n.source_count() == 3) {
    const Node open = open_gate(n.src(2));
    if (open) gate = eval(open);
    alternative = eval(n.src(1));
  }
  const auto make_load = [&](const Node& index, int lanes, const Node& g, const Node& alt) {
    if (!g) return b_.value(Op::Load, n.dtype(), {index}, {}, lanes);
    return b_.value(Op::Load, n.dtype(), {index, splat(alt, lanes), g}, {}, lanes);
  };
  if (axis < 0 && (!gate || gate.lanes() == 1)) {
    const Node index = b_.value(Op::Index, n.src(0).dtype(), {param, offset_of(address)});
    return make_load(index, 1, gate, alternative);
  }
  int lane_axis = axis;
  for (size_t a = 0; lane_axis < 0 && a < values_.size(); ++a) {
    if (values_[a].lanes > 1) lane_axis = static_cast<int>(a);
  }
  const AxisValue value = at(lane_axis);
  if (!alternative) alternative = b_.constant(n.dtype(), 0);
  if (axis >= 0 && is_contiguous(address, axis)) {
    const Node index = b_.value(Op::Index, n.src(0).dtype(), {param, offset_of(address)});
    if (value.valid < value.lanes) {
      const Node mask = mask_of(value.valid, value.lanes);
      gate = gate
                 ? b_.value(Op::And, DType::Bool, {splat(gate, value.lanes), mask}, {}, value.lanes)
                 : mask;
    }
    return make_load(index, value.lanes, gate, alternative);
  }
  if (axis >= 0 && !gate && can_transpose(address, axis))
    return load_transposed(n, param, address, axis);
  // Lanes that are apart are read one by one.
  std::vector<Node> parts;
  for (int l = 0; l < value.lanes; ++l) {
    if (l >= value.valid) {
      parts.push_back(b_.constant(n.dtype(), 0));
      continue;
    }
    AxisValue& lane = at(lane_axis);
    lane.constant = value.constant + l;
    lane.lanes = lane.valid = 1;
    const Node index = b_.value(Op::Index, n.src(0).dtype(), {param, offset_of(address)});
    at(lane_axis) = value;
    const auto pick = [&](const Node& v) {
      return !v || v.lanes() == 1 ? v : b_.value(Op::Extract, v.dtype(), {v}, ir::Arg{{l}, {}});
    };
    parts.push_back(make_load(index, 1, pick(gate), pick(alternative)));
  }
  return b_.value(Op::Stack, n.dtype(), parts, {}, value.lanes);
}

/// Lanes of the vector axis are apart, but copies of the tile axis are neighbours, and a whole square lies inside.
bool Emitter::can_transpose(const Address& address, int axis) const {
  if (!plan_.transposes || axis != plan_.vector_axis || tile_size_ != plan_.lanes) return false;
  const AxisValue& value = values_[static_cast<size_t>(axis)];
  return value.valid == value.lanes && address.coefficient(plan_.tile_axis) == 1 &&
         address.opaque.empty() && address.divisor(axis) == 0 &&
         address.divisor(plan_.tile_axis) == 0;
}

/// Reads the square around the current copy as rows along the tile axis and turns it; the vectors of all copies are
/// noted, this copy's is returned.
Node Emitter::load_transposed(const Node& load, const Node& param, const Address& address,
                              int axis) {
  const AxisValue v_now = at(axis), m_now = at(plan_.tile_axis);
  const int lanes = plan_.lanes;
  const Segment& whole = segments_[static_cast<size_t>(plan_.tile_axis)][0];
  AxisValue m_first = m_now;
  m_first.constant -= (m_now.constant - whole.begin) % whole.tile;
  std::vector<Node> rows;
  at(plan_.tile_axis) = m_first;
  for (int l = 0; l < lanes; ++l) {
    AxisValue& lane = at(axis);
    lane = v_now;
    lane.constant += l;
    lane.lanes = lane.valid = 1;
    const Node index = b_.value(Op::Index, load.src(0).dtype(), {param, offset_of(address)});
    rows.push_back(b_.value(Op::Load, load.dtype(), {index}, {}, lanes));
  }
  // Exchanging blocks of 1, 2, 4… rows and columns turns a square in log2(lanes) steps.
  for (int step = 1; step < lanes; step *= 2) {
    ir::Arg low, high;
    for (int l = 0; l < lanes; ++l) {
      const bool odd = (l & step) != 0;
      low.ints.push_back(odd ? lanes + l - step : l);
      high.ints.push_back(odd ? lanes + l : l + step);
    }
    std::vector<Node> next(rows.size());
    for (int r = 0; r < lanes; ++r) {
      if ((r & step) != 0) continue;
      const auto a = static_cast<size_t>(r), b = static_cast<size_t>(r + step);
      next[a] = b_.value(Op::Shuffle, load.dtype(), {rows[a], rows[b]}, low, lanes);
      next[b] = b_.value(Op::Shuffle, load.dtype(), {rows[a], rows[b]}, high, lanes);
    }
    rows = std::move(next);
  }
  at(axis) = v_now;
  for (int j = 0; j < lanes; ++j) {
    at(plan_.tile_axis) = m_first;
    at(plan_.tile_axis).constant += j;
    memo_[key_of(load)] = rows[static_cast<size_t>(j)];
  }
  at(plan_.tile_axis) = m_now;
  return memo_.at(key_of(load));
}

void Emitter::store_tile(Block* block) {
  const Node store = k_.store();
  const Address& address = k_.address(store.src(0));
  const Node param = b_.place(program_.graph->import(store.src(0).src(0)));
  const DType dtype = store.src(0).dtype();
  Node v = eval(store.src(1));
  Node gate = store.source_count() == 3 ? eval(store.src(2)) : Node();
  const int axis = vector_axis_of(address);
  const auto write = [&](const Node& index, const Node& what, const Node& g) {
    if (g) {
      b_.append(block, program_.graph->make(Op::Store, DType::Void, {index, what, g}));
    } else {
      b_.append(block, program_.graph->make(Op::Store, DType::Void, {index, what}));
    }
  };
  if (axis < 0) {
    if (v.lanes() > 1) v = b_.value(Op::Extract, v.dtype(), {v}, ir::Arg{{0}, {}});
    write(b_.value(Op::Index, dtype, {param, offset_of(address)}), v, gate);
    return;
  }
  const AxisValue value = at(axis);
  v = splat(v, value.lanes);
  if (is_contiguous(address, axis)) {
    if (value.valid < value.lanes) {
      const Node mask = mask_of(value.valid, value.lanes);
      gate = gate
                 ? b_.value(Op::And, DType::Bool, {splat(gate, value.lanes), mask}, {}, value.lanes)
                 : mask;
    }
    write(b_.value(Op::Index, dtype, {param, offset_of(address)}), v, gate);
    return;
  }
  for (int l = 0; l < value.valid; ++l) {
    AxisValue& lane = at(axis);
    lane.constant = value.constant + l;
    lane.lanes = lane.valid = 1;
    const Node index = b_.value(Op::Index, dtype, {param, offset_of(address)});
    at(axis) = value;
    const Node g = !gate || gate.lanes() == 1
                       ? gate
                       : b_.value(Op::Extract, DType::Bool, {gate}, ir::Arg{{l}, {}});
    write(index, b_.value(Op::Extract, v.dtype(), {v}, ir::Arg{{l}, {}}), g);
  }
}

Op Emitter::combine_op(const Node& reduce) const {
  const Op op = reduce.reduce_op();
  if (reduce.dtype() != DType::Bool) return op;
  return op == Op::Max || op == Op::Add ? Op::Or : Op::And;
}

Node Emitter::identity(const Node& reduce) {
  const DType d = reduce.dtype();
  switch (reduce.reduce_op()) {
    case Op::Add: return b_.constant(d, 0);
    case Op::Mul: return b_.constant(d, 1);
    case Op::Max:
      if (is_float(d)) return b_.constant_float(d, -std::numeric_limits<double>::infinity());
      return b_.constant(d, int_min(d));
    case Op::Min:
      if (is_float(d)) return b_.constant_float(d, std::numeric_limits<double>::infinity());
      return b_.constant(d, int_max(d));
    default: IGNIS_CHECK(false) << to_string(reduce.reduce_op()) << " is no reduction";
  }
  return {};
}

Node Emitter::combine(const Node& reduce, const Node& a, const Node& b) {
  return b_.value(combine_op(reduce), reduce.dtype(), {a, b}, {}, a.lanes());
}

/// Folds the lanes of a vector by halves.
Node Emitter::horizontal(const Node& reduce, Node v) {
  for (int width = v.lanes() / 2; width >= 1; width /= 2) {
    ir::Arg lanes;
    for (int l = 0; l < v.lanes(); ++l) lanes.ints.push_back(l < width ? l + width : l);
    const Node moved = b_.value(Op::Shuffle, v.dtype(), {v, v}, lanes, v.lanes());
    v = combine(reduce, v, moved);
  }
  return b_.value(Op::Extract, v.dtype(), {v}, ir::Arg{{0}, {}});
}

Block* Emitter::home_of_axes(AxisMask mask) {
  Block* block = b_.top();
  for (size_t a = 0; a < values_.size(); ++a) {
    if ((mask & axis_bit(static_cast<int>(a))) == 0) continue;
    for (const auto& [term, factor] : values_[a].terms)
      block = BlockBuilder::deeper(block, b_.home(term));
  }
  return block;
}

/// Emits the loops of a reduction for every copy and vector of the current tile that it depends on, with all their
/// accumulators live at once, and notes the results.
void Emitter::emit_reduce(const ReduceSite& site) {
  const int v = plan_.vector_axis, m = plan_.tile_axis;
  const bool in_lanes = v >= 0 && (site.outer & axis_bit(v)) != 0 && v_left_ > 0;
  const bool in_copies = m >= 0 && (site.outer & axis_bit(m)) != 0;
  const AxisValue v_now = v >= 0 ? at(v) : AxisValue{};
  const AxisValue m_now = m >= 0 ? at(m) : AxisValue{};
  // The tile's base values: those of copy 0, vector 0. Inside the leaf the current copy has moved the constants.
  AxisValue v_base = v_now, m_base = m_now;
  int vectors = 1;
  int64_t copies = 1;
  if (in_lanes) {
    const Segment* segment = nullptr;
    for (const Segment& s : segments_[static_cast<size_t>(v)]) {
      if (s.tile == v_left_ && v_now.constant >= s.begin &&
          v_now.constant < s.begin + s.tile * s.count)
        segment = &s;
    }
    IGNIS_CHECK(segment != nullptr);
    v_base.constant = v_now.constant - (v_now.constant - segment->begin) % segment->tile;
    vectors = static_cast<int>((v_left_ + plan_.lanes - 1) / plan_.lanes);
  }
  if (in_copies) {
    const Segment* segment = nullptr;
    for (const Segment& s : segments_[static_cast<size_t>(m)]) {
      if (s.tile == tile_size_ && m_now.constant >= s.begin &&
          m_now.constant < s.begin + s.tile * s.count)
        segment = &s;
    }
    IGNIS_CHECK(segment != nullptr);
    m_base.constant = m_now.constant - (m_now.constant - segment->begin) % segment->tile;
    copies = tile_size_;
  }
  const LoopPlan::SplitReduce* split = nullptr;
  if (!in_lanes && !site.axes.empty()) split = plan_.split_of(site.axes.back());

  struct Instance {
    int64_t copy;
    int vector;  // of the output axis, or partial accumulator of a split reduce
    Node reg, now;
  };
  std::vector<Instance> instances;
  const int lanes = in_lanes ? plan_.lanes : split != nullptr ? split->lanes : 1;
  const int across = in_lanes ? vectors : split != nullptr ? split->partials : 1;
  for (int64_t j = 0; j < copies; ++j) {
    for (int k = 0; k < across; ++k) instances.push_back({j, k, {}, {}});
  }
  const auto select = [&](const Instance& i) {
    if (in_copies) {
      at(m) = m_base;
      at(m).constant = m_base.constant + i.copy;
    }
    if (in_lanes) {
      set_vector(at(v), v_base, i.vector, plan_.lanes, v_left_);
    } else if (v >= 0) {
      at(v) =
          AxisValue{};  // not in lanes while a reduction that does not depend on the axis is evaluated
    }
  };
  const auto restore = [&] {
    if (v >= 0) at(v) = v_now;
    if (m >= 0) at(m) = m_now;
  };

  Block* home = home_of_axes(site.outer);
  const Node start = splat(identity(site.node), lanes);
  for (Instance& i : instances) {
    i.reg = b_.declare_reg(home, site.node.dtype(), lanes);
    b_.write_reg(home, i.reg, start);
  }

  // Loops that stay, from outside in; fully unrolled axes become copies of the body.
  struct Step {
    int axis;
    int64_t factor, count;  // copies per iteration, iterations
  };
  std::vector<Step> steps;
  for (const int a : site.axes) {
    int64_t factor = plan_.unroll_of(a);
    factor = std::min(factor, extent(a));
    if (split != nullptr && a == split->axis) factor = int64_t{split->lanes} * split->partials;
    steps.push_back({a, factor, extent(a) / factor});
  }
  const auto accumulate = [&](Instance& i, Block* body) {
    const Node value = site.node.src(0);
    if (!i.now) i.now = b_.read_reg(body, i.reg);
    if (site.is_product && level_ != FloatLevel::Strict) {
      i.now = b_.value(Op::Mulacc, site.node.dtype(),
                       {splat(eval(value.src(0)), lanes), splat(eval(value.src(1)), lanes), i.now},
                       {}, lanes);
    } else {
      i.now = combine(site.node, i.now, splat(eval(value), lanes));
    }
  };
  const auto flush = [&](Block* body) {
    for (Instance& i : instances) {
      if (i.now) b_.write_reg(body, i.reg, i.now);
      i.now = Node();
    }
  };
  std::function<void(size_t, Block*)> nest = [&](size_t depth, Block* body) {
    if (depth == steps.size()) {  // one point of the reduce space, every instance
      for (Instance& i : instances) {
        select(i);
        accumulate(i, body);
        restore();
      }
      return;
    }
    const Step& step = steps[depth];
    AxisValue& value = at(step.axis);
    if (split != nullptr && step.axis == split->axis) {
      const auto vector_at = [&](Instance& i, int64_t first, int valid, Block* where,
                                 const Node& term, int64_t scale) {
        value = AxisValue{};
        value.bound = true;
        value.constant = first;
        if (term) value.terms.emplace_back(term, scale);
        value.lanes = split->lanes;
        value.valid = valid;
        select(i);
        if (valid == split->lanes) {
          accumulate(i, where);
        } else {
          // Lanes beyond the end take the identity, whatever the value would be there.
          if (!i.now) i.now = b_.read_reg(where, i.reg);
          const Node v2 = splat(eval(site.node.src(0)), lanes);
          const Node kept =
              b_.value(Op::Where, site.node.dtype(), {mask_of(valid, lanes), v2, start}, {}, lanes);
          i.now = combine(site.node, i.now, kept);
        }
        restore();
      };
      if (step.count > 0) {
        if (step.count > 1) flush(body);
        Block* loop = step.count > 1 ? b_.open(body, b_.constant(DType::Int64, step.count)) : body;
        for (Instance& i : instances) {
          vector_at(i, int64_t{i.vector} * split->lanes, split->lanes, loop,
                    step.count > 1 ? loop->range : Node(), step.factor);
        }
        if (loop != body) {
          flush(loop);
          b_.close(loop);
        }
      }
      int64_t first = step.count * step.factor;
      for (Instance& i : instances) {
        const int64_t from = first + int64_t{i.vector} * split->lanes;
        if (from >= extent(step.axis)) continue;
        vector_at(i, from,
                  static_cast<int>(std::min<int64_t>(split->lanes, extent(step.axis) - from)), body,
                  {}, 0);
      }
      value = AxisValue{};
      return;
    }
    const auto copies_from = [&](int64_t count, int64_t first, const Node& term, Block* where) {
      for (int64_t c = 0; c < count; ++c) {
        at(step.axis) = AxisValue{};
        at(step.axis).bound = true;
        at(step.axis).constant = first + c;
        if (term) at(step.axis).terms.emplace_back(term, step.factor);
        nest(depth + 1, where);
      }
    };
    if (step.count == 1) {
      copies_from(step.factor, 0, {}, body);
    } else if (step.count > 1) {
      flush(body);  // an outer body may have pending values before this loop
      Block* loop = b_.open(body, b_.constant(DType::Int64, step.count));
      copies_from(step.factor, 0, loop->range, loop);
      flush(loop);
      b_.close(loop);
    }
    const int64_t done = step.count * step.factor;
    if (done < extent(step.axis)) copies_from(extent(step.axis) - done, done, {}, body);
    at(step.axis) = AxisValue{};
  };
  nest(0, home);
  flush(home);
  for (int64_t j = 0; j < copies; ++j) {
    if (split != nullptr) {
      Node total;
      for (Instance& i : instances) {
        if (i.copy != j) continue;
        const Node part = b_.read_reg(home, i.reg);
        total = total ? combine(site.node, total, part) : part;
      }
      select(Instance{j, 0, {}, {}});
      memo_[key_of(site.node)] = lanes > 1 ? horizontal(site.node, total) : total;
      restore();
      continue;
    }
    for (Instance& i : instances) {
      if (i.copy != j) continue;
      select(i);
      memo_[key_of(site.node)] = b_.read_reg(home, i.reg);
      restore();
    }
  }
}

}  // namespace

Result<Program> emit_program(const Kernel& kernel, const LoopPlan& plan, FloatLevel level,
                             int64_t* parallel_units) {
  Program program;
  program.graph = std::make_shared<Graph>();
  for (const Node& n : ir::toposort(kernel.sink())) {
    if (n.is(Op::Param))
      program.buffer_count = std::max(program.buffer_count, static_cast<int>(n.arg().ints[0]) + 1);
  }
  Emitter emitter(kernel, plan, level, program);
  *parallel_units = emitter.run();
  return program;
}

}  // namespace ignis::codegen
