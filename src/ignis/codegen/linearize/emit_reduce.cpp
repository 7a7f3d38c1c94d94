#include "ignis/codegen/linearize/emitter_state.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace ignis::codegen {

/// Emits the loops of one reduction for every copy and vector of the current tile that it depends on, with all their
/// accumulators live at once, and notes the results in the emitter's memo.
class ReduceEmitter {
 public:
  ReduceEmitter(Emitter& emitter, const ReduceSite& site)
      : e_(emitter),
        b_(emitter.b_),
        site_(site),
        v_(emitter.plan_.vector_axis),
        m_(emitter.plan_.tile_axis) {}

  void run();

 private:
  struct Instance {
    int64_t copy;  ///< on the tile axis
    int vector;    ///< of the output's vector axis, or partial accumulator of a split reduce
    Node reg,
        now;  ///< its register, and its value in the body under construction (null: in the register)
  };
  struct Point {  ///< one combination that the body under construction still owes
    size_t instance;
    std::vector<AxisValue> at;  ///< of the site's axes
  };
  struct Step {
    int axis;
    int64_t factor, count;  ///< copies in one iteration, iterations
  };

  void find_tile();
  AxisValue tile_base(int axis, int64_t tile) const;
  void plan_steps();
  void select(const Instance& i);
  void restore();
  Node identity();
  Op combine_op() const;
  Node combine(const Node& a, const Node& b);
  Node horizontal(Node v);
  void accumulate(Instance& i, Block* body);
  const Address* sliding_operand() const;
  void order_points();
  void drain(Block* body);
  void flush(Block* body);
  void nest(size_t depth, Block* body);
  void copies(size_t depth, int64_t count, int64_t first, const Node& term, Block* body);
  void split_axis(const Step& step, Block* body);
  void split_vector(Instance& i, int axis, int64_t first, int valid, const Node& term,
                    int64_t scale, Block* body);
  void note_results(Block* home);

  Emitter& e_;
  BlockBuilder& b_;
  const ReduceSite& site_;
  const int v_, m_;
  bool in_lanes_ = false,
       in_copies_ = false;  ///< the result differs along the vector axis, the tile axis
  AxisValue v_now_, m_now_, v_base_, m_base_;
  int64_t copy_count_ = 1;
  int lanes_ = 1;
  const LoopPlan::SplitReduce* split_ = nullptr;
  std::vector<Instance> instances_;
  std::vector<Step> steps_;
  std::vector<Point> points_;
  Node start_;
};

/// The innermost loop that one of the axes needs.
Block* Emitter::home_of_axes(AxisMask mask) {
  Block* block = b_.top();
  for (size_t a = 0; a < values_.size(); ++a) {
    if ((mask & axis_bit(static_cast<int>(a))) == 0) continue;
    for (const auto& [term, factor] : values_[a].terms)
      block = BlockBuilder::deeper(block, b_.home(term));
  }
  return block;
}

void Emitter::emit_reduce(const ReduceSite& site) { ReduceEmitter(*this, site).run(); }

void ReduceEmitter::run() {
  find_tile();
  plan_steps();
  Block* home = e_.home_of_axes(site_.outer);
  start_ = e_.splat(identity(), lanes_);
  for (Instance& i : instances_) {
    i.reg = b_.declare_reg(home, site_.node.dtype(), lanes_);
    b_.write_reg(home, i.reg, start_);
  }
  nest(0, home);
  flush(home);
  note_results(home);
}

/// The tile that the axis stands in: its first copy; within the leaf the current one has moved the value.
AxisValue ReduceEmitter::tile_base(int axis, int64_t tile) const {
  AxisValue value = e_.values_[static_cast<size_t>(axis)];
  for (const Segment& s : e_.segments_[static_cast<size_t>(axis)]) {
    const int64_t size = s.tile * s.count, now = value.constant;
    if (s.tile != tile || now < s.begin || now >= s.begin + size) continue;
    value.constant -= (now - s.begin) % s.tile;
    value.lo = s.begin;
    value.hi = s.begin + size - 1;
    return value;
  }
  IGNIS_CHECK(false) << "axis " << axis << " stands in no tile of " << tile;
  return value;
}

