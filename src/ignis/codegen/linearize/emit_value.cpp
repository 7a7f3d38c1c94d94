#include "ignis/codegen/linearize/emitter_state.h"

#include <algorithm>

namespace ignis::codegen {

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
    // Division by a power of two and its remainder.
    case Op::Shr: {
      const ir::Interval x = bounds_of(n.src(0));
      if (!x.is_bounded() || x.lo < 0 || !n.src(1).is_const()) return {};
      return {x.lo >> n.src(1).const_int(), x.hi >> n.src(1).const_int()};
    }
    case Op::And: {
      const ir::Interval x = bounds_of(n.src(0));
      if (!n.src(1).is_const() || n.src(1).const_int() < 0) return {};
      if (x.is_point()) return ir::Interval::point(x.lo & n.src(1).const_int());
      return {0, n.src(1).const_int()};
    }
    default: return {};
  }
}

/// What the current segments and the copy of the tile say of a condition on ranges.
std::optional<bool> Emitter::decide(const Node& condition) {
  if (condition.dtype() != DType::Bool) return std::nullopt;
  if (condition.is_const()) return condition.const_int() != 0;
  if (condition.is(Op::And) || condition.is(Op::Or)) {
    const bool settles = condition.is(Op::Or);  // what one side alone may decide
    const auto a = decide(condition.src(0));
    if (a == settles) return settles;
    const auto b = decide(condition.src(1));
    if (b == settles) return settles;
    return a && b ? std::optional<bool>(!settles) : std::nullopt;
  }
  if (!condition.is(Op::Cmplt) || !is_int(condition.src(0).dtype())) return std::nullopt;
  const ir::Interval a = bounds_of(condition.src(0)), b = bounds_of(condition.src(1));
  if (a.hi < b.lo) return true;
  if (a.lo >= b.hi) return false;
  return std::nullopt;
}

/// The clauses of a gate that the current segments do not prove; null when none is left.
Node Emitter::open_gate(const Node& gate) {
  if (gate.is(Op::And) && gate.dtype() == DType::Bool) {
    const Node a = open_gate(gate.src(0)), b = open_gate(gate.src(1));
    if (!a || !b) return a ? a : b;
    return k_.graph().alu(Op::And, {a, b});
  }
  return decide(gate) == true ? Node() : gate;
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
Node Emitter::offset_of(const Node& index) {
  const Address& address = k_.address(index);
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
  if (anchor_) add_term(anchor_, 1);
  const auto shift = shifts_.find(index.src(0).arg().ints[0]);
  if (shift != shifts_.end()) add_term(shift->second, 1);
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
  const Node result = n == stage_.repeat ? load_staged() : eval_new(n);
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
  // A choice that a segment has made: what is not padding.
  if (n.is(Op::Where) && !open_gate(n.src(0))) return eval(n.src(1));
  IGNIS_CHECK(ir::is_elementwise(n.op())) << "cannot emit " << to_string(n.op());
  if (n.is(Op::Where)) {
    if (const auto known = decide(n.src(0))) return eval(n.src(*known ? 1 : 2));
  }
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
    alternative = eval(n.src(1));
    if (decide(n.src(2)) == false) return alternative;
    const Node open = open_gate(n.src(2));
    if (open) gate = eval(open);
  }
  const auto make_load = [&](const Node& index, int lanes, const Node& g, const Node& alt) {
    if (!g) return b_.value(Op::Load, n.dtype(), {index}, {}, lanes);
    return b_.value(Op::Load, n.dtype(), {index, splat(alt, lanes), g}, {}, lanes);
  };
  if (axis < 0 && (!gate || gate.lanes() == 1)) {
    const Node index = b_.value(Op::Index, n.src(0).dtype(), {param, offset_of(n.src(0))});
    return make_load(index, 1, gate, alternative);
  }
  int lane_axis = axis;
  for (size_t a = 0; lane_axis < 0 && a < values_.size(); ++a) {
    if (values_[a].lanes > 1) lane_axis = static_cast<int>(a);
  }
  const AxisValue value = at(lane_axis);
  if (!alternative) alternative = b_.constant(n.dtype(), 0);
  if (axis >= 0 && is_contiguous(address, axis)) {
    const Node index = b_.value(Op::Index, n.src(0).dtype(), {param, offset_of(n.src(0))});
    // A panel is stored whole: its lanes beyond the axis may be read.
    if (value.valid < value.lanes && address.divisor(axis) == 0) {
      const Node mask = mask_of(value.valid, value.lanes);
      gate = gate
                 ? b_.value(Op::And, DType::Bool, {splat(gate, value.lanes), mask}, {}, value.lanes)
                 : mask;
    }
    return make_load(index, value.lanes, gate, alternative);
  }
  if (axis >= 0 && !gate && can_transpose(address, axis)) return load_transposed(n, param, axis);
  if (axis >= 0 && is_every_second(address, axis)) {
    if (value.valid < value.lanes) {
      const Node mask = mask_of(value.valid, value.lanes);
      gate = gate
                 ? b_.value(Op::And, DType::Bool, {splat(gate, value.lanes), mask}, {}, value.lanes)
                 : mask;
    }
    return load_every_second(n, param, gate ? splat(gate, value.lanes) : gate, alternative);
  }
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
    const Node index = b_.value(Op::Index, n.src(0).dtype(), {param, offset_of(n.src(0))});
    at(lane_axis) = value;
    const auto pick = [&](const Node& v) {
      return !v || v.lanes() == 1 ? v : b_.value(Op::Extract, v.dtype(), {v}, ir::Arg{{l}, {}});
    };
    parts.push_back(make_load(index, 1, pick(gate), pick(alternative)));
  }
  return b_.value(Op::Stack, n.dtype(), parts, {}, value.lanes);
}

