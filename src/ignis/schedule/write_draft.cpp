#include "ignis/ir/simplify.h"
#include "ignis/schedule/draft.h"
#include "ignis/schedule/split_plan.h"

#include <algorithm>

namespace ignis::schedule {

using ir::Graph;
using ir::Node;
using ir::Op;

namespace {

/// `value` where `valid`, else 0; a load that is gated by the same condition is that already.
Node padded(Graph& g, const Node& value, const Node& valid) {
  if (!valid) return value;
  if (value.is(Op::Load) && value.source_count() == 3 && value.src(1).is_const_value(0)) {
    // The load's gate includes all of `valid`?
    const std::vector<Node> have = clauses(value.src(2));
    bool all = true;
    for (const Node& c : clauses(valid))
      all &= std::find(have.begin(), have.end(), c) != have.end();
    if (all) return value;
  }
  return g.alu(Op::Where, {valid, value, g.constant(value.dtype(), 0)});
}

/// where(g, load(i, 0, g), c) reads c outside: the load's own alternative.
Node fold_gated_load(Graph& g, const Node& condition, const Node& load, const Node& otherwise) {
  if (!load.is(Op::Load) || load.source_count() != 3 || !otherwise.is_const()) return {};
  std::vector<Node> a = clauses(condition), b = clauses(load.src(2));
  const auto by_id = [](const Node& x, const Node& y) { return x.id() < y.id(); };
  std::sort(a.begin(), a.end(), by_id);
  std::sort(b.begin(), b.end(), by_id);
  if (a != b) return {};
  Node alternative = otherwise;
  if (alternative.dtype() != load.dtype()) {
    if (!is_weak(alternative.dtype())) return {};
    alternative = is_float(alternative.dtype())
                      ? g.constant_float(load.dtype(), alternative.const_float())
                      : g.constant(load.dtype(), alternative.const_int());
  }
  return g.make(Op::Load, load.dtype(), {load.src(0), alternative, load.src(2)});
}

/// One kernel's expressions over its slots.
class Writer {
 public:
  Writer(SplitPlan& plan, int kernel) : plan_(plan), g_(plan.graph), kernel_(kernel) {}

  Result<Draft> write();

 private:
  Node build(const Node& node, const Indices& indices, bool is_root = false);
  Node load(int buffer, DType dtype, const Indices& indices);
  int slot_of(int buffer);

  SplitPlan& plan_;
  Graph& g_;
  int kernel_ = 0;
  std::map<ReadingKey, Node> built_;
  std::vector<int> slots_;
  std::vector<Node> layers_;
  std::string failure_;
};

int Writer::slot_of(int buffer) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i] == buffer) return static_cast<int>(i);
  }
  slots_.push_back(buffer);
  return static_cast<int>(slots_.size()) - 1;
}

Node Writer::load(int buffer, DType dtype, const Indices& indices) {
  const Buffer& b = plan_.schedule.buffers[static_cast<size_t>(buffer)];
  ir::ParamArg arg;
  arg.slot = slot_of(buffer);
  arg.shape = b.shape;
  std::vector<Node> sources{g_.param(b.dtype, arg)};
  sources.insert(sources.end(), indices.at.begin(), indices.at.end());
  const Node index = g_.make(Op::Index, b.dtype, sources);
  if (!indices.valid) return g_.make(Op::Load, dtype, {index});
  return g_.make(Op::Load, dtype, {index, g_.constant(dtype, 0), indices.valid});
}