void ReduceEmitter::find_tile() {
  in_lanes_ = v_ >= 0 && (site_.outer & axis_bit(v_)) != 0 && e_.v_left_ > 0;
  in_copies_ = m_ >= 0 && (site_.outer & axis_bit(m_)) != 0;
  if (v_ >= 0) v_now_ = e_.at(v_);
  if (m_ >= 0) m_now_ = e_.at(m_);
  int across = 1;
  if (in_lanes_) {
    v_base_ = tile_base(v_, e_.v_left_);
    lanes_ = e_.plan_.lanes;
    across = static_cast<int>((e_.v_left_ + lanes_ - 1) / lanes_);
  }
  if (in_copies_) {
    m_base_ = tile_base(m_, e_.tile_size_);
    copy_count_ = e_.tile_size_;
  }
  if (!in_lanes_ && !site_.axes.empty()) split_ = e_.plan_.split_of(site_.axes.back());
  if (split_ != nullptr) {
    lanes_ = split_->lanes;
    across = split_->partials;
  }
  for (int64_t j = 0; j < copy_count_; ++j) {
    for (int k = 0; k < across; ++k) instances_.push_back({j, k, {}, {}});
  }
}

void ReduceEmitter::plan_steps() {
  for (const int a : site_.axes) {
    int64_t factor = std::min(e_.plan_.unroll_of(a), e_.extent(a));
    if (split_ != nullptr && a == split_->axis) factor = int64_t{split_->lanes} * split_->partials;
    steps_.push_back({a, factor, e_.extent(a) / factor});
  }
}

void ReduceEmitter::select(const Instance& i) {
  if (in_copies_) {
    e_.at(m_) = part_of_tile(m_base_, e_.tile_size_, i.copy, 1);
  }
  if (in_lanes_) {
    set_vector(e_.at(v_), v_base_, i.vector, lanes_, e_.v_left_);
  } else if (v_ >= 0) {
    e_.at(v_) =
        AxisValue{};  // not in lanes while a reduction that does not depend on the axis is evaluated
  }
}

void ReduceEmitter::restore() {
  if (v_ >= 0) e_.at(v_) = v_now_;
  if (m_ >= 0) e_.at(m_) = m_now_;
}

Op ReduceEmitter::combine_op() const {
  const Op op = site_.node.reduce_op();
  if (site_.node.dtype() != DType::Bool) return op;
  return op == Op::Max || op == Op::Add ? Op::Or : Op::And;
}

Node ReduceEmitter::identity() {
  const DType d = site_.node.dtype();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (site_.node.reduce_op()) {
    case Op::Add: return b_.constant(d, 0);
    case Op::Mul: return b_.constant(d, 1);
    case Op::Max:
      return is_float(d) ? b_.constant_float(d, -kInfinity) : b_.constant(d, int_min(d));
    case Op::Min: return is_float(d) ? b_.constant_float(d, kInfinity) : b_.constant(d, int_max(d));
    default: IGNIS_CHECK(false) << to_string(site_.node.reduce_op()) << " is no reduction";
  }
  return {};
}

/// `a` is the newer one: a maximum looks whether its first operand is NaN, which need not wait for the accumulator.
Node ReduceEmitter::combine(const Node& a, const Node& b) {
  return b_.value(combine_op(), site_.node.dtype(), {a, b}, {}, a.lanes());
}

/// Folds the lanes of a vector by halves.
Node ReduceEmitter::horizontal(Node v) {
  for (int width = v.lanes() / 2; width >= 1; width /= 2) {
    ir::Arg lanes;
    for (int l = 0; l < v.lanes(); ++l) lanes.ints.push_back(l < width ? l + width : l);
    v = combine(v, b_.value(Op::Shuffle, v.dtype(), {v, v}, lanes, v.lanes()));
  }
  return b_.value(Op::Extract, v.dtype(), {v}, ir::Arg{{0}, {}});
}