/// Lanes of `axis` read every second element.
bool Emitter::is_every_second(const Address& address, int axis) const {
  return address.coefficient(axis) == 2 && address.divisor(axis) == 0 &&
         values_[static_cast<size_t>(axis)].lanes >= 4 &&
         std::none_of(address.opaque.begin(), address.opaque.end(),
                      [&](const auto& t) { return (t.axes & axis_bit(axis)) != 0; });
}

/// Reads two vectors, one that begins with the first lane's element and one that ends with the last lane's, so that
/// nothing beyond them is read, and takes every second element. Elements between are not read where there is a gate.
Node Emitter::load_every_second(const Node& load, const Node& param, const Node& gate,
                                const Node& alternative) {
  const int lanes = at(vector_axis_of(k_.address(load.src(0)))).lanes;
  const DType dtype = load.dtype();
  const Node offset = offset_of(load.src(0));
  Node halves[2];
  ir::Arg taken;
  for (int h = 0; h < 2; ++h) {
    const int64_t first = h * (lanes - 1);  // of the vector, from the first lane's element
    const Node index =
        b_.value(Op::Index, dtype, {param, b_.add(offset, b_.constant(DType::Int64, first))});
    if (!gate) {
      halves[h] = b_.value(Op::Load, dtype, {index}, {}, lanes);
      continue;
    }
    ir::Arg from;  // the lane of the gate for each element; false for those between
    for (int64_t e = first; e < first + lanes; ++e) from.ints.push_back(e % 2 == 0 ? e / 2 : lanes);
    const Node mask = b_.value(Op::Shuffle, DType::Bool, {gate, mask_of(0, lanes)}, from, lanes);
    const Node zero = splat(b_.constant(dtype, 0), lanes);
    halves[h] = b_.value(Op::Load, dtype, {index, zero, mask}, {}, lanes);
  }
  for (int64_t l = 0; l < lanes; ++l) taken.ints.push_back(2 * l < lanes ? 2 * l : 2 * l + 1);
  const Node result = b_.value(Op::Shuffle, dtype, {halves[0], halves[1]}, taken, lanes);
  if (!gate || alternative.is_const_value(0)) return result;
  return b_.value(Op::Where, dtype, {gate, result, splat(alternative, lanes)}, {}, lanes);
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
Node Emitter::load_transposed(const Node& load, const Node& param, int axis) {
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
    const Node index = b_.value(Op::Index, load.src(0).dtype(), {param, offset_of(load.src(0))});
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

/// STAGE: the terms at the current vector, read back from the stored row.
Node Emitter::load_staged() {
  eval(stage_.site->node);  // writes the row, before the loop that stands here
  const Node at_row = k_.store().src(0);
  const AxisValue& value = at(plan_.vector_axis);
  const Node param = b_.place(program_.graph->import(at_row.src(0)));
  const Node index = b_.value(Op::Index, at_row.dtype(), {param, offset_of(at_row)});
  if (value.valid == value.lanes)
    return b_.value(Op::Load, at_row.dtype(), {index}, {}, value.lanes);
  const Node zero = splat(b_.constant(at_row.dtype(), 0), value.lanes);
  return b_.value(Op::Load, at_row.dtype(), {index, zero, mask_of(value.valid, value.lanes)}, {},
                  value.lanes);
}

/// STAGE: writes the terms at the current vector of the reduced axis into the stored row.
void Emitter::store_staged(int axis, const Node& terms, Block* block) {
  const Node at_row = k_.store().src(0);
  const AxisValue value = at(axis), saved = at(plan_.vector_axis);
  const Node param = b_.place(program_.graph->import(at_row.src(0)));
  at(plan_.vector_axis) = value;
  const Node index = b_.value(Op::Index, at_row.dtype(), {param, offset_of(at_row)});
  at(plan_.vector_axis) = saved;
  std::vector<Node> sources{index, terms};
  if (value.valid < value.lanes) sources.push_back(mask_of(value.valid, value.lanes));
  b_.append(block, program_.graph->make(Op::Store, DType::Void, sources));
}

void Emitter::store_tile(Block* block) {
  const Node store = k_.store();
  const Address& address = k_.address(store.src(0));
  const Node param = b_.place(program_.graph->import(store.src(0).src(0)));
  const DType dtype = store.src(0).dtype();
  Node gate;
  if (store.source_count() == 3) {
    if (decide(store.src(2)) == false) return;
    const Node open = open_gate(store.src(2));
    if (open) gate = eval(open);
  }
  Node v = eval(store.src(1));
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
    write(b_.value(Op::Index, dtype, {param, offset_of(store.src(0))}), v, gate);
    return;
  }
  const AxisValue value = at(axis);
  v = splat(v, value.lanes);
  if (is_contiguous(address, axis)) {
    // A panel is stored whole: its lanes beyond the axis may be read.
    if (value.valid < value.lanes && address.divisor(axis) == 0) {
      const Node mask = mask_of(value.valid, value.lanes);
      gate = gate
                 ? b_.value(Op::And, DType::Bool, {splat(gate, value.lanes), mask}, {}, value.lanes)
                 : mask;
    }
    write(b_.value(Op::Index, dtype, {param, offset_of(store.src(0))}), v, gate);
    return;
  }
  for (int l = 0; l < value.valid; ++l) {
    AxisValue& lane = at(axis);
    lane.constant = value.constant + l;
    lane.lanes = lane.valid = 1;
    const Node index = b_.value(Op::Index, dtype, {param, offset_of(store.src(0))});
    at(axis) = value;
    const Node g = !gate || gate.lanes() == 1
                       ? gate
                       : b_.value(Op::Extract, DType::Bool, {gate}, ir::Arg{{l}, {}});
    write(index, b_.value(Op::Extract, v.dtype(), {v}, ir::Arg{{l}, {}}), g);
  }
}

}  // namespace ignis::codegen