Node Writer::build(const Node& node, const Indices& indices, bool is_root) {
  if (node.is(Op::Const)) {
    return g_.make(Op::Const, node.dtype(), std::span<const Node>{}, node.arg());
  }
  if (element_count(node.shape()) == 0) return g_.constant(node.dtype(), 0);
  if (node.is(Op::Buffer) || node.is(Op::Param))
    return load(plan_.buffer_of_leaf(node), node.dtype(), indices);
  const auto realised = plan_.realised.find(node);
  if (realised != plan_.realised.end() && !is_root)
    return load(realised->second, strong(node.dtype()), indices);

  const ReadingKey key = key_of(node, kernel_, indices);
  const auto done = built_.find(key);
  if (done != built_.end()) return done->second;
  Node result;
  if (node.is(Op::ReduceAxes)) {
    const std::vector<Node> ranges = plan_.reduce_ranges(node, kernel_, indices);
    const Node value = build(node.src(0), with_reduced(node, indices, ranges));
    std::vector<Node> sources{value};
    for (const Node& r : ranges) {
      if (r.is(Op::Range)) sources.push_back(r);
    }
    layers_.push_back(node);
    result = sources.size() == 1
                 ? value
                 : g_.make(Op::Reduce, node.dtype(), sources, ir::Arg{{node.arg().ints[0]}, {}});
  } else if (node.is(Op::Gather)) {
    Indices lookup = indices;
    const size_t rank = node.src(1).shape().size();
    lookup.at.resize(rank);
    Indices data;
    data.valid = indices.valid;
    for (int i = 1; i < node.source_count(); ++i) {
      const int64_t extent = node.src(0).shape()[static_cast<size_t>(i - 1)];
      const Node at = g_.cast(build(node.src(i), lookup), DType::Int64);
      // Indices come from the model's data: outside the axis nothing is read and the value is 0.
      const Node inside =
          g_.alu(Op::And, {g_.alu(Op::Cmplt, {g_.constant(DType::Int64, -1), at}),
                           g_.alu(Op::Cmplt, {at, g_.constant(DType::Int64, extent)})});
      data.valid = both(g_, data.valid, inside);
      data.at.push_back(at);
    }
    data.at.insert(data.at.end(), indices.at.begin() + static_cast<std::ptrdiff_t>(rank),
                   indices.at.end());
    result = build(node.src(0), data);
  } else if (ir::is_movement(node.op()) && !node.is(Op::Cat)) {
    const Indices inner = source_indices(g_, node, indices);
    result = build(node.src(0), inner);
    if (node.is(Op::Pad)) result = padded(g_, result, inner.valid);
  } else if (ir::is_elementwise(node.op())) {
    std::vector<Node> sources;
    for (int i = 0; i < node.source_count(); ++i) {
      const Node s = node.src(i);
      sources.push_back(build(
          s, s.shape().empty() && !node.shape().empty() ? Indices{{}, indices.valid} : indices));
    }
    if (node.is(Op::Where)) result = fold_gated_load(g_, sources[0], sources[1], sources[2]);
    if (!result) result = g_.make(node.op(), node.dtype(), sources, node.arg());
    layers_.push_back(node);
  } else {
    failure_ = "The scheduler cannot place a " + std::string(ir::to_string(node.op())) +
               " of shape " + ignis::to_string(node.shape()) + ".";
    return g_.constant(strong(node.dtype()), 0);
  }
  built_[key] = result;
  return result;
}

Result<Draft> Writer::write() {
  const KernelRoot root = plan_.roots[static_cast<size_t>(kernel_)];
  slots_.assign(1, root.buffer);
  Node value = build(root.value, Indices{root.ranges, {}}, !root.reads_realised);
  const Buffer& buffer = plan_.schedule.buffers[static_cast<size_t>(root.buffer)];
  if (!failure_.empty()) return Error(ErrorCode::Unsupported, failure_);
  value = g_.cast(value, buffer.dtype);
  ir::ParamArg arg;
  arg.slot = 0;
  arg.shape = buffer.shape;
  std::vector<Node> sources{g_.param(buffer.dtype, arg)};
  std::vector<Node> at = root.ranges;
  if (root.store_axis >= 0) at.insert(at.begin() + root.store_axis, g_.constant(DType::WeakInt, 0));
  for (size_t i = 0; i < at.size(); ++i) {
    const int64_t offset = root.store_offset.empty() ? 0 : root.store_offset[i];
    sources.push_back(
        offset == 0
            ? at[i]
            : ir::simplify(g_, g_.alu(Op::Add, {at[i], g_.constant(DType::WeakInt, offset)})));
  }
  const Node index = g_.make(Op::Index, buffer.dtype, sources);
  Draft draft;
  draft.sink = g_.make(Op::Sink, DType::Void, {g_.make(Op::Store, DType::Void, {index, value})});
  draft.buffers = slots_;
  draft.ranges = loops_of(root);
  draft.layers = layers_;
  draft.layers.push_back(root.value);
  draft.order = root.order;
  return draft;
}

}  // namespace

Result<Draft> write_draft(SplitPlan& plan, int kernel) { return Writer(plan, kernel).write(); }

}  // namespace ignis::schedule