void ReduceEmitter::accumulate(Instance& i, Block* body) {
  const Node value = site_.node.src(0);
  if (!i.now) i.now = b_.read_reg(body, i.reg);
  if (site_.is_product && e_.level_ != FloatLevel::Strict && e_.stage_.site != &site_) {
    const Node a = e_.splat(e_.eval(value.src(0)), lanes_),
               b = e_.splat(e_.eval(value.src(1)), lanes_);
    i.now = b_.value(Op::Mulacc, site_.node.dtype(), {a, b, i.now}, {}, lanes_);
  } else {
    i.now = combine(e_.splat(e_.eval(value), lanes_), i.now);
  }
}

/// The operand that copies of the tile share: the window that slides along the tile axis. Null when there is none.
const Address* ReduceEmitter::sliding_operand() const {
  if (!in_copies_ || e_.level_ == FloatLevel::Strict) return nullptr;
  for (const Node& load : site_.loads) {
    const Address& address = e_.k_.address(load.src(0));
    if (address.coefficient(m_) == 0 || !address.opaque.empty()) continue;
    for (const int a : site_.axes) {
      if (address.coefficient(a) != 0) return &address;
    }
  }
  return nullptr;
}

/// SLIDE: work goes along the operand that copies share. An element is read, combined into every copy that wants it, and
/// its register is free again; in the order of the window, a whole row of the operand would have to stay in registers
/// beside the accumulators. An accumulator still takes its points in the window's order where addresses ascend with it.
void ReduceEmitter::order_points() {
  const Address* address = e_.plan_.slides ? sliding_operand() : nullptr;
  if (address == nullptr) return;
  std::vector<std::pair<int64_t, size_t>> order;  // place in the operand, point
  for (size_t p = 0; p < points_.size(); ++p) {
    const Instance& i = instances_[points_[p].instance];
    int64_t offset = address->coefficient(m_) * i.copy;
    if (in_lanes_) offset += address->coefficient(v_) * i.vector * lanes_;
    for (size_t a = 0; a < site_.axes.size(); ++a)
      offset += address->coefficient(site_.axes[a]) * points_[p].at[a].constant;
    order.emplace_back(offset, p);
  }
  std::sort(order.begin(), order.end());
  std::vector<Point> sorted;
  for (const auto& [offset, p] : order) sorted.push_back(std::move(points_[p]));
  points_ = std::move(sorted);
}

/// Emits the combinations that the body owes.
void ReduceEmitter::drain(Block* body) {
  order_points();
  std::vector<AxisValue> now;
  for (const int a : site_.axes) now.push_back(e_.at(a));
  for (const Point& p : points_) {
    for (size_t a = 0; a < site_.axes.size(); ++a) e_.at(site_.axes[a]) = p.at[a];
    select(instances_[p.instance]);
    accumulate(instances_[p.instance], body);
    restore();
  }
  for (size_t a = 0; a < site_.axes.size(); ++a) e_.at(site_.axes[a]) = now[a];
  points_.clear();
}

/// Writes back what the body has accumulated, before another loop opens or the body ends.
void ReduceEmitter::flush(Block* body) {
  drain(body);
  for (Instance& i : instances_) {
    if (i.now) b_.write_reg(body, i.reg, i.now);
    i.now = Node();
  }
}

/// The reduce axes from `depth` inwards.
void ReduceEmitter::nest(size_t depth, Block* body) {
  if (depth == steps_.size()) {  // one point of the reduce space, every instance
    std::vector<AxisValue> at;
    for (const int a : site_.axes) at.push_back(e_.at(a));
    for (size_t i = 0; i < instances_.size(); ++i) points_.push_back({i, at});
    return;
  }
  const Step step = steps_[depth];
  if (split_ != nullptr && step.axis == split_->axis) {
    split_axis(step, body);
  } else {
    if (step.count == 1) {
      copies(depth, step.factor, 0, {}, body);
    } else {
      flush(body);
      Block* loop = b_.open(body, b_.constant(DType::Int64, step.count));
      copies(depth, step.factor, 0, loop->range, loop);
      flush(loop);
      b_.close(loop);
    }
    const int64_t done = step.count * step.factor;
    copies(depth, e_.extent(step.axis) - done, done, {}, body);
  }
  e_.at(step.axis) = AxisValue{};
}

/// `count` neighbouring values of the axis of `depth`, one after the other.
void ReduceEmitter::copies(size_t depth, int64_t count, int64_t first, const Node& term,
                           Block* body) {
  const Step step = steps_[depth];
  for (int64_t c = 0; c < count; ++c) {
    AxisValue& value = e_.at(step.axis);
    value = AxisValue{};
    value.bound = true;
    value.constant = first + c;
    if (term) value.terms.emplace_back(term, step.factor);
    nest(depth + 1, body);
  }
}

/// The split axis: whole groups of vectors in a loop, then what is left, the last vector masked.
void ReduceEmitter::split_axis(const Step& step, Block* body) {
  if (step.count > 0) {
    const bool loops = step.count > 1;
    if (loops) flush(body);
    Block* loop = loops ? b_.open(body, b_.constant(DType::Int64, step.count)) : body;
    for (Instance& i : instances_) {
      split_vector(i, step.axis, int64_t{i.vector} * lanes_, lanes_, loops ? loop->range : Node(),
                   step.factor, loop);
    }
    if (loops) {
      flush(loop);
      b_.close(loop);
    }
  }
  for (Instance& i : instances_) {
    const int64_t from = step.count * step.factor + int64_t{i.vector} * lanes_;
    const int64_t left = e_.extent(step.axis) - from;
    if (left > 0)
      split_vector(i, step.axis, from, static_cast<int>(std::min<int64_t>(lanes_, left)), {}, 0,
                   body);
  }
}

void ReduceEmitter::split_vector(Instance& i, int axis, int64_t first, int valid, const Node& term,
                                 int64_t scale, Block* body) {
  AxisValue& value = e_.at(axis);
  value = AxisValue{};
  value.bound = true;
  value.constant = first;
  if (term) value.terms.emplace_back(term, scale);
  value.lanes = lanes_;
  value.valid = valid;
  select(i);
  if (valid == lanes_) {
    accumulate(i, body);
  } else {
    // Lanes beyond the end take the identity, whatever the value would be there.
    if (!i.now) i.now = b_.read_reg(body, i.reg);
    const Node v = e_.splat(e_.eval(site_.node.src(0)), lanes_);
    const Node mask = e_.mask_of(valid, lanes_);
    i.now = combine(b_.value(Op::Where, site_.node.dtype(), {mask, v, start_}, {}, lanes_), i.now);
  }
  if (e_.stage_.site == &site_)
    e_.store_staged(axis, e_.splat(e_.eval(site_.node.src(0)), lanes_), body);
  restore();
}

void ReduceEmitter::note_results(Block* home) {
  for (int64_t j = 0; j < copy_count_; ++j) {
    std::vector<Node> partials;  // accumulators of a split reduce
    for (Instance& i : instances_) {
      if (i.copy != j) continue;
      const Node part = b_.read_reg(home, i.reg);
      if (split_ != nullptr) {
        partials.push_back(part);
        continue;
      }
      select(i);
      e_.memo_[e_.key_of(site_.node)] = part;
      restore();
    }
    if (split_ == nullptr) continue;
    for (; partials.size() > 1; partials.resize((partials.size() + 1) / 2)) {
      for (size_t p = 0; p < partials.size() / 2; ++p)
        partials[p] = combine(partials[p], partials[partials.size() - 1 - p]);
    }
    select({j, 0, {}, {}});
    e_.memo_[e_.key_of(site_.node)] = lanes_ > 1 ? horizontal(partials[0]) : partials[0];
    restore();
  }
}

}  // namespace ignis::codegen
